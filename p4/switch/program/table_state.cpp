// SPDX-License-Identifier: Apache-2.0
#include "program/table_state.hpp"

#include <algorithm>

namespace nagi::p4 {

namespace {

std::uint64_t rank_of(std::int32_t priority, std::uint32_t age) {
  const auto shifted = static_cast<std::uint64_t>(std::int64_t{priority} + 0x80000000LL);
  return shifted << 32 | age;
}

std::int32_t priority_of(std::uint64_t rank) {
  return static_cast<std::int32_t>(static_cast<std::int64_t>(rank >> 32) - 0x80000000LL);
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t slot_of(std::uint64_t hash, Index entry) {
  return (hash & 0xffffffff00000000ULL) | (entry + 1ULL);
}
Index entry_of(std::uint64_t slot) { return static_cast<Index>(slot & 0xffffffff) - 1; }

constexpr std::uint32_t max_index_bits = 16;  // the index then has 512 KiB
constexpr std::size_t few_lengths = 3;        // with more prefix lengths, a table has an index

std::uint64_t hash_of(const Key& key) {
  auto result = mixed(static_cast<std::uint32_t>(key.priority) + 1ULL, 0x9e3779b97f4a7c15ULL);
  for (const auto* part : {&key.value, &key.mask, &key.low, &key.high}) {
    for (const std::uint64_t word : *part) result = mixed(result ^ word, 0xd6e8feb86659fd93ULL);
  }
  return result;
}

}  // namespace

std::pair<Result, std::vector<std::uint64_t>> initial_miss(const Table& table) {
  if (table.default_action == none) return {};
  const auto position = std::find(table.actions.begin(), table.actions.end(), table.default_action);
  return {{Result::Kind::action, table.default_action,
           static_cast<Index>(position - table.actions.begin())},
          table.default_data};
}

TableState::TableState(const Table& table)
    : table_(&table),
      words_(table.words),
      data_words_(table.data_words),
      ranges_(table.kind == Kind::range) {
  for (const KeyField& field : table.key) {
    if (field.match != MatchKind::lpm) continue;
    const std::uint32_t top_bits = (field.field.bits - 1) % 64 + 1;  // bits of its highest word
    index_bits_ = std::min(top_bits, max_index_bits);
    index_word_ = field.word + field.field.limbs - 1;
    index_shift_ = field.shift + top_bits - index_bits_;
  }
}

std::uint64_t TableState::hash(const std::uint64_t* key, const std::uint64_t* mask) const {
  std::uint64_t result = 0x9e3779b97f4a7c15ULL;
  for (std::uint32_t i = 0; i < words_; ++i) {
    result = mixed(result ^ (key[i] & mask[i]), 0xd6e8feb86659fd93ULL + i * 2);
  }
  return mixed(result, 0xa0761d6478bd642fULL);
}

Index TableState::find_in_tuple(const Tuple& tuple, const std::uint64_t* key) const {
  if (tuple.used == 0) return none;
  const std::uint64_t* mask = tuple.mask.data();
  const std::uint64_t code = hash(key, mask);
  const std::size_t last = tuple.slots.size() - 1;
  for (std::size_t at = code & last;; at = (at + 1) & last) {
    const std::uint64_t slot = tuple.slots[at];
    if (slot == 0) return none;
    if ((slot ^ code) >> 32 != 0) continue;
    const Index entry = entry_of(slot);
    const std::uint64_t* other = keys_.data() + std::size_t{entry} * words_;
    std::uint64_t differ = 0;
    for (std::uint32_t i = 0; i < words_; ++i) differ |= (key[i] & mask[i]) ^ other[i];
    if (differ == 0) return entry;
  }
}

Index TableState::find_masked(const std::uint64_t* key) const {
  if (table_->kind != Kind::ternary) return find_longest(key);
  Index best = none;
  std::uint64_t rank = ~0ULL;
  for (const Turn& turn : turns_) {
    const Tuple& tuple = tuples_[turn.tuple];
    if (tuple.best >= rank) break;
    const Index entry = find_in_tuple(tuple, key);
    if (entry != none && entries_[entry].rank < rank) {
      best = entry;
      rank = entries_[entry].rank;
    }
  }
  return best;
}

Index TableState::find_longest(const std::uint64_t* key) const {
  std::uint64_t lengths = ~0ULL;
  if (!index_.empty()) {
    lengths = index_[key[index_word_] >> index_shift_ & ((1ULL << index_bits_) - 1)];
  }
  for (const Turn& turn : turns_) {
    if ((lengths >> turn.prefix % 64 & 1) == 0) continue;
    const Index entry = find_in_tuple(tuples_[turn.tuple], key);
    if (entry != none) return entry;
  }
  return none;
}

void TableState::add_to_index(Index entry) {
  const std::uint32_t prefix = tuples_[entries_[entry].tuple].prefix;
  const std::uint64_t all = (1ULL << index_bits_) - 1;
  const std::uint64_t first =
      keys_[std::size_t{entry} * words_ + index_word_] >> index_shift_ & all;
  const std::uint64_t count = prefix < index_bits_ ? 1ULL << (index_bits_ - prefix) : 1;
  for (std::uint64_t i = 0; i < count; ++i) index_[first + i] |= 1ULL << prefix % 64;
}

void TableState::build_index() {
  erased_ = 0;
  index_.assign(std::size_t{1} << index_bits_, 0);
  for (Index entry = 0; entry < entries_.size(); ++entry) {
    if (entries_[entry].used) add_to_index(entry);
  }
}

bool TableState::in_ranges(const Key& entry, const std::uint64_t* key) const {
  std::size_t at = 0;
  for (const KeyField& field : table_->key) {
    if (field.match != MatchKind::range) continue;
    const std::uint32_t limbs = field.field.limbs;
    const auto part = [&](std::uint32_t i) {
      return limbs > 1 ? key[field.word + i] : key[field.word] >> field.shift & field.field.mask();
    };
    int low = 0;  // result of the comparison
    int high = 0;
    for (std::uint32_t i = limbs; i-- > 0;) {
      const std::uint64_t value = part(i);
      if (low == 0 && value != entry.low[at + i]) low = value < entry.low[at + i] ? -1 : 1;
      if (high == 0 && value != entry.high[at + i]) high = value < entry.high[at + i] ? -1 : 1;
    }
    if (low < 0 || high > 0) return false;
    at += limbs;
  }
  return true;
}

Index TableState::find_range(const std::uint64_t* key) const {
  for (const Index index : order_) {
    const Key& entry = range_keys_[index];
    std::uint64_t differ = 0;
    for (std::uint32_t i = 0; i < words_; ++i) {
      differ |= (key[i] & entry.mask[i]) ^ entry.value[i];
    }
    if (differ == 0 && in_ranges(entry, key)) return index;
  }
  return none;
}

Index TableState::find_same(const Key& key) const {
  if (ranges_) {
    const auto [first, last] = by_key_.equal_range(hash_of(key));
    const auto position = std::find_if(
        first, last, [&](const auto& known) { return range_keys_[known.second] == key; });
    return position == last ? none : position->second;
  }
  for (const Tuple& tuple : tuples_) {
    if (tuple.mask != key.mask) continue;
    for (Index entry = find_in_tuple(tuple, key.value.data()); entry != none;
         entry = entries_[entry].after) {
      if (priority_of(entries_[entry].rank) == key.priority) return entry;
    }
  }
  return none;
}

Handle TableState::add(Key key, const Result& result, std::span<const std::uint64_t> data,
                       std::uint64_t now_us) {
  Index number = 0;
  if (free_.empty()) {
    number = static_cast<Index>(entries_.size());
    entries_.emplace_back();
    keys_.resize(keys_.size() + words_);
    data_.resize(data_.size() + data_words_);
    if (ranges_) range_keys_.emplace_back();
    if (table_->with_counters) counts_.emplace_back();
    if (table_->meter != none) meters_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
    if (table_->with_counters) counts_[number] = {};
    if (table_->meter != none) meters_[number] = {};
  }
  Entry& entry = entries_[number];
  entry.rank = rank_of(key.priority, age_++);
  entry.after = none;
  entry.used = true;
  entry.usage = {0, now_us, 0, 0, false};
  std::copy(key.value.begin(), key.value.end(),
            keys_.begin() + static_cast<std::ptrdiff_t>(std::size_t{number} * words_));
  modify(number, result, data);
  ++used_;
  if (ranges_) {
    by_key_.emplace(hash_of(key), number);
    range_keys_[number] = std::move(key);
    const auto worse = [this](std::uint64_t rank, Index other) {
      return rank < entries_[other].rank;
    };
    order_.insert(std::upper_bound(order_.begin(), order_.end(), entry.rank, worse), number);
  } else {
    auto tuple = std::find_if(tuples_.begin(), tuples_.end(),
                              [&](const Tuple& one) { return one.mask == key.mask; });
    const bool fresh = tuple == tuples_.end();
    if (fresh) {
      tuples_.push_back({std::move(key.mask), key.prefix, ~0ULL, 0, {}});
      tuple = tuples_.end() - 1;
    }
    entry.tuple = static_cast<Index>(tuple - tuples_.begin());
    const bool better = entry.rank < tuple->best;
    tuple->best = std::min(tuple->best, entry.rank);
    add_to_tuple(*tuple, number);
    if (fresh || (better && table_->kind == Kind::ternary)) sort_turns();
    if (!index_.empty()) {
      add_to_index(number);
    } else if (fresh && table_->kind == Kind::lpm && tuples_.size() > few_lengths) {
      build_index();
    }
  }
  return handle(number);
}

void TableState::modify(Index number, const Result& result, std::span<const std::uint64_t> data) {
  entries_[number].result = result;
  std::copy(data.begin(), data.end(),
            data_.begin() + static_cast<std::ptrdiff_t>(std::size_t{number} * data_words_));
}

void TableState::set_timeout(Index number, std::uint64_t timeout_us, std::uint64_t now_us) {
  Usage& usage = entries_[number].usage;
  usage.timeout_us = timeout_us;
  usage.last_us = now_us;
  usage.was_reported = false;
  if (timeout_us != 0) schedule_check(number, now_us + timeout_us);
}

void TableState::expire(std::uint64_t now_us, std::vector<Handle>& expired) {
  while (!deadlines_.empty() && deadlines_.top().at_us <= now_us) {
    const Deadline deadline = deadlines_.top();
    deadlines_.pop();
    const auto number = find_entry(deadline.handle);
    if (!number) continue;
    Usage& usage = entries_[*number].usage;
    // After a change of the timeout, only the latest deadline of the entry is valid.
    if (usage.timeout_us == 0 || usage.next_check_us != deadline.at_us) continue;
    const std::uint64_t expires_us = usage.last_us + usage.timeout_us;
    if (expires_us > now_us) {
      schedule_check(*number, expires_us);
      continue;
    }
    if (!usage.was_reported) expired.push_back(deadline.handle);
    usage.was_reported = true;
    schedule_check(*number, now_us + usage.timeout_us);  // the entry may be hit and expire again
  }
}

void TableState::add_to_tuple(Tuple& tuple, Index number) {
  Entry& entry = entries_[number];
  const std::uint64_t* key = keys_.data() + std::size_t{number} * words_;
  if (tuple.slots.empty() || 2 * (tuple.used + 1) > tuple.slots.size()) grow(tuple);
  const Index first = find_in_tuple(tuple, key);
  const std::uint64_t code = hash(key, tuple.mask.data());
  const std::size_t last = tuple.slots.size() - 1;
  std::size_t at = code & last;
  if (first == none) {
    while (tuple.slots[at] != 0) at = (at + 1) & last;
    tuple.slots[at] = slot_of(code, number);
  } else if (entry.rank < entries_[first].rank) {
    while (tuple.slots[at] == 0 || entry_of(tuple.slots[at]) != first) at = (at + 1) & last;
    tuple.slots[at] = slot_of(code, number);
    entry.after = first;
  } else {
    Index before = first;
    while (entries_[before].after != none && entries_[entries_[before].after].rank < entry.rank) {
      before = entries_[before].after;
    }
    entry.after = entries_[before].after;
    entries_[before].after = number;
  }
  ++tuple.used;
}

void TableState::grow(Tuple& tuple) {
  const std::vector<std::uint64_t> old = std::move(tuple.slots);
  tuple.slots.assign(std::max<std::size_t>(16, old.size() * 2), 0);
  const std::size_t last = tuple.slots.size() - 1;
  for (const std::uint64_t slot : old) {
    if (slot == 0) continue;
    const std::uint64_t* key = keys_.data() + std::size_t{entry_of(slot)} * words_;
    const std::uint64_t code = hash(key, tuple.mask.data());
    std::size_t at = code & last;
    while (tuple.slots[at] != 0) at = (at + 1) & last;
    tuple.slots[at] = slot;
  }
}

void TableState::remove_from_tuple(Tuple& tuple, Index number) {
  Entry& entry = entries_[number];
  const std::uint64_t* key = keys_.data() + std::size_t{number} * words_;
  const Index first = find_in_tuple(tuple, key);
  --tuple.used;
  if (first != number) {
    Index before = first;
    while (entries_[before].after != number) before = entries_[before].after;
    entries_[before].after = entry.after;
    return;
  }
  const std::uint64_t code = hash(key, tuple.mask.data());
  const std::size_t last = tuple.slots.size() - 1;
  std::size_t at = code & last;
  while (tuple.slots[at] == 0 || entry_of(tuple.slots[at]) != number) at = (at + 1) & last;
  if (entry.after != none) {
    tuple.slots[at] = slot_of(code, entry.after);
    return;
  }
  // Fill the gap with a later entry whose search passes the gap, because a search ends at a gap.
  tuple.slots[at] = 0;
  for (std::size_t next = (at + 1) & last; tuple.slots[next] != 0; next = (next + 1) & last) {
    const std::uint64_t* other = keys_.data() + std::size_t{entry_of(tuple.slots[next])} * words_;
    const std::size_t home = hash(other, tuple.mask.data()) & last;
    if (((next - home) & last) >= ((next - at) & last)) {
      tuple.slots[at] = tuple.slots[next];
      tuple.slots[next] = 0;
      at = next;
    }
  }
}

void TableState::sort_turns() {
  turns_.clear();
  for (Index i = 0; i < tuples_.size(); ++i) turns_.push_back({i, tuples_[i].prefix});
  std::sort(turns_.begin(), turns_.end(), [this](const Turn& a, const Turn& b) {
    if (table_->kind == Kind::ternary) return tuples_[a.tuple].best < tuples_[b.tuple].best;
    return a.prefix > b.prefix;
  });
}

void TableState::erase(Index number) {
  Entry& entry = entries_[number];
  if (ranges_) {
    const auto [first, last] = by_key_.equal_range(hash_of(range_keys_[number]));
    by_key_.erase(
        std::find_if(first, last, [&](const auto& known) { return known.second == number; }));
    order_.erase(std::find(order_.begin(), order_.end(), number));
    range_keys_[number] = {};
  } else {
    Tuple& tuple = tuples_[entry.tuple];
    remove_from_tuple(tuple, number);
    if (tuple.used == 0) {  // remove the tuple: move the last tuple to its position
      const auto removed = entry.tuple;
      const auto last = static_cast<Index>(tuples_.size() - 1);
      if (removed != last) {
        tuples_[removed] = std::move(tuples_[last]);
        for (Entry& other : entries_) {
          if (other.used && other.tuple == last) other.tuple = removed;
        }
      }
      tuples_.pop_back();
      sort_turns();
    }
  }
  entry.used = false;
  ++entry.generation;
  free_.push_back(number);
  --used_;
  if (!index_.empty() && ++erased_ > used_ + index_.size()) build_index();
}

void TableState::clear() {
  tuples_.clear();
  turns_.clear();
  index_.clear();
  order_.clear();
  by_key_.clear();
  free_.clear();
  for (Index number = static_cast<Index>(entries_.size()); number-- > 0;) {
    Entry& entry = entries_[number];
    if (entry.used) ++entry.generation;
    entry.used = false;
    free_.push_back(number);
  }
  deadlines_ = {};
  used_ = 0;
}

std::optional<Index> TableState::find_entry(Handle handle) const {
  const std::uint64_t number = handle & 0xffffffff;
  if (number >= entries_.size() || !entries_[number].used ||
      entries_[number].generation != handle >> 32) {
    return std::nullopt;
  }
  return static_cast<Index>(number);
}

Key TableState::key(Index number) const {
  if (ranges_) return range_keys_[number];
  const Entry& entry = entries_[number];
  const Tuple& tuple = tuples_[entry.tuple];
  const auto value = keys_.begin() + static_cast<std::ptrdiff_t>(std::size_t{number} * words_);
  return {{value, value + words_}, tuple.mask, {}, {}, tuple.prefix, priority_of(entry.rank)};
}

void TableState::take_measurements(const TableState& other) {
  hits = other.hits;
  misses = other.misses;
  const std::size_t both = std::min(entries_.size(), other.entries_.size());
  for (std::size_t number = 0; number < both; ++number) {
    Entry& entry = entries_[number];
    const Entry& same = other.entries_[number];
    if (!entry.used || !same.used || entry.generation != same.generation) continue;
    if (table_->with_counters) counts_[number] = other.counts_[number];
    if (table_->meter != none) meters_[number] = other.meters_[number];
    entry.usage.hits = same.usage.hits;
    if (same.usage.last_us < entry.usage.last_us) continue;  // the timeout was restarted here
    entry.usage.last_us = same.usage.last_us;
    entry.usage.was_reported = same.usage.was_reported;
  }
}

Index TableState::next_used(std::size_t from) const {
  for (std::size_t number = from; number < entries_.size(); ++number) {
    if (entries_[number].used) return static_cast<Index>(number);
  }
  return none;
}

}  // namespace nagi::p4
