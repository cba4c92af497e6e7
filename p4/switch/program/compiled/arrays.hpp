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
  bool bytes = false;       // whether rates count bytes instead of packets
  std::uint32_t rates = 2;  // number of rates
  bool is_direct = false;
  Index table = none;  // table of a direct meter
  Field result;        // field for the colour of a direct meter
};

struct CalculationInput {
  enum class Kind : std::uint8_t { field, constant, header, payload } kind = Kind::field;
  Field field;
  Index header = none;
  std::uint32_t bits = 0;
  std::vector<std::uint64_t> value;
};
/// A word of a field in an internet checksum, and the shift to its position in 16-bit words.
struct SumPart {
  Index word = none;
  std::uint32_t shift = 0;
};
/// Consecutive fields of one header in an internet checksum. They count only if the header is
/// valid.
struct SumRun {
  Index valid = none;           // word with the validity of the header
  std::vector<SumPart> narrow;  // parts of fields of at most 32 bits
  std::vector<SumPart> wide;
  Index variable = none;  // word of a field of variable length, instead of the parts
};
struct Calculation {
  std::string name;
  HashFunction function = nullptr;
  std::vector<CalculationInput> inputs;
  /// For the fast calculation of an internet checksum. It is possible if the position of each field
  /// in 16-bit words does not depend on which headers are valid. Otherwise empty.
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
