// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "program/machine.hpp"

namespace nagi::p4 {

/// Load a program from a file. Throws InputError.
Program load_program_file(const std::string& path);

/// Print a summary of a program.
void print(std::ostream& out, const Description& program);

}  // namespace nagi::p4
