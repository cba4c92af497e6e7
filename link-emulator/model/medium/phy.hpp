// SPDX-License-Identifier: Apache-2.0
//
// Timing that the PHY of a medium gives to the MAC: slots, interframe spaces (IEEE 802.11-2020,
// 10.3.2.3), and the durations of frames. phys.json holds the constants of the PHYs.
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "model/medium/phy_tables.hpp"

namespace nagi::model {

struct PhyConfig {
  const PhyTable* table = &phy_tables[1];
  bool short_preamble = false;
  Bitrate data_rate;
  Bitrate basic_rate;  // for RTS, CTS, ACK and broadcasts
};

// Lengths of frames, including the frame check sequence (FCS).
constexpr Bytes rts_bytes{20};
constexpr Bytes cts_bytes{14};
constexpr Bytes ack_bytes{14};
/// Length of a DATA frame minus its IP packet: MAC header, LLC and SNAP header, FCS.
constexpr Bytes data_overhead{24 + 8 + 4};

class Phy {
 public:
  explicit Phy(const PhyConfig& config) : config_(config) {}

  [[nodiscard]] Duration slot() const { return Duration{config_.table->slot_ns}; }
  [[nodiscard]] Duration sifs() const { return Duration{config_.table->sifs_ns}; }
  [[nodiscard]] Duration difs() const { return sifs() + 2 * slot(); }
  /// Return EIFS, the space after a frame that was not received correctly. It is long enough for an
  /// ACK of that frame at the lowest rate.
  [[nodiscard]] Duration eifs() const;
  /// Return the duration of the PHY's preamble and header, after which a receiver detects the
  /// frame.
  [[nodiscard]] Duration preamble() const;

  [[nodiscard]] Duration rts() const { return frame(rts_bytes, config_.basic_rate); }
  [[nodiscard]] Duration cts() const { return frame(cts_bytes, config_.basic_rate); }
  [[nodiscard]] Duration ack() const { return frame(ack_bytes, config_.basic_rate); }
  /// Return the duration of a DATA frame for one station; `ip` is the length of the IP packet.
  [[nodiscard]] Duration data(Bytes ip) const {
    return frame(ip + data_overhead, config_.data_rate);
  }
  /// Return the duration of a broadcast DATA frame.
  [[nodiscard]] Duration broadcast(Bytes ip) const {
    return frame(ip + data_overhead, config_.basic_rate);
  }
  /// Return the time after the end of an RTS or DATA frame within which a response must begin
  /// (10.3.2.9, 10.3.2.11).
  [[nodiscard]] Duration response_timeout() const { return sifs() + slot() + preamble(); }

 private:
  [[nodiscard]] Duration frame(Bytes mpdu, Bitrate rate) const;

  PhyConfig config_;
};

}  // namespace nagi::model
