// SPDX-License-Identifier: Apache-2.0
//
// What sends an output port's packets, one after the other: at a rate in bit/s, in packets/s, or at
// whichever of the two is slower for the packet. The arithmetic is that of the link emulator's rate
// server: exact over a busy period, as what rounding to nanoseconds leaves over is carried.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "model/server.hpp"

namespace nagi::p4 {

struct Rates {
  std::optional<Bitrate> bits;           // a second; of the packet's size plus overhead
  std::optional<std::uint64_t> packets;  // a second
  nagi::Bytes overhead;                  // framing, a packet
  bool operator==(const Rates&) const = default;
};

class PortServer {
 public:
  explicit PortServer(const Rates& rates)
      : overhead_(rates.overhead),
        is_limited_(rates.bits || rates.packets),
        bits_(of_bits(rates)),
        packets_(of_packets(rates)) {}

  /// Begins to send a packet of `size` at `at`, which must not lie before until(). Returns when it
  /// will have been sent.
  Instant begin(nagi::Bytes size, Instant at) {
    if (!is_limited_) return bits_until_ = packets_until_ = at;
    bits_until_ = bits_.begin(size + overhead_, at, at == bits_until_);
    packets_until_ = packets_.begin(one_packet, at, at == packets_until_);
    return until();
  }
  /// Goes on at other rates. Returns when the packet that is being sent, if there is one, will now
  /// have been sent; its overhead stays what it was.
  Instant change(const Rates& rates, Instant at) {
    overhead_ = rates.overhead;
    is_limited_ = rates.bits || rates.packets;
    bits_until_ = bits_.change(of_bits(rates), at);
    packets_until_ = packets_.change(of_packets(rates), at);
    return until();
  }
  /// When the packet begun last has been sent.
  [[nodiscard]] Instant until() const { return std::max(bits_until_, packets_until_); }
  /// What it counts of a packet.
  [[nodiscard]] nagi::Bytes counted(nagi::Bytes size) const { return size + overhead_; }

 private:
  // Packets are counted as a server of bits would count packets of a byte each.
  static constexpr nagi::Bytes one_packet{1};

  static model::RateConfig of_bits(const Rates& rates) {
    if (!rates.bits) return Unlimited{};
    return *rates.bits;
  }
  static model::RateConfig of_packets(const Rates& rates) {
    if (!rates.packets) return Unlimited{};
    return Bitrate{8 * *rates.packets};
  }

  nagi::Bytes overhead_;
  bool is_limited_;
  model::RateServer bits_;
  model::RateServer packets_;
  Instant bits_until_ = Instant::min();
  Instant packets_until_ = Instant::min();
};

}  // namespace nagi::p4
