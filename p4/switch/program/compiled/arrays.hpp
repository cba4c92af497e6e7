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
  Index table = none;  // of a direct one
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
  enum class What : std::uint8_t { field, constant, header, payload } what = What::field;
  Field field;
  Index header = none;
  std::uint32_t bits = 0;
  std::vector<std::uint64_t> value;
};
/// A word's part in an internet checksum: its value, shifted to where its 16-bit words lie.
struct SumPart {
  Index word = none;
  std::uint32_t shift = 0;
};
/// Parts that follow each other, of one header: they count while it is valid.
struct SumRun {
  Index valid = none;
  std::vector<SumPart> narrow;  // of fields of at most 32 bits
  std::vector<SumPart> wide;
  Index variable = none;  // in place of them: a field of variable length
};
struct Calculation {
  std::string name;
  HashFunction function = nullptr;
  std::vector<CalculationInput> inputs;
  /// Where each field adds the same to an internet checksum, whichever headers are valid: what they
  /// add. Empty: the bits have to be laid out.
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
