// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the code that parses frames from the network. Any frames pass links that mark, corrupt,
// duplicate and distinguish flows, and a medium with a monitor; every frame must be counted. The
// input has for each frame: a byte with the port and the time since the previous frame, the length,
// and the frame.
#include <array>
#include <cstdlib>

#include "daemon/fuzz/frames_bench.hpp"
#include "daemon/shared_medium.hpp"
#include "fuzz/pieces.hpp"

namespace {

using namespace nagi;
using namespace nagi::daemon;

constexpr std::array links = {
    R"({"rate_bps": 10000000, "delay_ns": 1000000, "queue": {"packets": 20}, "mark": {"threshold_packets": 0, "weight": 1},
        "duplication": {"probability": 0.2}, "corruption": {"probability": 0.5},
        "loss": {"model": "bernoulli", "probability": 0.1}})",
    R"({"rate_bps": 10000000, "delay_ns": 1000000, "queue": {"packets": 20, "discipline": "fq_codel"},
        "arq": {"retries": 2, "feedback_ns": 1000}, "loss": {"model": "bernoulli", "probability": 0.1}})"};

constexpr const char* medium = R"({"schema_version": 1, "seed": 1, "links": [], "media": [{
  "name": "air", "id": 0, "monitor": "/dev/null", "phy": "802.11b", "data_rate_bps": 11000000,
  "basic_rate_bps": 1000000, "rts_threshold_bytes": 500, "queue": {"packets": 5, "discipline": "fq_codel"},
  "reach": {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550, "interference_m": 550},
  "stations": [{"name": "a", "interface": "a", "mac": "02:00:00:00:00:01", "position_m": [0, 0]},
               {"name": "b", "interface": "b", "position_m": [200, 0]},
               {"name": "c", "interface": "c", "position_m": [400, 0]}]}]})";

struct Bench : FramesBench {
  Bench() {
    for (const char* text : links) directions.push_back(direction_config(text));
  }

  std::vector<model::DirectionConfig> directions;
  Config media = read_config(runtime::JsonSource("fuzz", medium));
};

void pass_link(Bench& bench, const model::DirectionConfig& config, fuzz::Pieces input) {
  FuzzPort in(bench.ports.pool());
  FuzzPort out(bench.ports.pool());
  LinkDirection direction(
      0, config, std::make_unique<model::Direction>(config, 1, 0, model::DirectionName::forward),
      nullptr, in, out, bench.shared());
  Instant now{Duration{1'000'000}};
  while (!input.is_empty()) {
    now += Duration{(input.number<std::uint8_t>() >> 2) * 10'000};
    in.put(input.sized(), bench.time.monotonic_ns(now));
    direction.advance(direction.read_arrivals(now));
    take_due(direction, bench.ports.pool());
  }
  direction.advance(now + Duration{10'000'000'000});
  take_due(direction, bench.ports.pool());
  const model::DirectionCounters& count = direction.model().counters();
  if (direction.model().held() != 0 || count.offered != direction.arrived()) std::abort();
  if (count.delivered + count.queue_overflows + count.aqm_drops + count.channel_losses !=
      count.offered) {
    std::abort();
  }
  direction.finish();
}

void pass_medium(Bench& bench, fuzz::Pieces input) {
  std::vector<std::unique_ptr<FuzzPort>> ports;
  std::vector<io::Port*> given;
  for (int i = 0; i < 3; ++i) {
    ports.push_back(std::make_unique<FuzzPort>(bench.ports.pool()));
    given.push_back(ports.back().get());
  }
  SharedMedium air(0, bench.media.media[0], 1, given, bench.shared());
  Instant now{Duration{1'000'000}};
  const auto advance = [&] {
    air.advance(now, {});
    air.hand_over();
    air.record_results();
  };
  while (!input.is_empty()) {
    const auto head = input.number<std::uint8_t>();
    now += Duration{(head >> 2) * 10'000};
    ports[(head & 3U) % 3]->put(input.sized(), bench.time.monotonic_ns(now));
    advance();
  }
  now += Duration{100'000'000'000};
  advance();
  for (model::StationIndex station = 0; station < 3; ++station) {
    const model::StationCounters& count = air.model().counters(station);
    if (count.offered != count.delivered + count.queue_overflows + count.aqm_drops +
                             count.given_up + air.model().held(station)) {
      std::abort();
    }
  }
  air.finish(bench.notices);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Bench bench;
  for (const auto& config : bench.directions) pass_link(bench, config, {data, size});
  pass_medium(bench, {data, size});
  return 0;
}
