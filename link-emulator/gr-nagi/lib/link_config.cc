/* SPDX-License-Identifier: Apache-2.0 */
//
// Apart from the block: this file alone includes the JSON library, which takes long to compile.
#include "link_config.h"

#include <stdexcept>

#include "model/json.hpp"

namespace gr::nagi {

::nagi::model::DirectionConfig read_link_config(const std::string& json) {
  try {
    return ::nagi::model::read_direction(
        {nlohmann::json::parse(json), nlohmann::json::json_pointer()});
  } catch (const nlohmann::json::parse_error& error) {
    throw std::invalid_argument(std::string("link: the configuration is not JSON: ") +
                                error.what());
  } catch (const ::nagi::model::ConfigError& error) {
    throw std::invalid_argument("link: " + error.where().to_string() + ": " + error.what() + "; " +
                                error.cure());
  }
}

}  // namespace gr::nagi
