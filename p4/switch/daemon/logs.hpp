// SPDX-License-Identifier: Apache-2.0
//
// What a switch tells beside its account, as files: digests, queue depth over time, packets that
// were dropped. Instants count from the epoch of the switch.
//
//   digests, a line each   {"at_ns": 1000, "digest": "Sample", "values": [2, 7, ...]}
//                          values in the order of the program's: p4c has names for few of them
//   queues, a line a port and an interval in which something waited, was sent or was dropped
//                          {"at_ns": 10000000, "port": 1,      the end of the interval
//                           "packets": 3, "bytes": 3156,       waiting then
//                           "max_packets": 9, "mean_packets": 4.2, "mean_bytes": 4418.4,
//                           "sent_packets": 12, "sent_bytes": 12624, "overflows": 0}
//                           of sent packets are IP bytes, counted when they begin to be sent
//   drops                  pcapng, one interface a port and side ("1.in", "1.out"), the cause as
//                          comment: "queue overflow", "no such priority" (out); "ingress", the same
//                          with ", after a parser error", ", after a wrong checksum" or ",
//                          recirculated" (the program dropped it there); "egress" (in: at a port
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
  /// Makes the files that the configuration names. `epoch_realtime_ns`: the wall-clock time of
  /// instant 0, for captures. Throws InputError if one cannot be made.
  Logs(const SwitchConfig& config, std::int64_t epoch_realtime_ns, io::WhenBehind when_behind);

  [[nodiscard]] bool wants_drops() const { return drops_ != nullptr; }
  void add(const Drop& drop);
  /// Notes what has happened at a switch's queues since the last time. Nothing without a file.
  void sample(Switch& whole);
  [[nodiscard]] bool wants_samples() const { return queues_ != nullptr; }
  /// Takes the switch's new digests.
  void take_digests(Switch& whole);
  /// Those since the last call, for the controller.
  nlohmann::json digests_for_controller();

  /// Starts the threads that write, with the rights that the caller has now.
  void start();
  /// Completes the files. Returns what was lost, a sentence a file.
  std::vector<std::string> close();
  /// Records that the disk could not take.
  [[nodiscard]] std::uint64_t lost() const;
  /// Digests that no controller came for in time.
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
