// SPDX-License-Identifier: Apache-2.0
//
// What the PHY gives the MAC of a medium: slots, interframe spaces, and how long frames take on the
// air (IEEE 802.11-2020, 10.3.2.3 for interframe spaces; PHYs in phys.json).
#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "model/medium/phy_tables.hpp"

namespace nagi::model {

struct PhyConfig {
  const PhyTable* table = &phy_tables[1];
  bool short_preamble = false;
  Bitrate data_rate;
  Bitrate basic_rate;  // of RTS, CTS, ACK and broadcasts
};

/// Bytes of frames on the air, their check sequence (FCS) included.
constexpr Bytes rts_bytes{20};
constexpr Bytes cts_bytes{14};
constexpr Bytes ack_bytes{14};
/// Of DATA beside the IP packet: MAC header, LLC and SNAP, FCS.
constexpr Bytes data_overhead{24 + 8 + 4};

class Phy {
 public:
  explicit Phy(const PhyConfig& config) : config_(config) {}

  [[nodiscard]] Duration slot() const { return Duration{config_.table->slot_ns}; }
  [[nodiscard]] Duration sifs() const { return Duration{config_.table->sifs_ns}; }
  [[nodiscard]] Duration difs() const { return sifs() + 2 * slot(); }
  /// After a frame that was not received correctly: long enough for an ACK of it at the lowest
  /// rate.
  [[nodiscard]] Duration eifs() const;
  /// Preamble and header of the PHY, after which a receiver knows that a frame has begun.
  [[nodiscard]] Duration preamble() const;

  [[nodiscard]] Duration rts() const { return frame(rts_bytes, config_.basic_rate); }
  [[nodiscard]] Duration cts() const { return frame(cts_bytes, config_.basic_rate); }
  [[nodiscard]] Duration ack() const { return frame(ack_bytes, config_.basic_rate); }
  /// An IP packet to one station.
  [[nodiscard]] Duration data(Bytes ip) const {
    return frame(ip + data_overhead, config_.data_rate);
  }
  /// An IP packet to all that hear it.
  [[nodiscard]] Duration broadcast(Bytes ip) const {
    return frame(ip + data_overhead, config_.basic_rate);
  }
  /// From the end of an RTS or DATA until its sender misses the begin of an answer (10.3.2.9,
  /// 10.3.2.11).
  [[nodiscard]] Duration response_timeout() const { return sifs() + slot() + preamble(); }

 private:
  [[nodiscard]] Duration frame(Bytes mpdu, Bitrate rate) const;

  PhyConfig config_;
};

}  // namespace nagi::model
