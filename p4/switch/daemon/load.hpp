// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "program/machine.hpp"

namespace nagi::p4 {

/// Reads a program from a file. Throws InputError.
Program load_program_file(const std::string& path);

/// What is in a program, in a few lines for people.
void print(std::ostream& out, const Description& program);

}  // namespace nagi::p4
