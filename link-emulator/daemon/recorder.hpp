// SPDX-License-Identifier: Apache-2.0
//
// The files that say what became of packets: packets.bin (packet_record.hpp), transmissions.bin
// (transmission_record.hpp) and drops.pcapng. Each is written only if the configuration names it.
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

class Recorder {
 public:
  /// Makes the files. Throws InputError if one cannot be made.
  explicit Recorder(const Config& config);

  /// Whether packets are recorded.
  [[nodiscard]] bool has_packets() const { return packets_ != nullptr; }

  /// A packet left the model, and was handed to the kernel `late_ns` after it was due. `direction`:
  /// the number of a direction, here and below.
  void record_departure(std::uint8_t direction, const HeldFrame& held,
                        const model::Departure& departure, std::int64_t late_ns);
  /// A packet is still held at the end.
  void record_held(std::uint8_t direction, const HeldFrame& held, const model::Packet& packet);
  /// A packet was dropped. `frame`: its frame.
  void record_drop(std::uint8_t direction, const model::Departure& departure,
                   std::int64_t realtime_ns, std::span<const std::uint8_t> frame);
  /// A transmission was resolved.
  void record_transmission(std::uint8_t direction, const model::Transmission& transmission,
                           const HeldFrame& held, Outcome outcome, std::int16_t snr);
  /// A frame on a medium ended. `station`: the number of its sender; `index`: of the packet.
  void record_frame(std::uint8_t station, const model::AirFrame& frame, std::uint32_t index);

  /// Starts the threads that write, with the rights that the caller has now.
  void start();
  /// Writes what is left. Notes what was lost.
  void close(runtime::Notices& notices);
  /// Records that the disk could not take.
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
