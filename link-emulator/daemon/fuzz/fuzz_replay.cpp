// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes `nagi-link replay`: any file is either refused by an InputError, or is a file of packet
// records (packet_record.hpp). Then the replay writes a record for each arrival.
#include <algorithm>
#include <cstdlib>

#include "daemon/packet_record.hpp"
#include "daemon/replay.hpp"
#include "fuzz/memory_file.hpp"
#include "io/input_error.hpp"

namespace {

using namespace nagi;
using namespace nagi::daemon;

constexpr const char* recorded_by = R"({"schema_version": 1, "seed": 1, "links": [
  {"name": "l", "id": 0, "a": "a", "b": "b",
   "forward": {"rate_bps": 10000000, "delay_ns": 1000000, "queue": {"packets": 20, "discipline": "fq_codel"},
               "loss": {"model": "bernoulli", "probability": 0.1}, "duplication": {"probability": 0.2}},
   "backward": {"rate_bps": 1000000, "mark": {"threshold_packets": 1, "weight": 1},
                "queue": {"packets": 5}, "arq": {"retries": 2, "feedback_ns": 1000},
                "loss": {"model": "markov", "good_sojourn_ns": 100000000000, "bad_sojourn_ns": 200000000000}}}],
  "media": [{"name": "air", "id": 1, "phy": "802.11b", "data_rate_bps": 11000000, "basic_rate_bps": 1000000,
    "reach": {"by": "ranges", "transmission_m": 250, "carrier_sense_m": 550, "interference_m": 550},
    "stations": [{"name": "a", "interface": "c", "position_m": [0, 0]},
                 {"name": "b", "interface": "d", "position_m": [200, 0], "trace": [[1000000, 300, 0]]}]}]})";

std::size_t count_arrivals(const std::vector<PacketRecord>& records) {
  return static_cast<std::size_t>(std::ranges::count_if(
      records, [](const PacketRecord& record) { return (record.flags & copy_flag) == 0; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Config config = read_config(runtime::JsonSource("fuzz", recorded_by));
  const fuzz::MemoryFile recorded({data, size});
  const fuzz::MemoryFile replayed;
  try {
    replay(config, recorded.path(), replayed.path());
  } catch (const InputError&) {
    return 0;
  }
  if (count_arrivals(read_records(replayed.path())) !=
      count_arrivals(read_records(recorded.path()))) {
    std::abort();
  }
  return 0;
}
