// SPDX-License-Identifier: Apache-2.0
//
// What nagi-link's requests say (daemon/fpga_protocol.hpp), before a core has to do it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/direction.hpp"

namespace nagi::fpga {

/// What a link's core is told before it carries packets.
struct LinkConfiguration {
  std::uint64_t seed = 0;
  std::uint32_t link = 0;
  std::array<model::DirectionConfig, 2> directions;  // forward, backward
};

/// Reads the JSON of a request `configure`. Throws InputError if it is none, or of another version.
LinkConfiguration read_configuration(std::span<const std::byte> request);

/// A frame that arrives; its bytes are the request's.
struct FrameArrival {
  std::int64_t at_ns = 0;
  std::size_t direction = 0;
  std::span<const std::byte> frame;
};

struct Advance {
  std::int64_t to_ns = 0;
  std::vector<FrameArrival> arrivals;
};

/// Reads a request `advance` to a core whose time is `now_ns`. Throws InputError if arrivals are
/// not at ticks, out of order, or frames that a core does not take; std::system_error if it is cut
/// off.
Advance read_advance(std::span<const std::byte> request, std::int64_t now_ns);

}  // namespace nagi::fpga
