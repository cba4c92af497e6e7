// SPDX-License-Identifier: Apache-2.0
//
// The entries of a table, and the search for the entry that a packet matches.
//
// Entries with the same mask form a tuple, which is a hash table of masked keys (tuple space
// search; Srinivasan, Suri, Varghese, SIGCOMM 1999). An exact table has one tuple. A table with
// prefixes has one tuple per prefix length; the longest is searched first. A ternary table has one
// tuple per mask of its entries; the tuple with the best priority is searched first. If there are
// many prefix lengths, an index by the first bits of a key lists the lengths to search. Entries
// with ranges are compared one by one, the best priority first. A search allocates no memory.
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

/// The action, member or group of an entry.
struct Result {
  enum class Kind : std::uint8_t { action, member, group } kind = Kind::action;
  Index index = none;   // index of the action, or number of the member or group
  Index choice = none;  // only for actions: position in Table::actions
  bool operator==(const Result&) const = default;
};

/// Hits and idle timeout of an entry.
struct Usage {
  std::uint64_t hits = 0;
  std::uint64_t last_us = 0;        // time of the last hit, or of the addition
  std::uint64_t timeout_us = 0;     // idle time after which the controller is notified; 0: never
  std::uint64_t next_check_us = 0;  // time of the next check of the timeout
  bool was_reported = false;        // whether the controller was notified since the last hit
};

/// The key of an entry, checked and in the layout of a packet's key: see KeyBuilder.
struct Key {
  std::vector<std::uint64_t> value;
  std::vector<std::uint64_t> mask;
  std::vector<std::uint64_t> low, high;  // bounds of the range fields, all words of each
  std::uint32_t prefix = 0;
  std::int32_t priority = 0;
  bool operator==(const Key&) const = default;
};

/// Return the default action that the program declares for a table, and the action's data.
std::pair<Result, std::vector<std::uint64_t>> initial_miss(const Table& table);

class TableState {
 public:
  explicit TableState(const Table& table);

  /// Return the number of the entry that matches the key of a packet, or `none`.
  [[nodiscard]] Index find(const std::uint64_t* key) const {
    if (used_ == 0) return none;
    return ranges_ ? find_range(key) : find_masked(key);
  }

  // Entries are numbered from 0. The number of a deleted entry is reused, with a new handle.
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
    usage.was_reported = false;
  }
  std::uint64_t hits = 0, misses = 0;  // of the whole table
  [[nodiscard]] std::size_t used() const { return used_; }

  /// Return the number of the entry with this key, mask and priority, or `none`.
  [[nodiscard]] Index find_same(const Key& key) const;
  Handle add(Key key, const Result& result, std::span<const std::uint64_t> data,
             std::uint64_t now_us = 0);
  void modify(Index entry, const Result& result, std::span<const std::uint64_t> data);
  /// Set the idle timeout and restart it.
  void set_timeout(Index entry, std::uint64_t timeout_us, std::uint64_t now_us);
  /// Append the handles of the entries that have expired and were not reported since their last hit
  /// to `expired`, and mark these entries as reported.
  void expire(std::uint64_t now_us, std::vector<Handle>& expired);
  void erase(Index entry);
  void clear();
  [[nodiscard]] std::optional<Index> find_entry(Handle handle) const;
  [[nodiscard]] Handle handle(Index entry) const {
    return Handle{entries_[entry].generation} << 32 | entry;
  }
  /// Return the number of the first entry whose number is at least `from`, or `none`.
  [[nodiscard]] Index next_used(std::size_t from) const;
  [[nodiscard]] Key key(Index entry) const;
  /// Copy hits, counters and meters of the entries that both tables have from `other`.
  void take_measurements(const TableState& other);

  // The default entry.
  Result miss;
  std::vector<std::uint64_t> miss_data;
  std::vector<Count>& counts() { return counts_; }

 private:
  struct Entry {
    Result result;
    std::uint64_t rank = 0;  // priority, then order of addition: the smaller rank wins
    Index tuple = none;
    Index after = none;            // next entry with the same key and mask, but with a greater rank
    std::uint32_t generation = 0;  // part of the handle
    bool used = false;
    Usage usage;
  };
  /// All entries with one mask.
  struct Tuple {
    std::vector<std::uint64_t> mask;
    std::uint32_t prefix = 0;
    std::uint64_t best = ~0ULL;  // the smallest rank of its entries
    std::size_t used = 0;
    // 0 for a free slot, otherwise the upper half of the hash, and the entry's number plus 1
    std::vector<std::uint64_t> slots;
  };

  /// A tuple, in the list that defines the order of the search.
  struct Turn {
    Index tuple;
    std::uint32_t prefix;
  };

  [[nodiscard]] Index find_masked(const std::uint64_t* key) const;
  [[nodiscard]] Index find_longest(const std::uint64_t* key) const;
  [[nodiscard]] Index find_range(const std::uint64_t* key) const;
  [[nodiscard]] std::uint64_t hash(const std::uint64_t* key, const std::uint64_t* mask) const;
  /// Return the number of the tuple's entry that matches a key, the one with the smallest rank, or
  /// `none`.
  [[nodiscard]] Index find_in_tuple(const Tuple& tuple, const std::uint64_t* key) const;
  void add_to_tuple(Tuple& tuple, Index entry);
  void remove_from_tuple(Tuple& tuple, Index entry);
  /// Double the size of a tuple's hash table.
  void grow(Tuple& tuple);
  /// Sort `turns_`.
  void sort_turns();
  [[nodiscard]] bool in_ranges(const Key& entry, const std::uint64_t* key) const;
  void add_to_index(Index entry);
  void build_index();

  const Table* table_;
  std::uint32_t words_;
  std::uint32_t data_words_;
  bool ranges_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> keys_;  // masked values, in contiguous memory
  std::vector<Key> range_keys_;      // complete keys, if there are ranges
  std::vector<std::uint64_t> data_;
  std::vector<Count> counts_;
  std::vector<MeterCell> meters_;
  std::vector<Index> free_;
  std::vector<Tuple> tuples_;
  std::vector<Turn> turns_;
  std::vector<Index> order_;  // order of entries, if there are ranges
  /// For each value of the first bits of the prefix field, a bit mask of the prefix lengths (modulo
  /// 64) of entries with these bits. Lengths of deleted entries may remain. Empty if there are few
  /// lengths.
  std::vector<std::uint64_t> index_;
  Index index_word_ = 0;  // the word of a key that has these bits
  std::uint32_t index_shift_ = 0;
  std::uint32_t index_bits_ = 0;
  std::size_t erased_ = 0;  // deletions since the index was built
  // entries with ranges by key, for find_same()
  std::unordered_multimap<std::uint64_t, Index> by_key_;
  /// A time at which an entry may expire. If the entry was hit in the meantime, it is checked again
  /// later.
  struct Deadline {
    std::uint64_t at_us;
    Handle handle;
    bool operator>(const Deadline& other) const { return at_us > other.at_us; }
  };
  /// Check the timeout of an entry at `at_us`.
  void schedule_check(Index entry, std::uint64_t at_us) {
    entries_[entry].usage.next_check_us = at_us;
    deadlines_.push({at_us, handle(entry)});
  }
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::size_t used_ = 0;
  std::uint32_t age_ = 0;
};

}  // namespace nagi::p4
