// SPDX-License-Identifier: Apache-2.0
//
// What nagi-link may be asked over its control socket (control/control_socket.hpp):
//
//   {"command": "show"}                              "account": {...}, as links.json has it
//   {"command": "set", "link": "wireless", "direction": "forward", "config": {...}}
//                                                    "config": what holds from now on
//       Keys that are given replace those that the direction has; null takes one away. No packet is
//       lost by it.
//   {"command": "stop"}
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/object_reader.hpp"
#include "daemon/link.hpp"

namespace nagi::daemon {

class Controller {
 public:
  /// `links` must outlive this. `account`: gives the account so far.
  Controller(const std::vector<Link>& links, std::function<nlohmann::json()> account)
      : links_(links), account_(std::move(account)) {}

  /// Throws ConfigError if a request is refused.
  nlohmann::json answer(const nlohmann::json& request);
  /// Whether it was asked to stop.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  nlohmann::json change(ObjectReader request);
  [[nodiscard]] LinkDirection& find_direction(const ObjectReader& request) const;

  const std::vector<Link>& links_;
  std::function<nlohmann::json()> account_;
  bool stopped_ = false;
};

}  // namespace nagi::daemon
