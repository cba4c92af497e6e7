// SPDX-License-Identifier: Apache-2.0
//
// nagi-link as a service: the links and media of a configuration between network interfaces, the
// record files, and the account (settings and counters, written as links.json). Drivers advance the
// links.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "daemon/config.hpp"
#include "daemon/controller.hpp"
#include "daemon/link.hpp"
#include "daemon/real_time_driver.hpp"
#include "daemon/recorder.hpp"
#include "daemon/shared_medium.hpp"
#include "daemon/virtual_time_driver.hpp"
#include "io/port.hpp"
#include "model/direction.hpp"
#include "service/account.hpp"
#include "service/clock.hpp"
#include "service/ports.hpp"
#include "service/service.hpp"

namespace nagi::daemon {

/// The service of nagi-link.
class Emulator final : public runtime::Service {
 public:
  /// Open all interfaces and files of `config` except the account and the control socket. Offloads
  /// that disturb the emulation are switched off until the end; they are an error with the policy
  /// `refuse`. Throws InputError, or std::system_error if the kernel refuses.
  explicit Emulator(const Config& config);

  [[nodiscard]] std::vector<int> descriptors() const override;
  [[nodiscard]] bool is_cheap_to_read() const override { return ports_.is_cheap_to_read(); }
  [[nodiscard]] std::vector<std::string> interfaces() const override { return ports_.interfaces(); }
  void note(const std::string& what) override { notices_.add(what); }
  runtime::Served serve(const std::vector<int>& readable) override;
  [[nodiscard]] Duration lookahead() const override;
  runtime::Served serve_ahead() override { return virtual_time_->serve_ahead(); }
  void hold_time() override { time_.hold(); }

  nlohmann::json answer(const nlohmann::json& request) override {
    return controller_.answer(request);
  }
  [[nodiscard]] bool stopped() const override { return controller_.stopped(); }

  void begin(const runtime::Privileges& privileges) override {
    privileges_ = privileges;
    recorder_.start();
  }
  void finish() override;
  /// Return the account, in the format of links.json. `complete` is true for the last account.
  [[nodiscard]] nlohmann::json account(bool complete) override;

 private:
  void open_link(const LinkConfig& link);
  void open_medium(const MediumSettings& medium);
  std::unique_ptr<LinkDirection> make_direction(const LinkConfig& link, model::DirectionName name,
                                                io::Port& in, io::Port& out);
  std::shared_ptr<FpgaCore> make_core(const LinkConfig& link);
  [[nodiscard]] std::vector<LinkDirection*> directions() const;
  [[nodiscard]] std::vector<SharedMedium*> media() const;
  [[nodiscard]] nlohmann::json account_of(io::Port& port) const;

  Config config_;
  runtime::RealTime time_;
  std::int64_t started_realtime_ns_;
  runtime::Notices notices_;
  runtime::Ports ports_;
  Recorder recorder_;
  std::vector<Link> links_;
  std::vector<std::shared_ptr<FpgaCore>> cores_;  // of the links that run in FPGAs
  std::vector<std::unique_ptr<SharedMedium>> media_;
  Controller controller_;
  std::optional<RealTimeDriver> real_time_;
  std::optional<VirtualTimeDriver> virtual_time_;  // only with `virtual_time`
  runtime::Privileges privileges_;
};

}  // namespace nagi::daemon
