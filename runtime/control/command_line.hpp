// SPDX-License-Identifier: Apache-2.0
//
// The common part of the main functions of nagi's programs: log, subcommands and errors. Exit
// status: 0 on success, 1 if the kernel refuses an operation, 2 if the input is refused.
#pragma once

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "control/control_socket.hpp"
#include "io/input_error.hpp"
#include "runtime/version.hpp"

namespace nagi::runtime {

/// Send a request to a control socket and return the answer. Throws InputError if the request is
/// refused.
inline nlohmann::json ask_or_refuse(const std::string& socket, const nlohmann::json& request) {
  nlohmann::json answer = ask(socket, request);
  if (!answer.value("ok", false)) throw InputError(answer.value("error", "refused"));
  return answer;
}

/// A program with several commands, one of which is run.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary) : app_(name + ": " + summary) {
    spdlog::set_default_logger(spdlog::stderr_color_st(name));
    spdlog::set_pattern("%n: %v");
    app_.set_version_flag("--version", name + " " + program_version);
    app_.require_subcommand(1);
  }

  /// Add a command; `perform` executes it and returns the exit status.
  CLI::App* add(const char* name, const char* summary, std::function<int()> perform) {
    CLI::App* added = app_.add_subcommand(name, summary);
    added->final_callback([this, perform = std::move(perform)] { status_ = perform(); });
    return added;
  }

  /// Parse the command line, execute the command, and return the exit status. Errors are logged.
  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
      return status_;
    } catch (const CLI::ParseError& error) {
      return app_.exit(error) == 0 ? 0 : 2;
    } catch (const InputError& error) {
      spdlog::error("{}", printable(error.what()));
      return 2;
    } catch (const std::system_error& error) {
      const bool forbidden = error.code().value() == EPERM || error.code().value() == EACCES;
      spdlog::error(
          "{}{}", printable(error.what()),
          forbidden ? "; run the program as root, or with CAP_NET_RAW and CAP_NET_ADMIN" : "");
      return forbidden || error.code().value() == ENODEV ? 2 : 1;
    } catch (const std::exception& error) {
      spdlog::error("{}", printable(error.what()));
      return 1;
    }
  }

 private:
  CLI::App app_;
  int status_ = 0;
};

}  // namespace nagi::runtime
