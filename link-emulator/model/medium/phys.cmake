# SPDX-License-Identifier: Apache-2.0
#
# Generates model/medium/phy_tables.hpp from phys.json, in the directory `generated`.
function(nagi_make_phys)
  set(file ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/phys.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} phys)
  string(JSON count LENGTH "${phys}")
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    string(JSON name MEMBER "${phys}" ${index})
    set(values "\"${name}\"")
    foreach(part slot_ns sifs_ns preamble_ns short_preamble_ns symbol_ns service_and_tail_bits
                 extension_ns cw_min cw_max)
      string(JSON ${part} GET "${phys}" ${name} ${part})
      string(APPEND values ", ${${part}}")
    endforeach()
    string(JSON rate_count LENGTH "${phys}" ${name} rates_bps)
    math(EXPR last_rate "${rate_count} - 1")
    set(rates "")
    foreach(rate RANGE ${last_rate})
      string(JSON bps GET "${phys}" ${name} rates_bps ${rate})
      string(APPEND rates "${bps}, ")
    endforeach()
    string(JSON clause GET "${phys}" ${name} clause)
    string(APPEND tables "    // ${clause}\n    PhyTable{${values}, {${rates}}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/model/medium/phy_tables.hpp @ONLY CONTENT
"// SPDX-License-Identifier: Apache-2.0
//
// The PHYs of IEEE 802.11 that media can use. Generated from link-emulator/model/medium/phys.json.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace nagi::model {

/// The constants of a PHY: times in ns, rates in bit/s.
struct PhyTable {
  std::string_view name;
  std::int64_t slot_ns;
  std::int64_t sifs_ns;
  std::int64_t preamble_ns;        // including the PHY's header: until the first bit of the MPDU
  std::int64_t short_preamble_ns;  // 0 if the PHY has none
  std::int64_t symbol_ns;          // an MPDU takes a whole number of symbols
  std::int64_t service_and_tail_bits;
  std::int64_t extension_ns;
  std::uint32_t cw_min;
  std::uint32_t cw_max;
  std::array<std::uint64_t, 8> rates_bps;  // unused entries are 0
};

inline constexpr std::array phy_tables = {
@tables@};

}  // namespace nagi::model
")
endfunction()
nagi_make_phys()
