// SPDX-License-Identifier: Apache-2.0
//
// The requests of a controller to a running switch: the machine's operations (operations.hpp), and
//
//   {"op": "queue_set", "port": 1, "rate_bps": 5000000, ...}   "queue": the settings in effect
//       any of rate_bps, rate_pps, overhead_bytes, depth_packets, depth_bytes; null removes one.
//       No packet is lost.
//   {"op": "digests"}                                          "digests": those since the last
//   request
//   {"op": "events"}                                           events since the last request:
//       "packets": [{"bytes": "0a1b...", "at_us": 1000}, ...]  packets at the controller's port,
//       "digests": as for "digests",
//       "timeouts": [{"table": T, ...}, ...]                   entries in the form of table_read,
//       "lost": 0                                              packets for which there was no room
//   {"op": "packet_out", "bytes": "0a1b..."}                   sends a packet into the controller's
//                                                              port
//   {"op": "pipeline_set", "program": "...", "name": "a.json"} replaces the program and all its
//   state
//       by the compiler's JSON in "program". Ports and queues stay; packets in queues leave by the
//       program by which they entered.
//   {"op": "pipeline_check", "program": "...", "name": "a.json"}   only checks the program
//   {"op": "pipeline_read"}                                    "name", "program": its text
//   {"op": "batch", "operations": [...]}                       "answers": [...]
//       performs all operations (queue_set included) or none. No packet sees only some of them.
//   {"op": "show"}                                             "account": {...}
//   {"op": "stop"}
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/object_reader.hpp"
#include "control/control_socket.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

/// Maximum length of a request in bytes: a batch may be long.
constexpr std::size_t longest_request = 64 << 20;

class Controller {
 public:
  /// Functions that the driver of the switch provides.
  struct Driver {
    std::function<void()> bring_up_to_date;  // advances the switch to the present
    std::function<void(std::size_t port)> queue_changed;
    std::function<nlohmann::json()> digests;
    std::function<nlohmann::json()> account;
  };
  Controller(Switch& controlled, Driver driver) : switch_(controlled), driver_(std::move(driver)) {}

  /// Perform a request and return the answer. Throws ConfigError or InputError if the request is
  /// refused; then nothing has changed.
  nlohmann::json answer(const nlohmann::json& request);
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// Perform all operations in a file, one per line, or none. Throws InputError with the line.
  void load(const std::string& path);

  /// A change of a queue.
  struct Change {
    std::size_t port;
    QueueConfig queue;
  };

  /// Operations that take effect together at commit(), or never.
  class Batch {
   public:
    explicit Batch(Controller& controller);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();
    /// Perform an operation. Throws the exceptions of answer().
    nlohmann::json perform(const nlohmann::json& operation,
                           const nlohmann::json::json_pointer& where);
    void commit();

   private:
    Controller& controller_;
    std::vector<Change> changes_;
    bool stands_ = false;
  };

 private:
  /// Perform an operation that is permitted in a batch. Add changes of queues to `changes`.
  nlohmann::json perform_one(ObjectReader& reader, const std::string& op,
                             std::vector<Change>& changes);
  nlohmann::json queue_set(ObjectReader& reader, std::vector<Change>& changes);
  nlohmann::json events();
  nlohmann::json packet_out(const ObjectReader& reader);
  nlohmann::json batch(ObjectReader& reader);
  void change_queues(const std::vector<Change>& changes);

  Switch& switch_;
  Driver driver_;
  bool stopped_ = false;
};

}  // namespace nagi::p4
