// SPDX-License-Identifier: Apache-2.0
//
// A program that moves frames between interfaces until it is told to stop: what its main loop
// (loop.hpp) asks of it, and its life from start to end.
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

struct Served {
  /// When something is next due (CLOCK_MONOTONIC, ns), or nothing if all is quiet. Due in the past:
  /// serve again at once.
  std::optional<std::int64_t> next_delivery_ns;
  std::int64_t now_ns = 0;  // by the same clock: when it began to serve
  std::size_t frames = 0;   // serve(): taken in and sent
  bool quiet = true;        // nothing is held
};

class Service : public nagi::Interface {
 public:
  /// Descriptors that become readable when frames wait.
  [[nodiscard]] virtual std::vector<int> descriptors() const = 0;
  /// Whether all ports can be asked for frames at next to no cost, without their descriptors.
  [[nodiscard]] virtual bool is_free_to_ask() const = 0;
  /// Takes in what waits at the descriptors in `readable` and sends what is due.
  virtual Served serve(const std::vector<int>& readable) = 0;

  /// For how long frames need not be looked at, as none of them is due sooner after it came.
  [[nodiscard]] virtual Duration lookahead() const { return {}; }
  /// Takes in all that has come, and hands what is under way to the kernel, which sends each frame
  /// at its own instant. To be called again within lookahead(). Only with `virtual_time`, and where
  /// there is lookahead: when frames were sent is then only seen where they arrive.
  virtual Served serve_ahead() { return serve({}); }
  /// From now on this is the time, until this is called again (see RealTime::hold).
  virtual void hold_time() = 0;

  /// Answers what the control socket is asked. Throws InputError or ConfigError.
  virtual nlohmann::json answer(const nlohmann::json& request) = 0;
  /// Answers long requests piece by piece; nothing: they are answered like others.
  virtual LongHandler long_handler() { return {}; }
  /// The interfaces that it has open.
  [[nodiscard]] virtual std::vector<std::string> interfaces() const = 0;
  /// An interface is gone. Returns the descriptor of its port, if it goes on without, or nothing if
  /// it cannot.
  virtual std::optional<int> go_on_without(const std::string& /*interface*/) { return {}; }
  /// Notes, for the account, what happened to an interface.
  virtual void note(const std::string& what) = 0;
  /// Whether answer() was asked to stop.
  [[nodiscard]] virtual bool stopped() const = 0;

  /// The rights that are not needed any more are given up: notes, for the account, how this process
  /// is run, and starts its threads, each of which has rights of its own.
  virtual void begin(const Privileges& privileges) = 0;
  /// It is over: completes the files.
  virtual void finish() = 0;
  /// What happened so far.
  [[nodiscard]] virtual nlohmann::json account(bool complete) = 0;
};

/// Makes a file that is written all the time. Throws InputError if it cannot be made.
template <class File, class... Arguments>
std::unique_ptr<File> make_file(const std::string& path, Arguments&&... arguments) {
  try {
    return std::make_unique<File>(path, std::forward<Arguments>(arguments)...);
  } catch (const std::system_error& error) {
    throw InputError(path + ": cannot write it: " + error.code().message() +
                     "; give a path in a directory that exists and is yours");
  }
}

/// Writes what is left of a file. Returns what was lost, in words; empty if nothing was.
std::string close_file(const std::string& path, io::BackgroundFile& file);

/// Writes an account at once. Throws InputError if it cannot.
void write_account(const std::string& path, const nlohmann::json& account);

/// What comes before a service is made: the program ends with the one that started it, and signals
/// to stop are kept for run_service().
class Signals {
 public:
  Signals();
  [[nodiscard]] int descriptor() const { return stop_.get(); }

 private:
  io::Descriptor stop_;
};

/// Gives up privileges and serves until a signal (stop_signals.hpp) or a request to stop, with the
/// control socket and the account that the settings name. `what`: what it is ready with, for the
/// log.
void run_service(Service& service, const ServiceSettings& settings, const Signals& signals,
                 const std::string& what, std::size_t longest_request = 64 * 1024);

}  // namespace nagi::runtime
