// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of control messages. Any line gets an answer, and packets still pass the link
// after a change that was accepted.
#include <cstdlib>

#include "control/control_socket.hpp"
#include "model/direction_json.hpp"

namespace {

using namespace nagi;
using nlohmann::json;

/// A running link that accepts changes like a link of nagi-link.
class Link {
 public:
  Link() {
    config_.rate = Bitrate{10'000'000};
    config_.delay = Duration{5'000'000};
    direction_.emplace(config_, 1, 0, model::DirectionName::forward);
    for (std::uint64_t tag = 0; tag < 20; ++tag) {
      direction_->offer({{1000}, tag}, Instant{}, departures_);
    }
  }

  json answer(const json& request) {
    ObjectReader reader(request, json::json_pointer());
    reader.only({"command", "link", "direction", "config"});
    if (reader.text("command") != "set") {
      throw ConfigError(reader.at("command"), "unknown command", "set");
    }
    const auto config = model::apply_changes(config_, reader.any("config"), reader.at("config"));
    direction_->change(config, Instant{Duration{1'000'000}}, departures_);
    config_ = config;
    if (departures_.size() + direction_->held() != 20) std::abort();
    return {{"ok", true}, {"config", model::to_json(config)}};
  }

 private:
  model::DirectionConfig config_;
  std::optional<model::Direction> direction_;
  std::vector<model::Departure> departures_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Link link;
  const std::string line(reinterpret_cast<const char*>(data), size);
  const std::string answer =
      runtime::answer(line, [&](const json& request) { return link.answer(request); });
  if (!json::parse(answer).contains("ok")) std::abort();
  return 0;
}
