// SPDX-License-Identifier: Apache-2.0
//
// Cuts large segments as a network card would: see match.hpp.
#include <algorithm>
#include <unordered_map>

#include "native/match.hpp"

namespace nagi::captures {

/// Reduce the packet to the first segment that a card would send; `rest` keeps the remainder.
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

/// Determine, after the first pass, the length to which large segments are cut. Return whether
/// there are any.
bool Matcher::find_sizes() {
  constexpr std::uint32_t timestamps = 12;
  // the shortest MSS that is plausible without the option
  constexpr std::uint32_t shortest_mss = 500;
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
    // Without the MSS, one capture must have segments of a plausible length.
    const bool is_large =
        lengths.mss != 0 ? most > lengths.mss : least >= shortest_mss && most >= 2 * least;
    if (least == 0 || !is_large) continue;
    const bool both = lengths.mss != 0 && least > lengths.mss;
    sizes_[endpoints] = both ? lengths.mss - timestamps : least;
  }
  return !sizes_.empty();
}
}  // namespace nagi::captures
