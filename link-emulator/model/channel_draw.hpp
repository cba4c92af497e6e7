// SPDX-License-Identifier: Apache-2.0
//
// Random draws of radio channels, 128 bits each, by Philox4x32-10 as in random.hpp. The waveforms
// of gr-nagi and the link model use the same draws, so a channel with a given seed and number fades
// equally in both.
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

/// Return draw number `index` for the object number `object`. The purpose determines what objects
/// are, such as paths or samples.
///
/// The highest bit of the last counter word is set, so that these draws are independent of the
/// draws of random.hpp with the same seed.
inline ChannelWords channel_draw(const ChannelKey& key, ChannelPurpose purpose, std::uint32_t index,
                                 std::uint64_t object) {
  const r123::Philox4x32::key_type words = {
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  const ChannelWords counter = {
      {index, static_cast<std::uint32_t>(object), static_cast<std::uint32_t>(object >> 32),
       0x80000000U | key.channel << 8 | static_cast<std::uint32_t>(purpose)}};
  return r123::Philox4x32{}(counter, words);
}

/// Return word / 2^32, a number in [0, 1).
inline double unit_interval(std::uint32_t word) { return std::ldexp(word, -32); }

}  // namespace nagi::model
