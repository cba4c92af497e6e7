/* SPDX-License-Identifier: Apache-2.0 */
//
// This function has a file of its own, because the JSON library takes long to compile. No other
// file of the block includes the library.
#include "link_config.h"

#include <stdexcept>

#include "base/json_text.hpp"
#include "model/direction_json.hpp"

namespace gr::nagi {

::nagi::model::DirectionConfig read_link_config(const std::string& json) {
  try {
    return ::nagi::model::read_direction(
        {::nagi::parse_json(json), nlohmann::json::json_pointer()});
  } catch (const ::nagi::JsonTextError& error) {
    throw std::invalid_argument("link: the configuration, line " + std::to_string(error.line()) +
                                ": " + error.what());
  } catch (const ::nagi::ConfigError& error) {
    throw std::invalid_argument("link: " + error.where().to_string() + ": " + error.what() + "; " +
                                error.cure());
  }
}

}  // namespace gr::nagi
