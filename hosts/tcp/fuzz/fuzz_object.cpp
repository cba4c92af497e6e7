// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes what reads a scheme's object file: any file is either refused by an InputError, or one whose name, parameters
// and arguments can be set, within the file.
#include <cstdlib>
#include <string>

#include "../loader/object.hpp"
#include "io/input_error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    nagi::tcp::Object object("fuzz", std::string(reinterpret_cast<const char*>(data), size));
    object.set_name("fuzzed");
    for (const nagi::tcp::Parameter& each : object.parameters()) {
      if (each.minimum > each.maximum) continue;
      object.set_parameter(each.name + "=" + std::to_string(each.maximum));
    }
    object.set_cong_control_arguments(3);
    if (object.has_events()) object.set_listening();
    (void)object.values();
    if (object.image().size() != size) std::abort();
  } catch (const nagi::InputError&) {
  }
  return 0;
}
