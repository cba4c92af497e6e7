// SPDX-License-Identifier: Apache-2.0
//
// What the main functions of the benchmark's programs share: the command line, and what becomes of
// errors. Exit status: 0 done, 1 the kernel refused something, 2 the command line was refused.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <system_error>

namespace nagi::bench {

/// Reads the command line of `app`, called `name`, then runs `work`. Returns the exit status.
template <class Work>
int run_command(CLI::App& app, const char* name, int argc, char** argv, Work work) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    return work();
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace nagi::bench
