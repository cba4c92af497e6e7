// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the reader of a scheme's object files. The reader must either refuse a file by an InputError, or set the
// name, the parameters and the number of arguments without writing outside the file.
#include <cstdlib>
#include <string>

#include "../loader/object.hpp"
#include "io/input_error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    nagi::tcp::Object object("fuzz", std::string(reinterpret_cast<const char*>(data), size));
    object.set_name("fuzzed");
    for (const nagi::tcp::Parameter& parameter : object.parameters()) {
      if (parameter.minimum > parameter.maximum) continue;
      object.set_parameter(parameter.name + "=" + std::to_string(parameter.maximum));
    }
    object.set_cong_control_arguments(3);
    if (object.has_events()) object.set_listening();
    (void)object.values();
    if (object.image().size() != size) std::abort();
  } catch (const nagi::InputError&) {
  }
  return 0;
}
