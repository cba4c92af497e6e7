// SPDX-License-Identifier: Apache-2.0
//
// The key of a radio channel: a seed, and the number of the channel among those with this seed.
#pragma once

#include <cstdint>

namespace nagi::model {

constexpr std::uint32_t max_channels = 1U << 23;

struct ChannelKey {
  std::uint64_t seed = 0;
  std::uint32_t channel = 0;  // 2 x link id, plus 1 for direction backward; below max_channels
};

}  // namespace nagi::model
