// SPDX-License-Identifier: Apache-2.0
//
// The requests of a controller to a running switch: the operations in operations.hpp, and the
// following ones. The keys of the answer are on the right.
//
//   {"op": "queue_set", "port": 1, "rate_bps": 5000000, ...}   "queue": all settings of the queue
//       sets any of rate_bps, rate_pps, overhead_bytes, depth_packets, depth_bytes; null removes
//       a limit. No packet is lost.
//   {"op": "digests"}                                          "digests": digests since the last
//                                                              request
//   {"op": "events"}                                           events since the last request:
//       "packets": [{"bytes": "0a1b...", "at_us": 1000}, ...]  packets at the controller's port,
//       "digests": as for "digests",
//       "timeouts": [{"table": T, ...}, ...]                   entries in the form of table_read,
//       "lost": 0                                              packets lost since the start of the
//                                                              switch, because too many waited
//   {"op": "packet_out", "bytes": "0a1b..."}
//       sends a packet into the controller's port.
//   {"op": "pipeline_set", "program": "...", "name": "a.json"}
//       replaces the program by the compiler's JSON in "program", and deletes the state of the old
//       one. Ports and queues do not change. Packets that wait in queues are still processed by
//       the old program.
//   {"op": "pipeline_check", "program": "...", "name": "a.json"}
//       checks whether pipeline_set would accept the program.
//   {"op": "pipeline_read"}                                    "name", and "program": the JSON
//   {"op": "batch", "operations": [...]}                       "answers": [...]
//       performs all operations (queue_set included) or none. No packet sees only some of them.
//   {"op": "show"}                                             "account": counters of the switch
//   {"op": "stop"}
//       ends nagi-switch.
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

/// Maximum length of a request in bytes, large enough for long batches.
constexpr std::size_t longest_request = 64 << 20;

class Controller {
 public:
  /// Functions of the program that advances the switch (run, replay or simulate).
  struct Driver {
    std::function<void()> bring_up_to_date;               // advances the switch to the present
    std::function<void(std::size_t port)> queue_changed;  // called after a change of a port's queue
    std::function<nlohmann::json()> digests;              // returns digests since the last call
    std::function<nlohmann::json()> account;              // returns the counters of the switch
  };
  Controller(Switch& controlled, Driver driver) : switch_(controlled), driver_(std::move(driver)) {}

  /// Perform a request and return the answer. Throws ConfigError if the request is invalid, or
  /// InputError if it is refused; in both cases nothing has changed.
  nlohmann::json answer(const nlohmann::json& request);
  /// Return whether a request "stop" was performed.
  [[nodiscard]] bool stopped() const { return stopped_; }

  /// Perform all operations in a file, one per line, or none. Throws InputError with the line.
  void load(const std::string& path);

  /// New settings of a port's queue.
  struct Change {
    std::size_t port;
    QueueConfig queue;
  };

  /// Operations that take effect together at commit(). Without commit(), the destructor undoes
  /// them.
  class Batch {
   public:
    explicit Batch(Controller& controller);
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();
    /// Perform an operation and return its answer. `where` is the position of the operation in the
    /// request, for errors. Throws as answer() does.
    nlohmann::json perform(const nlohmann::json& operation,
                           const nlohmann::json::json_pointer& where);
    void commit();

   private:
    Controller& controller_;
    std::vector<Change> changes_;
    bool committed_ = false;
  };

 private:
  /// Perform an operation that is permitted in a batch. Changes of queues are not made, but added
  /// to `changes`.
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
