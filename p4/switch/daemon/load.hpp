// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "program/machine.hpp"

namespace nagi::p4 {

/// Load a compiled P4 program from a file. Throws InputError if the file cannot be read, or if the
/// program is wrong or not supported.
Program load_program_file(const std::string& path);

/// Print tables, arrays, digests and notices of a program, for `nagi-switch check`.
void print(std::ostream& out, const Description& program);

}  // namespace nagi::p4
