// SPDX-License-Identifier: Apache-2.0
//
// The requests that nagi-link accepts on its control socket (control/control_socket.hpp), and its
// answers:
//
//   {"command": "show"}                              "account": {...}: settings and counters, in
//                                                    the format of links.json
//   {"command": "set", "link": "wireless", "direction": "forward", "config": {...}}
//                                                    "config": the new configuration
//       The keys of "config" replace those of the direction; null removes a key. The change loses
//       no packet.
//   {"command": "stop"}
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/object_reader.hpp"
#include "daemon/link.hpp"

namespace nagi::daemon {

/// Answers the requests of the control socket.
class Controller {
 public:
  /// Create a controller of `links`, which must outlive it. `account` is a function that returns
  /// the current account.
  Controller(const std::vector<Link>& links, std::function<nlohmann::json()> account)
      : links_(links), account_(std::move(account)) {}

  /// Return the answer to a request, {"ok": true, ...}. Throws ConfigError if the request is
  /// refused.
  nlohmann::json answer(const nlohmann::json& request);
  /// Return whether a request to stop has arrived.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  nlohmann::json change(ObjectReader request);
  [[nodiscard]] LinkDirection& find_direction(const ObjectReader& request) const;

  const std::vector<Link>& links_;
  std::function<nlohmann::json()> account_;
  bool stopped_ = false;
};

}  // namespace nagi::daemon
