// SPDX-License-Identifier: Apache-2.0
//
// A program that moves frames between interfaces until it must stop: its interface to the main loop
// (loop.hpp), and the functions that run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/interface.hpp"
#include "base/units.hpp"
#include "control/control_socket.hpp"
#include "io/background_file.hpp"
#include "io/input_error.hpp"
#include "service/privileges.hpp"
#include "service/settings.hpp"

namespace nagi::runtime {

/// The result of one call of serve().
struct Served {
  /// The time at which a frame is due next (CLOCK_MONOTONIC, ns), or nothing if none is held. A
  /// time in the past means that the caller must serve again immediately.
  std::optional<std::int64_t> next_delivery_ns;
  std::int64_t now_ns = 0;  // time at which serving began, CLOCK_MONOTONIC
  std::size_t frames = 0;   // number of frames received and sent
  bool quiet = true;        // true if no frame is held
};

class Service : public nagi::Interface {
 public:
  /// Return the descriptors that are readable while frames wait.
  [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
  /// Return whether reading costs nearly nothing on all ports, so that their descriptors need no
  /// poll().
  [[nodiscard]] virtual bool is_cheap_to_read() const = 0;
  /// Read frames from the descriptors in `readable`, and send the frames that are due.
  virtual Served serve(const std::vector<int>& readable) = 0;

  /// Return for how long arriving frames may wait: no frame is due sooner after its arrival.
  [[nodiscard]] virtual Duration lookahead() const { return {}; }
  /// Read all frames, and hand transmitted packets to the kernel, which sends each frame at its own
  /// time. The caller must call this again within lookahead(). It is used only with `virtual_time`
  /// and if lookahead() is above 0.
  virtual Served serve_ahead() { return serve({}); }
  /// Use the current time until the next call (see RealTime::hold).
  virtual void hold_time() = 0;

  /// Answer a request from the control socket. Throws InputError or ConfigError.
  virtual nlohmann::json answer(const nlohmann::json& request) = 0;
  /// Return a handler that answers long requests piece by piece, or an empty one if there is none.
  virtual LongHandler long_handler() { return {}; }
  /// Return the open interfaces.
  [[nodiscard]] virtual std::vector<std::string> interfaces() const = 0;
  /// Continue without an interface that no longer exists, if the service can. Return the descriptor
  /// of its port, or nothing if the service cannot continue.
  virtual std::optional<int> go_on_without(const std::string& /*interface*/) { return {}; }
  /// Add a notice to the account.
  virtual void note(const std::string& what) = 0;
  /// Return whether a request to stop has arrived.
  [[nodiscard]] virtual bool stopped() const = 0;

  /// Start the threads of the service, after privileges that are no longer needed were given up.
  /// The account reports `privileges`.
  virtual void begin(const Privileges& privileges) = 0;
  /// Write the remaining data of all files at the end.
  virtual void finish() = 0;
  /// Return the current settings and counters as JSON, for the account file. `complete` is true at
  /// the end.
  [[nodiscard]] virtual nlohmann::json account(bool complete) = 0;
};

/// Create a File(path, arguments...), which is written while the service runs. Throws InputError if
/// that is not possible.
template <class File, class... Arguments>
std::unique_ptr<File> make_file(const std::string& path, Arguments&&... arguments) {
  try {
    return std::make_unique<File>(path, std::forward<Arguments>(arguments)...);
  } catch (const std::system_error& error) {
    throw InputError(path + ": cannot write it: " + error.code().message() +
                     "; give a path in a directory that exists and is yours");
  }
}

/// Write the remaining data of a file. Return a message about lost data, or an empty text.
std::string close_file(const std::string& path, io::BackgroundFile& file);

/// Write an account (settings and counters) to a file. Throws InputError if that is not possible.
void write_account(const std::string& path, const nlohmann::json& account);

/// Signals of a program, set up before a service is created: stop signals are stored for
/// run_service(), and the program also stops when its parent process ends.
class Signals {
 public:
  Signals();
  [[nodiscard]] int descriptor() const { return stop_.get(); }

 private:
  io::Descriptor stop_;
};

/// Give up privileges and serve until a signal (stop_signals.hpp) or a request to stop arrives,
/// with the control socket and the account that the settings name. When the service is ready, the
/// log reports `summary`, a summary of the service.
void run_service(Service& service, const ServiceSettings& settings, const Signals& signals,
                 const std::string& summary, std::size_t longest_request = 64 * 1024);

}  // namespace nagi::runtime
