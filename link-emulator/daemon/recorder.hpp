// SPDX-License-Identifier: Apache-2.0
//
// The record files: packets.bin (packet_record.hpp), transmissions.bin (transmission_record.hpp)
// and drops.pcapng. A file is written only if the configuration names it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "daemon/config.hpp"
#include "daemon/held_frame.hpp"
#include "daemon/radio_socket.hpp"
#include "io/background_file.hpp"
#include "io/pcapng_file.hpp"
#include "model/direction.hpp"
#include "model/medium/air_frame.hpp"
#include "service/account.hpp"

namespace nagi::daemon {

/// Writes the record files. `direction` is the number of a direction in packet_record.hpp.
class Recorder {
 public:
  /// Create the files. Throws InputError if that is not possible.
  explicit Recorder(const Config& config);

  /// Return whether packets are recorded.
  [[nodiscard]] bool has_packets() const { return packets_ != nullptr; }

  /// Record a packet that left the model and was handed to the kernel `late_ns` after it was due.
  void record_departure(std::uint8_t direction, const HeldFrame& held,
                        const model::Departure& departure, std::int64_t late_ns);
  /// Record a packet that is still held at the end.
  void record_held(std::uint8_t direction, const HeldFrame& held, const model::Packet& packet);
  /// Record a dropped packet with its frame.
  void record_drop(std::uint8_t direction, const model::Departure& departure,
                   std::int64_t realtime_ns, std::span<const std::uint8_t> frame);
  /// Record a transmission with its outcome; `snr` is in 0.01 dB.
  void record_transmission(std::uint8_t direction, const model::Transmission& transmission,
                           const HeldFrame& held, Outcome outcome, std::int16_t snr);
  /// Record a frame that has ended on a medium. `station` is the number of its sender, `index` the
  /// index of its packet, both as in packet_record.hpp.
  void record_frame(std::uint8_t station, const model::AirFrame& frame, std::uint32_t index);

  /// Start the threads that write the files, with the current privileges of the caller.
  void start();
  /// Write the remaining records, and add notices if records were lost.
  void close(runtime::Notices& notices);
  /// Return the number of records that could not be written to the disk in time.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  std::string packets_path_;
  std::string transmissions_path_;
  std::string drops_path_;
  std::unique_ptr<io::BackgroundFile> packets_;
  std::unique_ptr<io::BackgroundFile> transmissions_;
  std::unique_ptr<io::PcapngFile> drops_;
};

}  // namespace nagi::daemon
