// SPDX-License-Identifier: Apache-2.0
//
// Calculates when transmissions of an output port end. The port has a rate in bit/s, a rate in
// packets/s, or both; with both, the rate at which a packet takes longer applies. The arithmetic is
// that of the link emulator's rate server. It is exact over a busy period, because remainders of
// rounding to nanoseconds are carried over to the next packet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/units.hpp"
#include "model/server.hpp"

namespace nagi::p4 {

struct Rates {
  std::optional<Bitrate> bits;           // bit/s, which count a packet's size plus overhead
  std::optional<std::uint64_t> packets;  // packets/s
  nagi::Bytes overhead;                  // bytes per packet, such as framing
  bool operator==(const Rates&) const = default;
};

class PortServer {
 public:
  explicit PortServer(const Rates& rates)
      : overhead_(rates.overhead),
        is_limited_(rates.bits || rates.packets),
        bits_(of_bits(rates)),
        packets_(of_packets(rates)) {}

  /// Begin to send a packet of `size` at `at`, which must not be before until(). Return the end of
  /// the transmission.
  Instant begin(nagi::Bytes size, Instant at) {
    if (!is_limited_) return bits_until_ = packets_until_ = at;
    bits_until_ = bits_.begin(size + overhead_, at, at == bits_until_);
    packets_until_ = packets_.begin(one_packet, at, at == packets_until_);
    return until();
  }
  /// Change the rates. Return the new end of the transmission in progress, if there is one. The
  /// overhead of this transmission does not change.
  Instant change(const Rates& rates, Instant at) {
    overhead_ = rates.overhead;
    is_limited_ = rates.bits || rates.packets;
    bits_until_ = bits_.change(of_bits(rates), at);
    packets_until_ = packets_.change(of_packets(rates), at);
    return until();
  }
  /// Return the end of the last transmission, which may be in the future.
  [[nodiscard]] Instant until() const { return std::max(bits_until_, packets_until_); }
  /// Return the bytes of a packet that count for the rate: its size plus the overhead.
  [[nodiscard]] nagi::Bytes counted(nagi::Bytes size) const { return size + overhead_; }

 private:
  // A rate in packets/s is handled as a rate in bytes/s with packets of one byte.
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
