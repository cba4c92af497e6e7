// SPDX-License-Identifier: Apache-2.0
#include "daemon/controller.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"

namespace nagi::daemon {

using nlohmann::json;

json Controller::answer(const json& request) {
  ObjectReader reader(request, json::json_pointer());
  const std::string command = reader.text("command");
  if (command == "set") return {{"ok", true}, {"config", change(std::move(reader))}};
  reader.only({"command"});
  if (command == "show") return {{"ok", true}, {"account", account_()}};
  if (command == "stop") {
    stopped_ = true;
    return {{"ok", true}};
  }
  throw ConfigError(reader.at("command"), "unknown command " + shown(command),
                    R"("show", "set" or "stop")");
}

json Controller::change(ObjectReader request) {
  request.only({"command", "link", "direction", "config"});
  return find_direction(request).change(request.any("config"), request.at("config"));
}

LinkDirection& Controller::find_direction(const ObjectReader& request) const {
  const std::string name = request.text("link");
  const std::string direction = request.text("direction");
  const auto link = std::ranges::find(links_, name, &Link::name);
  if (link == links_.end()) {
    std::string names;
    for (const Link& other : links_) names += (names.empty() ? "" : ", ") + other.name;
    throw ConfigError(request.at("link"), "there is no link " + shortened(name), "links: " + names);
  }
  if (direction != "forward" && direction != "backward") {
    throw ConfigError(request.at("direction"), "unknown direction " + shown(direction),
                      R"("forward" or "backward")");
  }
  return direction == "forward" ? *link->forward : *link->backward;
}

}  // namespace nagi::daemon
