// SPDX-License-Identifier: Apache-2.0
//
// nagi-switch runs a P4 program (v1model, compiled by p4c-bm2-ss) between network interfaces,
// between captures, or by requests.
//
// Exit status: 0 regular end, 1 an error of the system, 2 an error in the input.

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "control/command_line.hpp"
#include "control/json_source.hpp"
#include "service/service.hpp"
#include "switch/daemon/config.hpp"
#include "switch/daemon/live_switch.hpp"
#include "switch/daemon/load.hpp"
#include "switch/daemon/replay.hpp"
#include "switch/daemon/simulate.hpp"

namespace nagi::p4 {
namespace {

using nlohmann::json;
using runtime::JsonSource;

/// The arguments of the command line.
struct Arguments {
  std::string config;
  std::string pipeline;
  std::string socket;
  std::string operations;
};

int run(const Arguments& arguments) {
  const SwitchConfig config =
      read_config(JsonSource::from_file(arguments.config), Medium::interfaces);
  const runtime::Signals signals;
  LiveSwitch live(config);
  runtime::run_service(live, config, signals, std::to_string(config.ports.size()) + " ports",
                       longest_request);
  return 0;
}

int replay(const Arguments& arguments) {
  p4::replay(read_config(JsonSource::from_file(arguments.config), Medium::captures));
  return 0;
}

int simulate(const Arguments& arguments) {
  p4::simulate(read_config(JsonSource::from_file(arguments.config), Medium::requests), std::cin,
               std::cout);
  return 0;
}

int check(const Arguments& arguments) {
  print(std::cout, load_program_file(arguments.pipeline).describe());
  return 0;
}

int show(const Arguments& arguments) {
  const json answer = runtime::ask_or_refuse(arguments.socket, {{"op", "show"}});
  std::cout << answer.at("account").dump(1) << "\n";
  return 0;
}

int stop(const Arguments& arguments) {
  runtime::ask_or_refuse(arguments.socket, {{"op", "stop"}});
  return 0;
}

/// Send the operations in a file, one per line, and print the answers. Continue after a refused
/// operation. Return 2 if an operation was refused.
int control(const Arguments& arguments) {
  std::ifstream file(arguments.operations);
  if (!file) {
    throw InputError(arguments.operations + ": cannot read it: " + std::strerror(errno) +
                     "; give the path of a file of operations");
  }
  std::vector<int> lines;  // line number of each request
  int line_number = 0;
  std::size_t refused = 0;
  const auto next = [&](std::string& line) {
    while (std::getline(file, line)) {
      ++line_number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      lines.push_back(line_number);
      return true;
    }
    return false;
  };
  runtime::ask_all(arguments.socket, next, [&](std::size_t number, const json& answer) {
    std::cout << answer.dump() << "\n";
    if (answer.value("ok", false)) return;
    ++refused;
    spdlog::error("{}:{}: {}", arguments.operations, lines[number],
                  answer.value("error", "refused"));
  });
  return refused == 0 ? 0 : 2;
}

int main(int argc, char** argv) {
  runtime::CommandLine line("nagi-switch", "runs a P4 program between network interfaces");
  Arguments arguments;
  const auto command = [&](const char* name, const char* description,
                           int (*perform)(const Arguments&)) {
    return line.add(name, description, [&arguments, perform] { return perform(arguments); });
  };
  const auto with_config = [&](CLI::App* added) {
    added->add_option("config", arguments.config, "configuration (JSON)")->required();
  };
  const auto with_socket = [&](CLI::App* added) {
    added->add_option("socket", arguments.socket, "control socket of nagi-switch")->required();
    return added;
  };
  with_config(command("run", "forward packets until SIGTERM, SIGINT, SIGHUP or `stop`", run));
  with_config(command("replay", "forward the packets of captures, without a clock", replay));
  with_config(command(
      "simulate", "forward the packets of requests on standard input, without a clock", simulate));
  command("check", "check a program, and describe it or its errors", check)
      ->add_option("pipeline", arguments.pipeline, "program compiled by p4c-bm2-ss (JSON)")
      ->required();
  with_socket(command("show", "print the counters of a running nagi-switch", show));
  with_socket(command("stop", "end a running nagi-switch", stop));
  with_socket(command("control", "perform operations on a running nagi-switch", control))
      ->add_option("operations", arguments.operations, "file of operations, one per line (JSON)")
      ->required();
  return line.run(argc, argv);
}

}  // namespace
}  // namespace nagi::p4

int main(int argc, char** argv) { return nagi::p4::main(argc, argv); }
