// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes nagi-fpga's parser of nagi-link's requests. The parser must either refuse a request or
// return a request that a core can process. The first byte of an input selects the kind of request
// and the time of the core. The other bytes are the request.
#include <cstdlib>
#include <system_error>

#include "fuzz/pieces.hpp"
#include "io/input_error.hpp"
#include "model/direction_json.hpp"
#include "simulation/requests.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nagi;
  fuzz::Pieces input(data, size);
  const auto head = input.number<std::uint8_t>();
  const auto request = std::as_bytes(input.rest());
  try {
    if (head % 2 == 0) {
      const fpga::LinkConfiguration parsed = fpga::read_configuration(request);
      for (const auto& direction : parsed.directions) (void)model::to_json(direction).dump();
    } else {
      std::int64_t last = head / 2 * 8;
      const fpga::Advance parsed = fpga::read_advance(request, last);
      for (const fpga::FrameArrival& arrival : parsed.arrivals) {
        if (arrival.at_ns < last || arrival.direction > 1 || arrival.frame.empty()) std::abort();
        last = arrival.at_ns;
      }
      if (!parsed.arrivals.empty() && parsed.to_ns < last) std::abort();
    }
  } catch (const InputError&) {
  } catch (const std::system_error&) {
  }
  return 0;
}
