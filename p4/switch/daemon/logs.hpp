// SPDX-License-Identifier: Apache-2.0
//
// The log files of a switch: digests, queue depth over time, dropped packets. Times count from the
// epoch of the switch.
//
//   digests, one per line  {"at_ns": 1000, "digest": "Sample", "values": [2, 7, ...]}
//                          values in the order of the program: p4c names few of them
//   queues, one line per port and interval in which packets waited, were sent or were dropped
//                          {"at_ns": 10000000, "port": 1,      end of the interval
//                           "packets": 3, "bytes": 3156,       waiting at the end
//                           "max_packets": 9, "mean_packets": 4.2, "mean_bytes": 4418.4,
//                           "sent_packets": 12, "sent_bytes": 12624, "overflows": 0}
//                           sent packets and their IP bytes count at the start of transmission
//   drops                  pcapng with one interface per port and side ("1.in", "1.out") and the
//                          cause as comment: "queue overflow", "no such priority" (out); "ingress",
//                          alone or with ", after a parser error", ", after a wrong checksum" or
//                          ", recirculated" (the program dropped it there); "egress" (in: at a port
//                          that is not configured); "no such multicast group", "no such port" (in),
//                          "failed assertion", "too long", "resubmitted or recirculated too often",
//                          "copies without end". The controller's port is called "cpu".
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/background_file.hpp"
#include "io/pcapng_file.hpp"
#include "switch/daemon/config.hpp"
#include "switch/daemon/switch.hpp"

namespace nagi::p4 {

class Logs {
 public:
  /// Create the files that the configuration names. `epoch_realtime_ns` is the wall-clock time of
  /// time 0, for captures. Throws InputError if a file cannot be created.
  Logs(const SwitchConfig& config, std::int64_t epoch_realtime_ns, io::WhenBehind when_behind);

  [[nodiscard]] bool wants_drops() const { return drops_ != nullptr; }
  void add(const Drop& drop);
  /// Record the events at a switch's queues since the last call. Does nothing without a file.
  void sample(Switch& whole);
  [[nodiscard]] bool wants_samples() const { return queues_ != nullptr; }
  /// Log the switch's new digests.
  void take_digests(Switch& whole);
  /// Return the digests since the last call, for the controller.
  nlohmann::json digests_for_controller();

  /// Start the writing threads, with the caller's present privileges.
  void start();
  /// Close the files. Return losses, one sentence per file.
  std::vector<std::string> close();
  /// Return the number of records that could not be written in time.
  [[nodiscard]] std::uint64_t lost() const;
  /// Return the number of digests that no controller fetched in time.
  [[nodiscard]] std::uint64_t digests_not_fetched() const { return digests_not_fetched_; }

 private:
  struct Seen {
    std::uint64_t sent = 0;
    std::uint64_t bytes = 0;
    std::uint64_t overflows = 0;
  };
  struct File {
    std::string path;
    io::BackgroundFile* file;
  };

  static void append(io::BackgroundFile& file, const nlohmann::json& line);
  [[nodiscard]] std::vector<File> files() const;

  const SwitchConfig& config_;
  std::int64_t epoch_realtime_ns_;
  std::unique_ptr<io::BackgroundFile> digests_;
  std::unique_ptr<io::BackgroundFile> queues_;
  std::unique_ptr<io::PcapngFile> drops_;
  std::deque<nlohmann::json> for_controller_;
  std::uint64_t digests_not_fetched_ = 0;
  std::vector<Seen> seen_;
};

}  // namespace nagi::p4
