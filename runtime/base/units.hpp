// SPDX-License-Identifier: Apache-2.0
//
// Units of the link model: instants and durations in whole nanoseconds, bit rates, sizes. The clock
// has no now(), because callers pass the time to the model.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace nagi {

/// Event time, counted from the link's epoch.
struct Clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<Clock, duration>;
  static constexpr bool is_steady = true;
};
using Duration = Clock::duration;
using Instant = Clock::time_point;

/// A size in bytes. Unless stated otherwise, it is the size of the IP packet with its header.
struct Bytes {
  std::uint64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
  Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
  Bytes& operator-=(Bytes other) {
    count -= other.count;
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
};

/// A number of packets.
struct Packets {
  std::uint64_t count = 0;
  auto operator<=>(const Packets&) const = default;
};

/// A rate or a size without a limit.
struct Unlimited {};

/// A rate in bit/s.
struct Bitrate {
  std::uint64_t bits_per_second = 0;
  auto operator<=>(const Bitrate&) const = default;
};

/// Return the smaller of `value` and 2^64 - 1.
std::uint64_t saturated(unsigned __int128 value);

/// Return n bandwidth-delay products in packets, rounded up: n x rate x base RTT / (8 x packet
/// size). `bdp_millionths` is n x 10^6, so that the result is exact. The result is at most 2^64
/// - 1.
Packets bandwidth_delay_product(std::uint64_t bdp_millionths, Bitrate rate, Duration base_rtt,
                                Bytes packet);

}  // namespace nagi
