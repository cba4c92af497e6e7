// SPDX-License-Identifier: Apache-2.0
//
// nagi-link: emulates any number of links between pairs of network interfaces.
//
// Exit status: 0 on success, 1 if the kernel refuses an operation, 2 if the input is refused.

#include <iostream>

#include "control/command_line.hpp"
#include "daemon/config.hpp"
#include "daemon/emulator.hpp"
#include "daemon/replay.hpp"
#include "service/service.hpp"

namespace nagi::daemon {
namespace {

using nlohmann::json;
using runtime::JsonSource;

/// The arguments of the command line.
struct Arguments {
  std::string config;
  std::string socket;
  std::string link;
  std::string direction;
  std::string changes;
  std::string packets;
  std::string output;
};

int run(const Arguments& arguments) {
  const Config config = read_config(JsonSource::from_file(arguments.config));
  const runtime::Signals signals;
  Emulator emulator(config);
  std::string summary = std::to_string(config.links.size()) + " links";
  if (!config.media.empty()) summary += ", " + std::to_string(config.media.size()) + " media";
  runtime::run_service(emulator, config, signals, summary);
  return 0;
}

int check(const Arguments& arguments) {
  std::cout << to_json(read_config(JsonSource::from_file(arguments.config))).dump(1) << "\n";
  return 0;
}

int show(const Arguments& arguments) {
  const json answer = runtime::ask_or_refuse(arguments.socket, {{"command", "show"}});
  std::cout << answer.at("account").dump(1) << "\n";
  return 0;
}

int set(const Arguments& arguments) {
  const JsonSource changes("CHANGES", arguments.changes);
  const json answer = runtime::ask_or_refuse(arguments.socket, {{"command", "set"},
                                                                {"link", arguments.link},
                                                                {"direction", arguments.direction},
                                                                {"config", changes.value()}});
  std::cout << answer.at("config").dump(1) << "\n";
  return 0;
}

int replay_records(const Arguments& arguments) {
  replay(read_config(JsonSource::from_file(arguments.config)), arguments.packets, arguments.output);
  return 0;
}

int main(int argc, char** argv) {
  runtime::CommandLine line("nagi-link",
                            "emulates links (queue, rate, delay, loss) between interfaces");
  Arguments arguments;
  const auto command = [&](const char* name, const char* summary,
                           int (*perform)(const Arguments&)) {
    return line.add(name, summary, [&arguments, perform] { return perform(arguments); });
  };
  const auto with_config = [&](CLI::App* added) {
    added->add_option("config", arguments.config, "configuration (JSON)")->required();
    return added;
  };
  const auto with_socket = [&](CLI::App* added) {
    added->add_option("socket", arguments.socket, "control socket of the nagi-link")->required();
    return added;
  };
  with_config(command("run", "emulate until SIGTERM, SIGINT, SIGHUP or a stop command", run));
  with_config(command("check", "check a configuration, and print it with all defaults", check));
  with_socket(command("show", "print the account of a running nagi-link", show));
  auto* set_command = with_socket(
      command("set", "change a direction of a running link without losing packets", set));
  set_command->add_option("link", arguments.link, "the link's name")->required();
  set_command->add_option("direction", arguments.direction, "forward or backward")->required();
  set_command
      ->add_option("changes", arguments.changes,
                   R"(keys to replace, as JSON: '{"rate_bps": 5000000}'; null removes a key)")
      ->required();
  auto* replay_command = with_config(
      command("replay", "pass recorded arrivals through the model again", replay_records));
  replay_command->add_option("packets", arguments.packets, "record file of nagi-link")->required();
  replay_command->add_option("output", arguments.output, "record file to write")->required();
  return line.run(argc, argv);
}

}  // namespace
}  // namespace nagi::daemon

int main(int argc, char** argv) { return nagi::daemon::main(argc, argv); }
