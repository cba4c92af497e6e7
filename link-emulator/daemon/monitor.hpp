// SPDX-License-Identifier: Apache-2.0
//
// A capture of all frames on the air of a medium, as a monitor that hears everything would have it:
// pcapng, frames of IEEE 802.11 with radiotap headers (radiotap.org) and without FCS, stamped with
// the instants at which they ended; TSFT is when their first bits came. A frame that was not
// received by the station it was for has radiotap's flag of a bad FCS.
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

class Monitor {
 public:
  /// Makes the file. Throws InputError if it cannot be made.
  Monitor(std::string path, const model::PhyConfig& phy, const std::string& medium);

  /// A frame ended. `ethernet`: of DATA, the frame that it carries.
  void add(const model::AirFrame& frame, const MacAddress& receiver, const MacAddress& sender,
           std::span<const std::uint8_t> ethernet, std::int64_t realtime_ns);
  /// Writes what is left. Notes what was lost.
  void close(runtime::Notices& notices);
  /// Frames that the disk could not take.
  [[nodiscard]] std::uint64_t lost() const { return file_->file().lost(); }

 private:
  void radiotap(const model::AirFrame& frame);
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
