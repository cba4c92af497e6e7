// SPDX-License-Identifier: Apache-2.0
//
// nagi-link: emulates any number of links between pairs of network interfaces.
//
// Exit status: 0 ended in order, 1 the kernel refused something, 2 the input was refused.

#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/control.hpp"
#include "daemon/emulator.hpp"
#include "daemon/loop.hpp"
#include "daemon/privileges.hpp"
#include "daemon/replay.hpp"
#include "daemon/version.hpp"
#include "io/descriptor.hpp"
#include "io/input_error.hpp"
#include "io/stop_signals.hpp"

namespace nagi::daemon {
namespace {

using io::Descriptor;
using io::throw_errno;
using nlohmann::json;

/// The file the account goes to. Opened before privileges are given up; holds a first account,
/// marked incomplete, until the last one is written.
class AccountFile {
 public:
  explicit AccountFile(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (file_.get() < 0) {
      throw InputError(path + ": cannot write the account: " + std::strerror(errno) +
                       "; give a path in a directory that exists and is yours");
    }
  }

  void write(const json& account) {
    const std::string text = account.dump(1) + "\n";
    if (pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ftruncate(file_.get(), static_cast<off_t>(text.size())) != 0 || fsync(file_.get()) != 0) {
      throw_errno("writing " + path_);
    }
  }

 private:
  std::string path_;
  Descriptor file_;
};

/// Whether the loop is to end, and what the control socket is asked.
class Controller {
 public:
  explicit Controller(Emulator& emulator) : emulator_(emulator) {}

  bool stop = false;

  json answer(const json& request) {
    model::ObjectReader reader(request, json::json_pointer());
    const std::string command = reader.text("command");
    if (command == "set") return {{"ok", true}, {"config", emulator_.change(std::move(reader))}};
    reader.finish();
    if (command == "show") return {{"ok", true}, {"account", emulator_.account(false)}};
    if (command == "stop") {
      stop = true;
      return {{"ok", true}};
    }
    throw model::ConfigError(reader.at("command"), "unknown command \"" + command + "\"",
                             R"("show", "set" or "stop")");
  }

 private:
  Emulator& emulator_;
};

int run(const Config& config) {
  io::die_with_parent();
  const Descriptor signals = io::stop_signals();
  Emulator emulator(config);
  std::optional<AccountFile> account;
  if (!config.account.empty()) account.emplace(config.account);
  Controller controller(emulator);
  std::optional<ControlServer> control;
  if (!config.control_socket.empty()) {
    control.emplace(config.control_socket,
                    [&](const json& request) { return controller.answer(request); });
  }
  emulator.set_privileges(take_privileges(config.cpu));
  drop_privileges();

  Watch watch(emulator);
  watch.add(signals.get(), [&watch] { watch.end(); });
  if (control) {
    watch.add(control->descriptor(), [&] {
      control->serve();
      if (controller.stop) watch.end();
    });
  }
  if (account) account->write(emulator.account(false));
  spdlog::info("ready: {} links", config.links.size());
  if (config.virtual_time) {
    serve_in_virtual_time(emulator, watch);
  } else {
    serve_in_real_time(emulator, watch, config.spin_ns);
  }
  emulator.finish();
  if (account) account->write(emulator.account(true));
  spdlog::info("stopped");
  return 0;
}

json ask_or_refuse(const std::string& socket, const json& request) {
  json answer = ask(socket, request);
  if (!answer.value("ok", false)) throw InputError(answer.value("error", "refused"));
  return answer;
}

/// What the command line asks for.
struct Arguments {
  std::string config;
  std::string socket;
  std::string link;
  std::string way;
  std::string changes;
  std::string packets;
  std::string output;
};

int check(const Arguments& arguments) {
  std::cout << to_json(read_config(JsonSource::from_file(arguments.config))).dump(1) << "\n";
  return 0;
}

int show(const Arguments& arguments) {
  const json answer = ask_or_refuse(arguments.socket, {{"command", "show"}});
  std::cout << answer.at("account").dump(1) << "\n";
  return 0;
}

int set(const Arguments& arguments) {
  const JsonSource changes("CHANGES", arguments.changes);
  const json answer = ask_or_refuse(arguments.socket, {{"command", "set"},
                                                       {"link", arguments.link},
                                                       {"way", arguments.way},
                                                       {"config", changes.value()}});
  std::cout << answer.at("config").dump(1) << "\n";
  return 0;
}

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_st("nagi-link"));
  spdlog::set_pattern("%n: %v");

  CLI::App app{"nagi-link: emulates links (queue, rate, delay, loss) between network interfaces"};
  app.set_version_flag("--version", std::string("nagi-link ") + program_version);
  app.require_subcommand(1);
  Arguments arguments;
  int status = 0;
  const auto command = [&](const char* name, const char* what, auto&& perform) {
    auto* added = app.add_subcommand(name, what);
    added->final_callback([&status, &arguments, perform] { status = perform(arguments); });
    return added;
  };
  const auto with_config = [&](CLI::App* added) {
    added->add_option("config", arguments.config, "configuration (JSON)")->required();
    return added;
  };
  const auto with_socket = [&](CLI::App* added) {
    added->add_option("socket", arguments.socket, "its control socket")->required();
    return added;
  };
  with_config(
      command("run", "emulate until SIGTERM, SIGINT or a stop command", [](const Arguments& given) {
        return run(read_config(JsonSource::from_file(given.config)));
      }));
  with_config(
      command("check", "read a configuration, say what is wrong, or print it resolved", check));
  with_socket(command("show", "print the account of a running nagi-link", show));
  auto* set_command = with_socket(
      command("set", "change a direction of a running link; no packet is lost by it", set));
  set_command->add_option("link", arguments.link, "the link's name")->required();
  set_command->add_option("way", arguments.way, "a_to_b or b_to_a")->required();
  set_command
      ->add_option("changes", arguments.changes,
                   R"(keys to replace, as JSON: '{"rate_bps": 5000000}'; null takes one away)")
      ->required();
  auto* replay_command = with_config(
      command("replay", "give recorded arrivals to the model again", [](const Arguments& given) {
        replay(read_config(JsonSource::from_file(given.config)), given.packets, given.output);
        return 0;
      }));
  replay_command->add_option("packets", arguments.packets, "what nagi-link recorded")->required();
  replay_command->add_option("output", arguments.output, "what the model makes of it")->required();

  try {
    app.parse(argc, argv);
    return status;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const InputError& error) {
    spdlog::error("{}", error.what());
    return 2;
  } catch (const std::system_error& error) {
    const bool forbidden = error.code().value() == EPERM || error.code().value() == EACCES;
    spdlog::error("{}{}", error.what(),
                  forbidden ? "; run it as root, or with CAP_NET_RAW and CAP_NET_ADMIN" : "");
    return forbidden || error.code().value() == ENODEV ? 2 : 1;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace nagi::daemon

int main(int argc, char** argv) { return nagi::daemon::main(argc, argv); }
