// SPDX-License-Identifier: Apache-2.0
//
// A capture of all frames on the air of a medium, as by a monitor that receives every frame. The
// format is pcapng with IEEE 802.11 frames, radiotap headers (radiotap.org) and no FCS. The
// timestamp is the end of the frame; TSFT is the time of its first bit. A frame that its
// destination did not receive has radiotap's flag for a bad FCS.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/config.hpp"
#include "io/pcapng_file.hpp"
#include "model/medium/air_frame.hpp"
#include "model/medium/phy.hpp"
#include "service/account.hpp"

namespace nagi::daemon {

constexpr MacAddress broadcast_mac = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

/// The capture file of a medium.
class Monitor {
 public:
  /// Create the file. Throws InputError if that is not possible.
  Monitor(std::string path, const model::PhyConfig& phy, const std::string& medium);

  /// Add a frame that has ended. `ethernet` is the Ethernet frame that DATA carries, else empty.
  void add(const model::AirFrame& frame, const MacAddress& receiver, const MacAddress& sender,
           std::span<const std::uint8_t> ethernet, std::int64_t realtime_ns);
  /// Write the remaining frames, and add a notice if frames were lost.
  void close(runtime::Notices& notices);
  /// Return the number of frames that could not be written to the disk in time.
  [[nodiscard]] std::uint64_t lost() const { return file_->file().lost(); }

 private:
  void put_radiotap(const model::AirFrame& frame);
  template <class Number>
  void put(Number value);
  void append(std::span<const std::uint8_t> bytes);

  std::string path_;
  model::PhyConfig phy_;
  model::Phy times_;
  std::unique_ptr<io::PcapngFile> file_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace nagi::daemon
