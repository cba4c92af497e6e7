// SPDX-License-Identifier: Apache-2.0
#include "model/medium/phy.hpp"

#include <algorithm>

namespace nagi::model {

Duration Phy::eifs() const {
  const Bitrate lowest{
      std::max(config_.table->rates_bps.front(),
               config_.short_preamble ? config_.basic_rate.bits_per_second : std::uint64_t{0})};
  return sifs() + frame(ack_bytes, lowest) + difs();
}

Duration Phy::preamble() const {
  return Duration{config_.short_preamble ? config_.table->short_preamble_ns
                                         : config_.table->preamble_ns};
}

Duration Phy::frame(Bytes mpdu, Bitrate rate) const {
  const PhyTable& table = *config_.table;
  const std::uint64_t bits =
      mpdu.count * 8 + static_cast<std::uint64_t>(table.service_and_tail_bits);
  // In units of 10^-9 bits, in which a rate in bit/s times a duration in ns is a whole number.
  const std::uint64_t bits_per_symbol =
      rate.bits_per_second * static_cast<std::uint64_t>(table.symbol_ns);
  const std::uint64_t symbols = (bits * 1'000'000'000 + bits_per_symbol - 1) / bits_per_symbol;
  return preamble() + Duration{static_cast<std::int64_t>(symbols) * table.symbol_ns} +
         Duration{table.extension_ns};
}

}  // namespace nagi::model
