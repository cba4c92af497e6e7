// SPDX-License-Identifier: Apache-2.0
//
// Large segments, which a network card cuts or joins, are cut as match.hpp says.
#include <algorithm>
#include <unordered_map>

#include "native/match.hpp"

namespace nagi::captures {

/// Keeps of a segment what a card makes its first one; the rest comes next.
void Matcher::Input::cut() {
  constexpr std::uint8_t of_last = flag_fin | flag_psh;
  constexpr std::uint8_t of_first = flag_cwr;
  if (packet.payload <= cut_at) {
    cut_at = 0;
    return;
  }
  rest = packet;
  rest.sequence += cut_at;
  rest.payload -= cut_at;
  rest.flags = static_cast<std::uint8_t>(rest.flags & ~of_first);
  if (rest.identification != 0) ++rest.identification;
  packet.payload = cut_at;
  packet.flags = static_cast<std::uint8_t>(packet.flags & ~of_last);
}

/// Finds out, after the first pass, to which length large segments are to be cut. Returns whether
/// there are any.
bool Matcher::find_sizes() {
  constexpr std::uint32_t timestamps = 12;
  constexpr std::uint32_t shortest_mss = 500;  // that is believed without seeing it
  struct Lengths {
    std::array<std::uint32_t, 2> longest{};
    std::uint32_t mss = 0;
  };
  std::unordered_map<Endpoints, Lengths, HashOfEndpoints> found;
  for (unsigned side = 0; side < 2; ++side) {
    for (const Local& each : locals_[side]) {
      for (unsigned direction = 0; direction < 2; ++direction) {
        if (each.longest[direction] == 0) continue;
        Lengths& lengths = found[each.endpoints[direction]];
        lengths.longest[side] = std::max(lengths.longest[side], each.longest[direction]);
        lengths.mss = std::max(lengths.mss, each.mss[1 - direction]);
      }
    }
  }
  for (const auto& [endpoints, lengths] : found) {
    const auto [least, most] = std::minmax(lengths.longest[0], lengths.longest[1]);
    // Without the MSS, one capture has to have segments of a likely length.
    const bool is_large =
        lengths.mss != 0 ? most > lengths.mss : least >= shortest_mss && most >= 2 * least;
    if (least == 0 || !is_large) continue;
    const bool both = lengths.mss != 0 && least > lengths.mss;
    sizes_[endpoints] = both ? lengths.mss - timestamps : least;
  }
  return !sizes_.empty();
}
}  // namespace nagi::captures
