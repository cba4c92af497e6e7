// SPDX-License-Identifier: Apache-2.0
//
// nagi-link: emulates any number of links between pairs of network interfaces.
//
// Exit status: 0 ended in order, 1 the kernel refused something, 2 the input was refused.

#include <fcntl.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <system_error>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/control.hpp"
#include "daemon/emulator.hpp"
#include "daemon/privileges.hpp"
#include "daemon/version.hpp"
#include "io/descriptor.hpp"

namespace nagi::daemon {
namespace {

using io::Descriptor;
using io::throw_errno;
using nlohmann::json;

/// SIGTERM and SIGINT as something to read.
Descriptor stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// Wakes the loop at an instant of CLOCK_MONOTONIC.
class Alarm {
 public:
  Alarm() : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {}
  [[nodiscard]] int descriptor() const { return timer_.get(); }

  void set(std::optional<std::int64_t> monotonic_ns) {
    const std::int64_t at = monotonic_ns.value_or(never);
    if (at == set_for_) return;
    set_for_ = at;
    itimerspec when{};
    when.it_value.tv_sec = at / 1'000'000'000;
    when.it_value.tv_nsec = at % 1'000'000'000;
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  }
  void gone_off() {
    std::uint64_t times = 0;
    if (read(timer_.get(), &times, sizeof times) > 0) set_for_ = never;
  }

 private:
  static constexpr std::int64_t never = 0;  // as timerfd_settime(2) has it
  Descriptor timer_;
  std::int64_t set_for_ = never;
};

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

int run(const Config& config) {
  die_with_parent();
  const Descriptor signals = stop_signals();
  Emulator emulator(config);
  std::optional<AccountFile> account;
  if (!config.account.empty()) account.emplace(config.account);

  bool stop = false;
  std::optional<ControlServer> control;
  if (!config.control_socket.empty()) {
    control.emplace(config.control_socket, [&](const json& request) -> json {
      model::ObjectReader reader(request, json::json_pointer());
      const std::string command = reader.text("command");
      reader.finish();
      if (command == "show") return {{"ok", true}, {"account", emulator.account(false)}};
      if (command == "stop") {
        stop = true;
        return {{"ok", true}};
      }
      throw model::ConfigError(reader.at("command"), "unknown command \"" + command + "\"",
                               R"("show" or "stop")");
    });
  }
  emulator.set_scheduling(take_realtime_priority());
  drop_privileges();

  const Descriptor all(epoll_create1(EPOLL_CLOEXEC));
  Alarm alarm;
  const auto watch = [&all](int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (epoll_ctl(all.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) throw_errno("epoll");
  };
  for (const int descriptor : emulator.descriptors()) watch(descriptor);
  watch(alarm.descriptor());
  watch(signals.get());
  if (control) watch(control->descriptor());
  if (account) account->write(emulator.account(false));
  spdlog::info("ready: {} links", config.links.size());

  std::vector<int> readable;
  while (!stop) {
    epoll_event events[16];
    const int ready = epoll_wait(all.get(), events, 16, -1);
    if (ready < 0 && errno != EINTR) throw_errno("epoll");
    readable.clear();
    for (int i = 0; i < ready; ++i) {
      const int descriptor = events[i].data.fd;
      if (descriptor == alarm.descriptor()) {
        alarm.gone_off();
      } else if (descriptor == signals.get()) {
        stop = true;
      } else if (control && descriptor == control->descriptor()) {
        control->serve();
      } else {
        readable.push_back(descriptor);
      }
    }
    alarm.set(emulator.serve(readable));
  }
  if (account) account->write(emulator.account(true));
  spdlog::info("stopped");
  return 0;
}

int show(const std::string& socket) {
  const json answer = ask(socket, {{"command", "show"}});
  if (!answer.value("ok", false)) throw InputError(answer.value("error", "refused"));
  std::cout << answer.at("account").dump(1) << "\n";
  return 0;
}

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_st("nagi-link"));
  spdlog::set_pattern("%n: %v");

  CLI::App app{"nagi-link: emulates links (queue, rate, delay, loss) between network interfaces"};
  app.set_version_flag("--version", std::string("nagi-link ") + program_version);
  app.require_subcommand(1);
  std::string path;
  auto* run_command = app.add_subcommand("run", "emulate until SIGTERM, SIGINT or a stop command");
  run_command->add_option("config", path, "configuration (JSON)")->required();
  auto* check_command =
      app.add_subcommand("check", "read a configuration, say what is wrong, or print it resolved");
  check_command->add_option("config", path, "configuration (JSON)")->required();
  auto* show_command = app.add_subcommand("show", "print the account of a running nagi-link");
  show_command->add_option("socket", path, "its control socket")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  try {
    if (show_command->parsed()) return show(path);
    const Config config = read_config(JsonSource::from_file(path));
    if (check_command->parsed()) {
      std::cout << to_json(config).dump(1) << "\n";
      return 0;
    }
    return run(config);
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
