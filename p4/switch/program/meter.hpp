// SPDX-License-Identifier: Apache-2.0
//
// A meter with two rates and three colours (RFC 2698, colour-blind). As in bmv2, the total number
// of tokens granted since the start is rate x time, rounded down, so that rounding errors do not
// accumulate.
#pragma once

#include <array>
#include <cstdint>

namespace nagi::p4 {

struct MeterCell {
  struct Rate {
    double per_us = 0;
    std::uint64_t burst = 0;
    std::uint64_t tokens = 0;
    std::uint64_t granted = 0;  // tokens granted since the start
  };
  std::array<Rate, 2> rates{};  // committed, peak
  std::uint32_t used = 0;       // number of rates; 0: every packet is green

  /// Return the colour of a packet, 0 green, 1 yellow, 2 red, and take its tokens. `amount` is 1,
  /// or the length of the packet in bytes if the meter counts bytes.
  std::uint64_t colour(std::uint64_t amount, std::uint64_t now_us) {
    for (std::uint32_t i = used; i-- > 0;) {
      Rate& rate = rates[i];
      const double all = static_cast<double>(now_us) * rate.per_us;
      const auto granted = all < 9e18 ? static_cast<std::uint64_t>(all) : rate.granted;
      if (granted > rate.granted) {
        const std::uint64_t fresh = granted - rate.granted;
        rate.tokens = fresh >= rate.burst - rate.tokens ? rate.burst : rate.tokens + fresh;
        rate.granted = granted;
      }
      if (rate.tokens < amount) return i + 1;
      rate.tokens -= amount;
    }
    return 0;
  }
};

}  // namespace nagi::p4
