// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <limits>

namespace nagi {

std::uint64_t saturated(unsigned __int128 value) {
  constexpr std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max();
  return value > maximum ? maximum : static_cast<std::uint64_t>(value);
}

Packets bandwidth_delay_product(std::uint64_t bdp_millionths, Bitrate rate, Duration base_rtt,
                                Bytes packet) {
  using Wide = unsigned __int128;
  const Wide per_packet = Wide{packet.count} * 8 * 1'000'000'000 * 1'000'000;
  Wide bit_nanoseconds = 0;
  if (__builtin_mul_overflow(Wide{bdp_millionths} * rate.bits_per_second,
                             static_cast<Wide>(base_rtt.count()), &bit_nanoseconds)) {
    return {std::numeric_limits<std::uint64_t>::max()};
  }
  const bool rounds_up = bit_nanoseconds % per_packet != 0;
  return {saturated(bit_nanoseconds / per_packet + (rounds_up ? 1 : 0))};
}

}  // namespace nagi
