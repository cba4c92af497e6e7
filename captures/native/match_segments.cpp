// SPDX-License-Identifier: Apache-2.0
//
// Cuts large segments as a network card would: see match.hpp.
#include <algorithm>
#include <unordered_map>

#include "native/match.hpp"

namespace nagi::captures {

/// Cut the packet to the first segment that a network card would send; `rest` is the remainder.
void Matcher::Input::cut() {
  constexpr std::uint8_t last_flags = flag_fin | flag_psh;
  constexpr std::uint8_t first_flags = flag_cwr;
  if (packet.payload <= cut_length) {
    cut_length = 0;
    return;
  }
  rest = packet;
  rest.sequence += cut_length;
  rest.payload -= cut_length;
  rest.flags = static_cast<std::uint8_t>(rest.flags & ~first_flags);
  if (rest.identification != 0) ++rest.identification;
  packet.payload = cut_length;
  packet.flags = static_cast<std::uint8_t>(packet.flags & ~last_flags);
}

/// Determine, after the first pass, the lengths to which large segments are cut. Return whether
/// there are large segments.
bool Matcher::find_sizes() {
  constexpr std::uint32_t timestamps = 12;
  // the shortest MSS that is plausible if the option was not captured
  constexpr std::uint32_t shortest_mss = 500;
  struct Lengths {
    std::array<std::uint32_t, 2> longest{};
    std::uint32_t mss = 0;
  };
  std::unordered_map<Endpoints, Lengths, HashOfEndpoints> lengths_by_direction;
  for (unsigned side = 0; side < 2; ++side) {
    for (const ConnectionState& state : states_[side]) {
      for (unsigned direction = 0; direction < 2; ++direction) {
        if (state.longest[direction] == 0) continue;
        Lengths& lengths = lengths_by_direction[state.endpoints[direction]];
        lengths.longest[side] = std::max(lengths.longest[side], state.longest[direction]);
        lengths.mss = std::max(lengths.mss, state.mss[1 - direction]);
      }
    }
  }
  for (const auto& [endpoints, lengths] : lengths_by_direction) {
    const auto [shorter, longer] = std::minmax(lengths.longest[0], lengths.longest[1]);
    // Without the MSS, one capture must have segments of a plausible length.
    const bool is_large =
        lengths.mss != 0 ? longer > lengths.mss : shorter >= shortest_mss && longer >= 2 * shorter;
    if (shorter == 0 || !is_large) continue;
    const bool both = lengths.mss != 0 && shorter > lengths.mss;
    sizes_[endpoints] = both ? lengths.mss - timestamps : shorter;
  }
  return !sizes_.empty();
}
}  // namespace nagi::captures
