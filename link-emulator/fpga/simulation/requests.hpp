// SPDX-License-Identifier: Apache-2.0
//
// Parsers of nagi-link's requests (daemon/fpga_protocol.hpp). They check a request before the core
// processes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/direction.hpp"

namespace nagi::fpga {

/// The configuration of a link's core.
struct LinkConfiguration {
  std::uint64_t seed = 0;
  std::uint32_t link = 0;
  std::array<model::DirectionConfig, 2> directions;  // forward, backward
};

/// Read the JSON of a request `configure`. Throws InputError if the JSON is malformed, or if
/// nagi-link has another version.
LinkConfiguration read_configuration(std::span<const std::byte> request);

/// A frame that arrives. `frame` points into the request.
struct FrameArrival {
  std::int64_t at_ns = 0;
  std::size_t direction = 0;
  std::span<const std::byte> frame;
};

/// A request to advance the core's time to `to_ns`.
struct Advance {
  std::int64_t to_ns = 0;
  std::vector<FrameArrival> arrivals;
};

/// Read a request `advance` to a core whose time is `now_ns`. Throws InputError if arrivals are not
/// at ticks, not in order, or not between `now_ns` and `to_ns`, or if a frame is empty or too long.
/// Throws std::system_error if the request is incomplete.
Advance read_advance(std::span<const std::byte> request, std::int64_t now_ns);

}  // namespace nagi::fpga
