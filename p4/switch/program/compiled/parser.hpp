// SPDX-License-Identifier: Apache-2.0
//
// The parser and the deparser of a compiled program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program/compiled/actions.hpp"
#include "program/compiled/fields.hpp"

namespace nagi::p4 {

enum class ParserDo : std::uint8_t {
  extract,
  extract_element,  // element of a stack, chosen at run time
  extract_next,
  extract_variable,
  extract_next_variable,
  set,
  verify,
  advance,
  act
};

struct ParserStep {
  ParserDo code = ParserDo::extract;
  Index object = none;       // header, stack or action
  std::uint32_t member = 0;  // member of a union in a stack
  Index a = none, b = none;  // expressions
  std::uint32_t needs = 0;   // bytes that must be available to look ahead
  Step set;
};

/// A part of the key by which a state selects its transition.
struct KeyPart {
  Index value = none;  // expression
  Index word = none;   // word of a field of at most 64 bits
  std::uint32_t bits = 0;
  std::uint32_t limbs = 1;
};

struct Transition {
  std::vector<std::uint64_t> value, mask;  // as many words as the key
  Index set = none;                        // index of a use of a value set
  Index next = none;
};

/// The use of a value set by one state.
struct ValueSetUse {
  Index set = none;
  std::vector<std::uint32_t> bits;  // width of each part of the state's key
  std::vector<std::uint64_t> mask;  // empty without a mask
};

struct ParserState {
  std::string name;
  std::vector<ParserStep> steps;
  std::vector<KeyPart> key;
  std::uint32_t words = 0;
  std::uint32_t needs = 0;  // bytes that must be available to look ahead for the key
  std::vector<Transition> transitions;
  Index otherwise = none;
};

struct ValueSet {
  std::string name;
  std::uint32_t bits = 0;
  std::uint64_t size = 0;  // maximum number of values; 0: unlimited
};

/// A header that the deparser emits.
struct EmittedHeader {
  Index header = none;
  Index base = none;
  std::uint32_t bytes = 0;  // without the field of variable length
  Index length = none;      // word with the length in bits of its variable field
  [[nodiscard]] bool is_valid(const std::uint64_t* words) const {
    return words[base + valid_word] != 0;
  }
  [[nodiscard]] std::size_t size(const std::uint64_t* words) const {
    return length == none ? bytes : bytes + words[length] / 8;
  }
};

}  // namespace nagi::p4
