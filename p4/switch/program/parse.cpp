// SPDX-License-Identifier: Apache-2.0
//
// The parser converts a packet's bytes to fields. After an error, processing continues with the
// fields extracted so far.
#include <cstring>

#include "program/state.hpp"

namespace nagi::p4 {

namespace {

std::uint64_t eight_bytes(const std::uint8_t* bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return big_endian(value);
}

void extract_fields(const HeaderType& type, const std::uint8_t* bytes, std::uint64_t* header,
                    std::uint64_t variable_bits) {
  if (!type.picks.empty()) {
    for (const Pick& pick : type.picks) {
      header[pick.word] = eight_bytes(bytes + pick.at) >> pick.shift & pick.mask;
    }
    return;
  }
  std::size_t at = 0;
  for (const Field& field : type.fields) {
    if (field.is_variable) {
      header[field.word] = variable_bits;
      std::memcpy(header + field.word + 1, bytes + at / 8, variable_bits / 8);
      at += variable_bits;
    } else {
      read_bits(bytes, at, field.bits, header + field.word);
      at += field.bits;
    }
  }
}

}  // namespace

bool State::extract(Packet& packet, Index index, std::size_t& at, std::size_t length,
                    std::uint64_t variable_bits) {
  const Header& header = program->headers[index];
  const HeaderType& type = program->types[header.type];
  const std::size_t bytes = (type.bits + variable_bits) / 8;
  if (length - at < bytes) return false;
  std::uint64_t* words = packet.words_.get() + header.base;
  extract_fields(type, frames.data(packet.frame_.slot) + packet.frame_.offset + at, words,
                 variable_bits);
  make_valid(packet.words_.get(), header);
  words[origin_word] = at + 1;
  words[written_word] = 0;
  at += bytes;
  return true;
}

bool State::matches(const Transition& transition, const std::uint64_t* key,
                    std::size_t words) const {
  if (transition.set != none) {
    const ValueSetUse& use = program->value_set_uses[transition.set];
    const auto& values = value_set_keys[transition.set].live;
    for (std::size_t at = 0; at < values.size(); at += words) {
      std::uint64_t differ = 0;
      for (std::size_t i = 0; i < words; ++i) {
        const std::uint64_t mask = use.mask.empty() ? ~0ULL : use.mask[i];
        differ |= (key[i] ^ values[at + i]) & mask;
      }
      if (differ == 0) return true;
    }
    return false;
  }
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < words; ++i) {
    differ |= (key[i] & transition.mask[i]) ^ transition.value[i];
  }
  return differ == 0;
}

std::uint64_t State::run_parser(Packet& packet, std::size_t& at) {
  const Errors& errors = program->errors;
  const std::uint8_t* bytes = frames.data(packet.frame_.slot) + packet.frame_.offset;
  const std::size_t length = packet.frame_.length;
  Scope scope = scope_of(packet.words_.get(), nullptr);
  // Limit the steps, because a loop of states that extracts nothing would never end.
  std::size_t steps_left = 4096 + length;
  for (Index index = program->first_state; index != none;) {
    if (steps_left-- == 0) return errors.timeout;
    const ParserState& state = program->states[index];
    for (const ParserStep& step : state.steps) {
      scope.ahead = bytes + at;
      scope.ahead_bytes = length - at;
      switch (step.code) {
        case ParserDo::extract:
          if (!extract(packet, step.object, at, length, 0)) return errors.too_short;
          break;
        case ParserDo::extract_element: {
          const Index header = header_of(scope, step.a);
          if (header == none) return errors.stack_bounds;
          if (!extract(packet, header, at, length, 0)) return errors.too_short;
          break;
        }
        case ParserDo::extract_next:
        case ParserDo::extract_next_variable:
        case ParserDo::extract_variable: {
          Index header = step.object;
          std::uint64_t* next = nullptr;
          if (step.code != ParserDo::extract_variable) {
            const Stack& stack = program->stacks[step.object];
            next = &scope.words[stack.next];
            if (*next >= stack.size()) return errors.stack_bounds;
            header = stack.headers[*next * stack.width + step.member];
          }
          std::uint64_t bits = 0;
          if (step.code != ParserDo::extract_next) {
            const HeaderType& type = program->types[program->headers[header].type];
            bits = word_of(scope, step.a) & 0xffffffff;
            if (bits % 8 != 0) return errors.invalid_argument;
            const std::size_t all = (type.bits + bits) / 8;
            if (length - at < all) return errors.too_short;
            if (all > type.max_bytes) return errors.header_too_short;
          }
          if (!extract(packet, header, at, length, bits)) return errors.too_short;
          if (next != nullptr) ++*next;
          break;
        }
        case ParserDo::set:
          if (scope.ahead_bytes < step.needs) return errors.too_short;
          assign(step.set, scope);
          break;
        case ParserDo::verify:
          if (!truth_of(scope, step.a)) return word_of(scope, step.b) & 0xffffffff;
          break;
        case ParserDo::advance: {
          const std::uint64_t bits = word_of(scope, step.a);
          if (bits % 8 != 0) return errors.invalid_argument;
          if (length - at < bits / 8) return errors.too_short;
          at += bits / 8;
          break;
        }
        case ParserDo::act:
          run_action(step.object, nullptr, packet);
          break;
      }
    }
    Index next = state.otherwise;
    if (!state.transitions.empty()) {
      scope.ahead = bytes + at;
      scope.ahead_bytes = length - at;
      if (scope.ahead_bytes < state.needs) return errors.too_short;
      std::uint64_t key[max_key_words];
      std::uint64_t* to = key;
      for (const KeyPart& part : state.key) {
        if (part.word != none) {
          *to = scope.words[part.word];
        } else if (part.limbs == 1) {
          const std::uint64_t mask = part.bits == 64 ? ~0ULL : (1ULL << part.bits) - 1;
          *to = word_of(scope, part.value) & mask;
        } else {
          words_of(scope, part.value, to, part.limbs);
          if (part.bits % 64 != 0) to[part.limbs - 1] &= (1ULL << part.bits % 64) - 1;
        }
        to += part.limbs;
      }
      for (const Transition& transition : state.transitions) {
        const bool is_plain = state.words == 1 && transition.set == none;
        if (is_plain ? ((key[0] & transition.mask[0]) == transition.value[0])
                     : matches(transition, key, state.words)) {
          next = transition.next;
          break;
        }
      }
    }
    index = next;
  }
  return errors.none;
}

std::uint64_t State::parse(Packet& packet) {
  std::size_t at = 0;
  const std::uint64_t error = run_parser(packet, at);
  packet.parsed_ = static_cast<std::uint32_t>(at);
  if (error != program->errors.none) ++counts.parser_errors;
  set(packet.words_.get(), program->standard.parser_error, error);
  return error;
}

}  // namespace nagi::p4
