// SPDX-License-Identifier: Apache-2.0
//
// The common part of the main functions of the benchmark's programs: command line and errors. Exit
// status: 0 on success, 1 if the kernel refuses an operation, 2 if the command line is invalid.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <system_error>

namespace nagi::bench {

/// Parse the command line of the program `name`, run `work`, and return the exit status. Errors of
/// the kernel are printed.
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
