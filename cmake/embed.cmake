# SPDX-License-Identifier: Apache-2.0
#
# Writes HEADER, in which nagi::bpf::NAME are the bytes of the file OBJECT.
file(READ ${OBJECT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(
  WRITE ${HEADER}
  "// SPDX-License-Identifier: Apache-2.0
//
// Made of ${NAME}.bpf.c.
#pragma once

namespace nagi::bpf {
alignas(8) inline constexpr unsigned char ${NAME}[] = {
${bytes}};
}  // namespace nagi::bpf
")
