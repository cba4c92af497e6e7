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
  // Of a symbol, in 10^-9 bits; a rate in bit/s and a time in ns give whole ones.
  const std::uint64_t of_symbol =
      rate.bits_per_second * static_cast<std::uint64_t>(table.symbol_ns);
  const std::uint64_t symbols = (bits * 1'000'000'000 + of_symbol - 1) / of_symbol;
  return preamble() + Duration{static_cast<std::int64_t>(symbols) * table.symbol_ns} +
         Duration{table.extension_ns};
}

}  // namespace nagi::model
