# SPDX-License-Identifier: Apache-2.0
#
# Generates io/offload_list.hpp from offloads.json, in the directory `generated`. The agent has the
# same list (nagi/agent_contracts.py).
function(nagi_make_offloads)
  set(file ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/offloads.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} offloads)
  string(JSON count LENGTH "${offloads}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON name GET "${offloads}" ${index} name)
    string(JSON feature GET "${offloads}" ${index} feature)
    if(feature STREQUAL "")
      string(JSON get GET "${offloads}" ${index} get)
      string(JSON set GET "${offloads}" ${index} set)
      set(feature "nullptr")
    else()
      set(get "0")
      set(set "0")
      set(feature "\"${feature}\"")
    endif()
    string(APPEND entries "    Offload{\"${name}\", ${get}, ${set}, ${feature}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/io/offload_list.hpp @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
//
// Offloads that merge segments or leave checksums to hardware. Generated from offloads.json.
#pragma once

#include <linux/ethtool.h>

#include <array>
#include <cstdint>

namespace nagi::io {

/// An offload that is read and switched by the commands `get` and `set`, or, if `feature` is not
/// null, by the kernel's name of the feature.
struct Offload {
  const char* name;
  std::uint32_t get;
  std::uint32_t set;
  const char* feature;
};

inline constexpr std::array offloads = {
@entries@};

}  // namespace nagi::io
")
endfunction()
nagi_make_offloads()
