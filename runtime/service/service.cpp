// SPDX-License-Identifier: Apache-2.0
#include "service/service.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "io/descriptor.hpp"
#include "io/link_monitor.hpp"
#include "io/stop_signals.hpp"
#include "service/loop.hpp"

namespace nagi::runtime {

namespace {

using nlohmann::json;

/// The file of the account. It is opened before privileges are given up, and holds an incomplete
/// account until the last one is written.
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
      io::throw_errno("writing " + path_);
    }
  }

 private:
  std::string path_;
  io::Descriptor file_;
};

/// Handle the change of an interface. Return the reason why the service cannot continue, or an
/// empty text.
std::string handle_change(const io::LinkChange& change, Service& service, Watch& watch) {
  const std::string name = "interface " + change.interface;
  switch (change.event) {
    case io::LinkEvent::down:
      service.note(name +
                   " is down; frames to it are lost or late until it is up: ip link set dev " +
                   change.interface + " up");
      return {};
    case io::LinkEvent::up:
      service.note(name + " is up again");
      return {};
    case io::LinkEvent::gone:
      break;
  }
  const std::optional<int> descriptor = service.go_on_without(change.interface);
  if (!descriptor)
    return name + " no longer exists; create it or plug it in, then start this program again";
  watch.remove(*descriptor);
  service.note(name + " no longer exists, so its port is down until this program is started again");
  return {};
}

}  // namespace

std::string close_file(const std::string& path, io::BackgroundFile& file) {
  const std::string error = file.close();
  if (file.lost() == 0 && error.empty()) return {};
  return path + " is not complete" + (error.empty() ? "" : ": " + error) + "; " +
         std::to_string(file.lost()) + " records were lost";
}

void write_account(const std::string& path, const json& account) {
  AccountFile(path).write(account);
}

Signals::Signals() : stop_(io::stop_signals()) { io::die_with_parent(); }

void run_service(Service& service, const ServiceSettings& settings, const Signals& signals,
                 const std::string& summary, std::size_t longest_request) {
  require_root_for(settings.user);
  std::optional<AccountFile> account;
  if (!settings.account.empty()) account.emplace(settings.account);
  std::optional<ControlServer> control;
  if (!settings.control_socket.empty()) {
    control.emplace(
        settings.control_socket, [&](const json& request) { return service.answer(request); },
        longest_request, service.long_handler());
  }
  Privileges privileges = request_privileges(settings.cpu);
  drop_privileges(settings.user, privileges);
  service.begin(privileges);

  Watch watch(service);
  watch.add(signals.descriptor(), [&watch] { watch.end(); });
  if (control) {
    watch.add(control->descriptor(), [&] {
      control->serve();
      if (service.stopped()) watch.end();
    });
  }
  std::string gone;
  std::optional<io::LinkMonitor> monitor;
  if (!settings.virtual_time) {  // interfaces of a guest are never unplugged
    monitor.emplace(service.interfaces());
    const auto handle_changes = [&] {
      for (const io::LinkChange& change : monitor->read()) {
        if (gone.empty()) gone = handle_change(change, service, watch);
      }
      if (!gone.empty()) watch.end();
    };
    watch.add(monitor->descriptor(), handle_changes);
    handle_changes();  // an interface may be down already
  }
  if (account) account->write(service.account(false));
  spdlog::info("ready: {}", summary);
  if (settings.virtual_time) {
    serve_in_virtual_time(service, watch);
  } else {
    serve_in_real_time(service, watch, settings.spin_ns);
  }
  service.finish();
  if (account) account->write(service.account(gone.empty()));
  if (!gone.empty()) throw std::runtime_error(gone);
  spdlog::info("stopped");
}

}  // namespace nagi::runtime
