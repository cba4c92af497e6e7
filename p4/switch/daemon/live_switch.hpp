// SPDX-License-Identifier: Apache-2.0
//
// The switch in real time, between network interfaces. Frames enter the switch at the times of
// their kernel timestamps. Departing frames are passed to the kernel as soon as they are due.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "service/account.hpp"
#include "service/clock.hpp"
#include "service/ports.hpp"
#include "service/service.hpp"
#include "switch/daemon/config.hpp"
#include "switch/daemon/controller.hpp"
#include "switch/daemon/logs.hpp"
#include "switch/daemon/long_batch.hpp"
#include "switch/daemon/port_account.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

class LiveSwitch final : public runtime::Service {
 public:
  /// Load the program and its entries, and open all interfaces and files of `config`, except the
  /// account and the control socket. Throws InputError, or std::system_error if the kernel refuses.
  explicit LiveSwitch(const SwitchConfig& config);

  [[nodiscard]] std::vector<int> descriptors() const override { return ports_.descriptors(); }
  [[nodiscard]] bool is_cheap_to_read() const override { return ports_.is_cheap_to_read(); }
  [[nodiscard]] std::vector<std::string> interfaces() const override { return ports_.interfaces(); }
  std::optional<int> go_on_without(const std::string& interface) override {
    return ports_.descriptor_of(interface);
  }
  void note(const std::string& notice) override { notices_.add(notice); }
  runtime::Served serve(const std::vector<int>& readable) override;
  void hold_time() override { time_.hold(); }
  nlohmann::json answer(const nlohmann::json& request) override {
    return controller_.answer(request);
  }
  runtime::LongHandler long_handler() override {
    return [this] { return std::make_unique<LongBatch>(controller_); };
  }
  [[nodiscard]] bool stopped() const override { return controller_.stopped(); }
  void begin(const runtime::Privileges& privileges) override {
    privileges_ = privileges;
    logs_.start();
  }
  void finish() override;
  [[nodiscard]] nlohmann::json account(bool complete) override;

 private:
  struct LivePort {
    io::Port* port = nullptr;
    PortAccount account;
    std::vector<Departure> due;  // departures to pass to the kernel now
  };
  struct Arrival {
    std::size_t port;
    io::Arrival arrival;
  };

  /// Receive a batch of frames from each readable port into `arrivals_`, in the order of arrival.
  /// Return whether more frames may wait.
  bool receive(const std::vector<int>& readable);
  /// Pass `arrivals_` to the switch.
  void take_in();
  /// Process all frames that have arrived, and advance the switch to the present.
  void bring_up_to_date();
  /// Pass the departures of the switch to the kernel.
  void hand_over();
  void hand_over(LivePort& port);

  SwitchConfig config_;
  runtime::RealTime time_;
  std::int64_t started_realtime_ns_;
  Program program_;
  runtime::Notices notices_;
  runtime::Ports ports_;
  Logs logs_;
  Switch switch_;
  Controller controller_;
  std::vector<LivePort> live_;
  runtime::Privileges privileges_;
  std::vector<io::Arrival> batch_;
  std::vector<Arrival> arrivals_;
  std::vector<io::Frame> frames_;
};

}  // namespace nagi::p4
