// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes what reads a configuration: any text is either refused by an InputError, or gives a
// configuration that reads back as itself and that packets can pass.
#include <cstdlib>

#include "daemon/config.hpp"
#include "model/direction_json.hpp"

namespace {

using namespace nagi;

/// A few packets, for at most some thousand events: a link may be arbitrarily slow.
void use(const model::DirectionConfig& config, std::uint64_t seed) {
  model::Direction direction(config, seed, 0, model::DirectionName::forward);
  std::vector<model::Departure> departures;
  for (std::uint64_t tag = 0; tag < 20; ++tag) {
    direction.offer({{40 + 100 * tag}, tag, tag % 2 == 0 ? model::Ecn::ect0 : model::Ecn::ect1},
                    model::Instant{model::Duration(tag * 999)}, departures);
  }
  for (int i = 0; i < 1000; ++i) {
    const auto next = direction.next_event();
    if (!next) break;
    direction.advance(*next, departures);
  }
  if (departures.size() + direction.held() != 20) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const daemon::Config config = daemon::read_config(
        runtime::JsonSource("fuzz", std::string(reinterpret_cast<const char*>(data), size)));
    const std::string once = to_json(config).dump();
    for (const daemon::LinkConfig& link : config.links) {
      use(link.forward, config.seed);
      use(link.backward, config.seed);
    }
    const runtime::JsonSource again("again", once);
    if (to_json(daemon::read_config(again)).dump() != once) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
