// SPDX-License-Identifier: Apache-2.0
#include "model/units.hpp"

namespace nagi::model {

Packets bandwidth_delay_product(std::uint64_t bdp_millionths, Bitrate rate, Duration base_rtt,
                                Bytes packet) {
  using Wide = unsigned __int128;
  const Wide bit_nanoseconds =
      Wide{bdp_millionths} * rate.bits_per_second * static_cast<std::uint64_t>(base_rtt.count());
  const Wide per_packet = Wide{packet.count} * 8 * 1'000'000'000 * 1'000'000;
  return {static_cast<std::uint64_t>((bit_nanoseconds + per_packet - 1) / per_packet)};
}

}  // namespace nagi::model
