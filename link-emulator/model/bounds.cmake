# SPDX-License-Identifier: Apache-2.0
#
# Generates model/bounds.hpp from bounds.json, in the directory `generated`, from which users of the
# model include it.
function(nagi_make_bounds)
  set(file ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/bounds.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} bounds)
  string(JSON count LENGTH "${bounds}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON name MEMBER "${bounds}" ${index})
    foreach(part type minimum maximum unit why)
      string(JSON ${part} GET "${bounds}" ${name} ${part})
    endforeach()
    if(type STREQUAL "integer")
      set(type "std::uint64_t")
    else()
      set(type "double")
    endif()
    string(APPEND constants "/// ${unit}: ${why}\n"
           "inline constexpr Bound<${type}> ${name}{${minimum}, ${maximum}};\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/model/bounds.hpp @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
//
// The ranges of a link's settings. Generated from link-emulator/model/bounds.json.
#pragma once

#include <cstdint>

#include \"base/bound.hpp\"

namespace nagi::model::bounds {
@constants@}  // namespace nagi::model::bounds
")
endfunction()
nagi_make_bounds()
