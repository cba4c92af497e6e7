// SPDX-License-Identifier: Apache-2.0
//
// Registers, counters and meters, calculations and checksums, and lists of fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/compiled/fields.hpp"
#include "program/hash.hpp"

namespace nagi::p4 {

struct RegisterArray {
  std::string name;
  std::uint64_t size = 0;
  Field cell;
};
struct CounterArray {
  std::string name;
  std::uint64_t size = 0;
  bool is_direct = false;
  Index table = none;  // table of a direct counter
};
struct MeterArray {
  std::string name;
  std::uint64_t size = 0;
  bool bytes = false;
  std::uint32_t rates = 2;
  bool is_direct = false;
  Index table = none;
  Field result;
};

struct CalculationInput {
  enum class Kind : std::uint8_t { field, constant, header, payload } kind = Kind::field;
  Field field;
  Index header = none;
  std::uint32_t bits = 0;
  std::vector<std::uint64_t> value;
};
/// The contribution of a word to an internet checksum: its value, shifted to its position in 16-bit
/// words.
struct SumPart {
  Index word = none;
  std::uint32_t shift = 0;
};
/// Successive parts of one header, which count while the header is valid.
struct SumRun {
  Index valid = none;
  std::vector<SumPart> narrow;  // parts of fields of at most 32 bits
  std::vector<SumPart> wide;
  Index variable = none;  // instead of the parts: a field of variable length
};
struct Calculation {
  std::string name;
  HashFunction function = nullptr;
  std::vector<CalculationInput> inputs;
  /// The contributions to an internet checksum, if those of each field do not depend on which
  /// headers are valid. Empty if the bits have to be written out.
  std::vector<SumRun> sum;
  std::uint64_t sum_of_constants = 0;
};

struct Checksum {
  std::string name;
  Index calculation = none;
  Index header = none;
  Field target;
  Index condition = none;
  bool verify = false, update = false;
};

struct FieldList {
  std::vector<Field> fields;
};

struct LearnList {
  std::uint32_t id = 0;
  std::string name;
  std::vector<std::string> names;
  std::vector<Field> fields;
};

}  // namespace nagi::p4
