// SPDX-License-Identifier: Apache-2.0
//
// Random draws of radio channels: 128 bits each, Philox4x32-10 as in random.hpp, for the waveforms
// of gr-nagi and for the link model alike: the same seed and channel fade the same in both.
#pragma once

#include <Random123/philox.h>

#include <cmath>
#include <cstdint>

#include "model/channel_key.hpp"

namespace nagi::model {

enum class ChannelPurpose : std::uint32_t {
  noise = 0,
  fading = 1,
  shadowing = 2,
  phase_noise = 3,
  interference = 4,
};

using ChannelWords = r123::Philox4x32::ctr_type;

/// The highest bit of the last counter word keeps it apart from the draws of random.hpp, which may
/// have the same seed.
inline ChannelWords channel_draw(const ChannelKey& key, ChannelPurpose purpose, std::uint32_t index,
                                 std::uint64_t of) {
  const r123::Philox4x32::key_type words = {
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  const ChannelWords counter = {
      {index, static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(of >> 32),
       0x80000000U | key.channel << 8 | static_cast<std::uint32_t>(purpose)}};
  return r123::Philox4x32{}(counter, words);
}

/// In [0, 1).
inline double unit_interval(std::uint32_t word) { return std::ldexp(word, -32); }

}  // namespace nagi::model
