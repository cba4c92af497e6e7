// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes nagi-link's end of the socket to nagi-fpga (fpga_protocol.hpp). Any received bytes are
// either valid answers, or end the link by an InputError or a std::system_error. In virtual time,
// the first byte of an input is odd. The other bytes are sent by the core's process.
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "daemon/fuzz/frames_bench.hpp"
#include "fuzz/pieces.hpp"
#include "io/input_error.hpp"

namespace {

using namespace nagi;
using namespace nagi::daemon;

constexpr const char* link =
    R"({"rate_bps": 10000000, "delay_ns": 2000000, "queue": {"packets": 20}, "loss": {"model": "none"}})";

struct Bench : FramesBench {
  model::DirectionConfig direction = direction_config(link);
};

void converse(Bench& bench, int socket, bool is_virtual) {
  FpgaSettings settings{.seed = 1, .link = 2, .virtual_time = is_virtual};
  settings.directions = {bench.direction, bench.direction};
  const auto core = std::make_shared<FpgaCore>(socket, "fuzz", settings, bench.ports.pool());
  std::vector<std::unique_ptr<FuzzPort>> ports;
  std::vector<std::unique_ptr<LinkDirection>> directions;
  for (int i = 0; i < 2; ++i) ports.push_back(std::make_unique<FuzzPort>(bench.ports.pool()));
  for (std::size_t i = 0; i < 2; ++i) {
    directions.push_back(std::make_unique<LinkDirection>(
        i, bench.direction,
        std::make_unique<FpgaDirection>(core, static_cast<model::DirectionName>(i)), *ports[i],
        *ports[1 - i], bench.shared()));
  }
  const std::array<std::uint8_t, 114> frame{};
  Instant now{Duration{1'000'000}};
  for (int step = 0; step < 6; ++step) {
    if (step < 3) {
      for (const auto& port : ports) port->put(frame, bench.time.monotonic_ns(now));
    }
    for (const auto& direction : directions) direction->advance(direction->read_arrivals(now));
    for (const auto& direction : directions) {
      if (is_virtual) direction->take_in_flight();
      take_due(*direction, bench.ports.pool());
      (void)direction->model().next_delivery();
    }
    now += Duration{2'000'000};
  }
  core->catch_up();
  for (const auto& direction : directions) {
    direction->finish();
    (void)direction->account().dump();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Bench bench;
  fuzz::Pieces input(data, size);
  const bool is_virtual = input.number<std::uint8_t>() % 2 != 0;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
  const io::Descriptor core(ends[0]);
  const auto answers = input.rest();
  (void)send(core.get(), answers.data(), answers.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(core.get(), SHUT_WR);
  try {
    converse(bench, ends[1], is_virtual);
  } catch (const InputError&) {
  } catch (const std::system_error&) {
  }
  return 0;
}
