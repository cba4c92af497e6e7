// SPDX-License-Identifier: Apache-2.0
//
// Which radio channel one is among those of a seed.
#pragma once

#include <cstdint>

namespace nagi::model {

constexpr std::uint32_t max_channels = 1U << 23;

struct ChannelKey {
  std::uint64_t seed = 0;
  std::uint32_t channel = 0;  // of a link, twice its id, and 1 more backward; below max_channels
};

}  // namespace nagi::model
