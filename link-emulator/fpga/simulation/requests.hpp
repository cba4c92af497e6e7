// SPDX-License-Identifier: Apache-2.0
//
// Parsing of nagi-link's requests (daemon/fpga_protocol.hpp), before the core processes them.
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

/// Read the JSON of a request `configure`. Throws InputError if it is malformed or of another
/// version.
LinkConfiguration read_configuration(std::span<const std::byte> request);

/// A frame that arrives; its bytes are part of the request.
struct FrameArrival {
  std::int64_t at_ns = 0;
  std::size_t direction = 0;
  std::span<const std::byte> frame;
};

struct Advance {
  std::int64_t to_ns = 0;
  std::vector<FrameArrival> arrivals;
};

/// Read a request `advance` to a core whose time is `now_ns`. Throws InputError if arrivals are not
/// on ticks or not in order, or if the core does not accept a frame; std::system_error if the
/// request is incomplete.
Advance read_advance(std::span<const std::byte> request, std::int64_t now_ns);

}  // namespace nagi::fpga
