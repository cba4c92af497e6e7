// SPDX-License-Identifier: Apache-2.0
//
// The log files of a switch: digests, queue depths over time, dropped packets. Times count from the
// start of the switch's clock (time 0).
//
//   digests, one per line  {"at_ns": 1000, "digest": "Sample", "values": [2, 7, ...]}
//                          the values have the order of the program; they have no keys, because
//                          p4c names few of them
//   queues, one line per port and interval, without intervals in which no packet waited, was sent
//                          or was dropped
//                          {"at_ns": 10000000, "port": 1,      end of the interval
//                           "packets": 3, "bytes": 3156,       waiting at the end
//                           "max_packets": 9, "mean_packets": 4.2, "mean_bytes": 4418.4,
//                           "sent_packets": 12, "sent_bytes": 12624, "overflows": 0}
//                          a sent packet and its IP bytes count at the start of its transmission
//   drops                  pcapng. Each port has two interfaces, such as "1.in" and "1.out"; the
//                          controller's port is called "cpu". Packets dropped before egress are
//                          at "in" of the port of their arrival, packets dropped in egress or after
//                          recirculation at "out" of their output port, or at "in" if the output
//                          port is not configured. The comment of a packet is the cause:
//                          "queue overflow" or "no such priority"; "no such port" (not configured);
//                          "ingress" (the program dropped the packet in ingress), alone or with
//                          ", after a parser error", ", after a wrong checksum" or
//                          ", recirculated"; "egress" (the program dropped it in egress);
//                          "no such multicast group"; "failed assertion"; "too long"; "resubmitted
//                          or recirculated too often"; "copies without end"
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
  /// Create the files that the configuration names. `epoch_realtime_ns` is the wall-clock time at
  /// time 0, for captures. `when_behind` says what happens if a disk is too slow. Throws InputError
  /// if a file cannot be created.
  Logs(const SwitchConfig& config, std::int64_t epoch_realtime_ns, io::WhenBehind when_behind);

  /// Return whether there is a log of drops. Otherwise add() must not be called.
  [[nodiscard]] bool wants_drops() const { return drops_ != nullptr; }
  void add(const Drop& drop);
  /// Append one line per port to the log of queues, for the time since the last call. Only if
  /// wants_samples().
  void sample(Switch& p4_switch);
  [[nodiscard]] bool wants_samples() const { return queues_ != nullptr; }
  /// Fetch the new digests of a switch, log them, and store them for the controller.
  void take_digests(Switch& p4_switch);
  /// Return and remove the stored digests.
  nlohmann::json digests_for_controller();

  /// Start the writing threads, with the caller's present privileges.
  void start();
  /// Close the files. Return one sentence for each file that is incomplete.
  std::vector<std::string> close();
  /// Return the number of records that could not be written in time.
  [[nodiscard]] std::uint64_t lost() const;
  /// Return the number of digests that no controller fetched in time.
  [[nodiscard]] std::uint64_t digests_not_fetched() const { return digests_not_fetched_; }

 private:
  /// Counters of a port at the last call of sample().
  struct PreviousCounts {
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
  std::vector<PreviousCounts> previous_counts_;
};

}  // namespace nagi::p4
