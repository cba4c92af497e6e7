// SPDX-License-Identifier: Apache-2.0
//
// Builds the key of a table entry, in the layout of a packet's key. Call one of the functions
// exact(), ternary(), prefix(), range() and any() for each field, in the order of the table's
// fields, and then finish().
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "program/table_state.hpp"

namespace nagi::p4 {

class KeyBuilder {
 public:
  using Words = std::vector<std::uint64_t>;

  explicit KeyBuilder(const Table& table) : table_(&table) {
    key_.value.assign(table.words, 0);
    key_.mask.assign(table.words, 0);
  }

  /// Return the field to which the next call applies.
  [[nodiscard]] const KeyField& next() const { return table_->key[at_]; }
  void exact(const Words& value) { ternary(value, ones(next().field.bits)); }
  /// Add a ternary field. Bits outside the mask are ignored.
  void ternary(const Words& value, const Words& mask) {
    const KeyField& field = table_->key[at_++];
    if (field.match == MatchKind::range) {
      --at_;
      range(value, value);
      return;
    }
    for (std::uint32_t i = 0; i < field.field.limbs; ++i) {
      key_.value[field.word + i] |= (value[i] & mask[i]) << field.shift;
      key_.mask[field.word + i] |= mask[i] << field.shift;
    }
  }
  void prefix(const Words& value, std::uint32_t length) {
    if (next().match == MatchKind::lpm) key_.prefix = length;
    ternary(value, high_ones(next().field.bits, length));
  }
  void range(const Words& low, const Words& high) {
    ++at_;
    key_.low.insert(key_.low.end(), low.begin(), low.end());
    key_.high.insert(key_.high.end(), high.begin(), high.end());
  }
  void any() {
    const KeyField& field = next();
    const Words nothing(field.field.limbs, 0);
    if (field.match == MatchKind::range) {
      range(nothing, ones(field.field.bits));
    } else if (field.match == MatchKind::lpm) {
      prefix(nothing, 0);
    } else {
      ternary(nothing, nothing);
    }
  }
  Key finish(std::int32_t priority) {
    // Ignore bits that the program masks out of the key of every packet.
    for (std::uint32_t i = 0; i < table_->key_mask.size(); ++i) {
      key_.value[i] &= table_->key_mask[i];
    }
    key_.priority = priority;
    return std::move(key_);
  }

  /// Return the words of a number of `bits` bits that are all 1.
  static Words ones(std::uint32_t bits) { return high_ones(bits, bits); }
  /// Return the words of a number of `bits` bits of which only the highest `count` bits are 1.
  static Words high_ones(std::uint32_t bits, std::uint32_t count) {
    Words words((bits + 63) / 64, 0);
    for (std::uint32_t i = 0; i < words.size(); ++i) {
      const std::uint32_t first = std::max(64 * i, bits - count);
      const std::uint32_t last = std::min(64 * (i + 1), bits);
      if (first >= last) continue;
      const std::uint64_t all = last - first == 64 ? ~0ULL : (1ULL << (last - first)) - 1;
      words[i] = all << (first - 64 * i);
    }
    return words;
  }

 private:
  const Table* table_;
  Key key_;
  std::size_t at_ = 0;
};

}  // namespace nagi::p4
