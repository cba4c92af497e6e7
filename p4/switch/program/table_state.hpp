// SPDX-License-Identifier: Apache-2.0
//
// The entries of a table, and finding the one that a packet meets.
//
// Entries with the same mask share a hash table of masked keys (tuple space search; Srinivasan,
// Suri, Varghese, SIGCOMM 1999). An exact table has one mask; a table with prefixes one for each
// length, the longest looked at first; a ternary one as many as its entries have, those with the
// best priority first. Where there are many lengths, an index by the prefixes' first bits says
// which of them are worth a look. Entries with ranges are looked at one by one, the best priority
// first. Finding takes no memory from the heap.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/compiled.hpp"
#include "program/control.hpp"
#include "program/meter.hpp"

namespace nagi::p4 {

constexpr std::uint32_t max_key_words = 64;

/// What an entry does.
struct Result {
  enum class What : std::uint8_t { action, member, group } what = What::action;
  Index index = none;  // the action, member or group
  Index place = none;  // of an action: among the table's
  bool operator==(const Result&) const = default;
};

/// What packets have made of an entry.
struct Usage {
  std::uint64_t hits = 0;
  std::uint64_t last_us = 0;     // when it was last hit, or else added
  std::uint64_t timeout_us = 0;  // after so long without a hit the controller is told; 0: never
  std::uint64_t look_us = 0;     // when that is next looked at
  bool is_told = false;          // since the last hit
};

/// A key to be added: checked, and laid out as a packet's key is.
struct Key {
  std::vector<std::uint64_t> value;
  std::vector<std::uint64_t> mask;
  std::vector<std::uint64_t> low, high;  // of the fields matched by range, all words of each
  std::uint32_t prefix = 0;
  std::int32_t priority = 0;
  bool operator==(const Key&) const = default;
};

/// What a miss does as the program says, and the data that goes with it.
std::pair<Result, std::vector<std::uint64_t>> initial_miss(const Table& table);

class TableState {
 public:
  explicit TableState(const Table& table);

  /// The entry that matches `key`, or nothing.
  [[nodiscard]] Index find(const std::uint64_t* key) const {
    if (used_ == 0) return none;
    return ranges_ ? find_range(key) : find_masked(key);
  }

  // Entries by their place. A place is taken again after its entry has gone; the handle is new.
  [[nodiscard]] const Result& result(Index entry) const { return entries_[entry].result; }
  [[nodiscard]] const std::uint64_t* data(Index entry) const {
    return data_.data() + std::size_t{entry} * data_words_;
  }
  [[nodiscard]] Count& count(Index entry) { return counts_[entry]; }
  [[nodiscard]] const Count& count(Index entry) const { return counts_[entry]; }
  [[nodiscard]] MeterCell& meter(Index entry) { return meters_[entry]; }
  [[nodiscard]] const MeterCell& meter(Index entry) const { return meters_[entry]; }
  [[nodiscard]] const Usage& usage(Index entry) const { return entries_[entry].usage; }
  void hit(Index entry, std::uint64_t now_us) {
    Usage& usage = entries_[entry].usage;
    ++usage.hits;
    usage.last_us = now_us;
    usage.is_told = false;
  }
  std::uint64_t hits = 0, misses = 0;  // of the whole table
  [[nodiscard]] std::size_t used() const { return used_; }

  /// The entry with this key, mask and priority, or nothing.
  [[nodiscard]] Index find_same(const Key& key) const;
  Handle add(Key key, const Result& result, std::span<const std::uint64_t> data,
             std::uint64_t now_us = 0);
  void modify(Index entry, const Result& result, std::span<const std::uint64_t> data);
  /// Sets the idle timeout, and begins it.
  void set_timeout(Index entry, std::uint64_t timeout_us, std::uint64_t now_us);
  /// Appends the entries whose idle timeout is over and who have not been told since their last
  /// hit.
  void expire(std::uint64_t now_us, std::vector<Handle>& expired);
  void erase(Index entry);
  void clear();
  [[nodiscard]] std::optional<Index> place_of(Handle handle) const;
  [[nodiscard]] Handle handle(Index entry) const {
    return Handle{entries_[entry].generation} << 32 | entry;
  }
  /// The first entry in a place from `from` on, or nothing.
  [[nodiscard]] Index next_used(std::size_t from) const;
  [[nodiscard]] Key key(Index entry) const;
  /// Goes on with what packets have counted in `other` for the entries that both have.
  void take_measurements(const TableState& other);

  // What a miss does.
  Result miss;
  std::vector<std::uint64_t> miss_data;
  std::vector<Count>& counts() { return counts_; }

 private:
  struct Entry {
    Result result;
    std::uint64_t rank = 0;  // priority, then age: the smaller wins
    Index tuple = none;
    Index after = none;  // the next one with the same key and mask
    std::uint32_t generation = 0;
    bool used = false;
    Usage usage;
  };
  /// All entries with one mask.
  struct Tuple {
    std::vector<std::uint64_t> mask;
    std::uint32_t prefix = 0;
    std::uint64_t best = ~0ULL;  // no entry has a smaller rank
    std::size_t used = 0;
    std::vector<std::uint64_t> slots;  // 0: free; else half a hash, and the entry's place plus 1
  };

  /// A tuple, in the order in which they are looked at.
  struct Turn {
    Index tuple;
    std::uint32_t prefix;
  };

  [[nodiscard]] Index find_masked(const std::uint64_t* key) const;
  [[nodiscard]] Index find_longest(const std::uint64_t* key) const;
  [[nodiscard]] Index find_range(const std::uint64_t* key) const;
  [[nodiscard]] std::uint64_t hash(const std::uint64_t* key, const std::uint64_t* mask) const;
  /// The first of the entries with this key, or nothing.
  [[nodiscard]] Index look(const Tuple& tuple, const std::uint64_t* key) const;
  void put(Tuple& tuple, Index entry);
  void take_out(Tuple& tuple, Index entry);
  void grow(Tuple& tuple);
  void sort();
  [[nodiscard]] bool in_ranges(const Key& entry, const std::uint64_t* key) const;
  void put_in_index(Index entry);
  void make_index();

  const Table* table_;
  std::uint32_t words_;
  std::uint32_t data_words_;
  bool ranges_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> keys_;  // the masked values, close together
  std::vector<Key> range_keys_;      // the whole keys, where there are ranges
  std::vector<std::uint64_t> data_;
  std::vector<Count> counts_;
  std::vector<MeterCell> meters_;
  std::vector<Index> free_;
  std::vector<Tuple> tuples_;
  std::vector<Turn> turns_;
  std::vector<Index> order_;  // of entries, where there are ranges
  /// By the first bits of the field matched by prefix: which lengths (modulo 64) entries with these
  /// bits have, and perhaps had. Empty: there are too few lengths to be worth it.
  std::vector<std::uint64_t> index_;
  Index index_word_ = 0;  // where in a key these bits are
  std::uint32_t index_shift_ = 0;
  std::uint32_t index_bits_ = 0;
  std::size_t erased_ = 0;                                // since the index was made
  std::unordered_multimap<std::uint64_t, Index> by_key_;  // of ranges, to find the same again
  /// When entries may expire, the earliest first. One that was hit meanwhile has its turn later.
  struct Deadline {
    std::uint64_t at_us;
    Handle handle;
    bool operator>(const Deadline& other) const { return at_us > other.at_us; }
  };
  void look_at(Index entry, std::uint64_t at_us) {
    entries_[entry].usage.look_us = at_us;
    deadlines_.push({at_us, handle(entry)});
  }
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::size_t used_ = 0;
  std::uint32_t age_ = 0;
};

}  // namespace nagi::p4
