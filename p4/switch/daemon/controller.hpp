// SPDX-License-Identifier: Apache-2.0
//
// What a controller may ask of a switch at work: the machine's operations (operations.hpp), and
//
//   {"op": "queue_set", "port": 1, "rate_bps": 5000000, ...}   "queue": what holds now
//       any of rate_bps, rate_pps, overhead_bytes, depth_packets, depth_bytes; null takes one away.
//       No packet is lost by it.
//   {"op": "digests"}                                          "digests": those since the last time
//   {"op": "events"}                                           what happened since the last time:
//       "packets": [{"bytes": "0a1b...", "at_us": 1000}, ...]  that left by the controller's port,
//       "digests": the same as of digests,
//       "timeouts": [{"table": T, ...}, ...]                   entries as table_read has them,
//       "lost": 0                                              packets, for which no room was left
//   {"op": "packet_out", "bytes": "0a1b..."}                   comes in by the controller's port
//   {"op": "pipeline_set", "program": "...", "name": "a.json"} the text of the compiler's JSON
//   takes
//       the place of the program and all its state. Ports and queues go on; what waits in queues
//       leaves by the program that it came in by.
//   {"op": "pipeline_check", "program": "...", "name": "a.json"}   loads it, and that is all
//   {"op": "pipeline_read"}                                    "name", "program": its text
//   {"op": "batch", "operations": [...]}                       "answers": [...]
//       operations, queue_set among them: all or none. No packet meets some of them only.
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

/// Bytes of a request: a batch may be long.
constexpr std::size_t longest_request = 64 << 20;

class Controller {
 public:
  /// What it needs of whoever drives the switch.
  struct Driver {
    std::function<void()> bring_up_to_date;  // the switch, to this instant
    std::function<void(std::size_t port)> queue_changed;
    std::function<nlohmann::json()> digests;
    std::function<nlohmann::json()> account;
  };
  Controller(Switch& controlled, Driver driver) : switch_(controlled), driver_(std::move(driver)) {}

  /// Throws ConfigError or InputError if a request is refused: nothing has happened then.
  nlohmann::json answer(const nlohmann::json& request);
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// Performs the operations in a file, one a line: all or none. Throws InputError with the line.
  void load(const std::string& path);

  /// A queue to be changed.
  struct Change {
    std::size_t port;
    QueueConfig queue;
  };

  /// Operations of which all stand after commit(), and none if it goes without.
  class Batch {
   public:
    explicit Batch(Controller& controller);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();
    /// Throws as answer() does.
    nlohmann::json perform(const nlohmann::json& operation,
                           const nlohmann::json::json_pointer& where);
    void commit();

   private:
    Controller& controller_;
    std::vector<Change> changes_;
    bool stands_ = false;
  };

 private:
  /// Performs what may stand in a batch. What it does to queues is noted in `changes`.
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
