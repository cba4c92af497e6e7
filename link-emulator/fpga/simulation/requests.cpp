// SPDX-License-Identifier: Apache-2.0
#include "simulation/requests.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/fpga_socket.hpp"
#include "io/input_error.hpp"
#include "model/direction_json.hpp"
#include "runtime/version.hpp"

namespace nagi::fpga {

namespace {

using nlohmann::json;

constexpr std::int64_t tick_ns = daemon::fpga::tick_ns;
constexpr std::size_t longest_frame = 65535;  // Core::offer() checks the core's own limit

void require_same_version(const json& document) {
  const auto version = document.find("version");
  const auto protocol = document.find("protocol");
  if (version != document.end() && *version == runtime::program_version &&
      protocol != document.end() && *protocol == daemon::fpga::protocol_version) {
    return;
  }
  throw InputError(
      "nagi-link is of version " +
      (version != document.end() && version->is_string() ? version->get<std::string>() : "none") +
      ", nagi-fpga of " + runtime::program_version + "; build both again: `make fpga-simulation`");
}

}  // namespace

LinkConfiguration read_configuration(std::span<const std::byte> request) {
  const auto* text = reinterpret_cast<const char*>(request.data());
  const json document = json::parse(text, text + request.size(), nullptr, false);
  if (!document.is_object()) throw InputError("the configuration of the link is not a JSON object");
  require_same_version(document);
  LinkConfiguration configuration;
  try {
    const ObjectReader reader(document, json::json_pointer());
    configuration.link = static_cast<std::uint32_t>(
        reader.whole("link", 0, std::numeric_limits<std::uint32_t>::max()));
    if (!reader.any("seed").is_number_unsigned()) {
      throw ConfigError(reader.at("seed"), "the seed is missing or not a whole number",
                        "give a whole number of 64 bits");
    }
    configuration.seed = reader.any("seed").get<std::uint64_t>();
    configuration.directions = {model::read_direction(reader.object("forward")),
                                model::read_direction(reader.object("backward"))};
  } catch (const ConfigError& error) {
    throw InputError(error.where().to_string() + ": " + error.what() + "; " + error.cure());
  }
  return configuration;
}

Advance read_advance(std::span<const std::byte> request, std::int64_t now_ns) {
  daemon::fpga::MessageReader reader(request);
  const auto head = reader.part<daemon::fpga::AdvanceHead>();
  Advance advance;
  advance.to_ns = head.to_ns;
  std::int64_t last_ns = now_ns;
  for (std::uint32_t i = 0; i < head.arrivals; ++i) {
    const auto arrival = reader.part<daemon::fpga::ArrivalHead>();
    const std::span<const std::byte> frame = reader.bytes(arrival.length);
    if (arrival.at_ns < last_ns || arrival.at_ns > head.to_ns || arrival.at_ns % tick_ns != 0) {
      throw InputError("an arrival is not at a tick, or out of order");
    }
    if (arrival.direction > 1 || frame.empty() || frame.size() > longest_frame) {
      throw InputError("an arrival has no valid frame, or no valid direction");
    }
    last_ns = arrival.at_ns;
    advance.arrivals.push_back({arrival.at_ns, arrival.direction, frame});
  }
  reader.require_end();
  return advance;
}

}  // namespace nagi::fpga
