// SPDX-License-Identifier: Apache-2.0
//
// Measures how long a table needs to find and to add an entry, by kind and size of the table,
// without packets. Keys are looked up in random order, so that processor caches miss as often as
// with this many flows. All keys match. Prints a JSON array.
//
//   exact    48-bit addresses
//   lpm      IPv4 prefixes, with lengths as in routing tables of the Internet: 24 bits for most
//   ternary  five-tuples with a given number of different masks, as in access lists

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "program/key.hpp"
#include "program/table_state.hpp"

namespace nagi::p4 {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::uint64_t>;

constexpr std::size_t max_looked_up = 1 << 18;  // maximum number of different keys to look up
constexpr double min_seconds = 0.3;             // minimum duration of a measurement

Table table_of(Kind kind, MatchKind match, const std::vector<std::uint32_t>& widths) {
  Table table;
  table.name = "t";
  table.kind = kind;
  for (const std::uint32_t bits : widths) {
    KeyField field;
    field.name = "f";
    field.match = match;
    field.field.bits = bits;
    field.field.limbs = 1;
    field.word = table.words++;
    table.key.push_back(field);
  }
  return table;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Measure how long it takes to add `entries`, and to look up keys that match them. `masks` is the
/// number of different masks, for the output.
nlohmann::json measure(const std::string& kind, const Table& table, std::vector<Key> entries,
                       std::size_t masks, std::mt19937_64& random) {
  std::vector<Words> keys;
  std::vector<std::size_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  order.resize(std::min(order.size(), max_looked_up));
  for (const std::size_t i : order) {
    Words key = entries[i].value;
    for (std::size_t word = 0; word < key.size(); ++word) {
      const std::uint64_t width = table.key[word].field.mask();
      key[word] |= random() & ~entries[i].mask[word] & width;
    }
    keys.push_back(std::move(key));
  }
  const std::size_t count = entries.size();
  TableState state(table);
  const auto added = Clock::now();
  for (Key& key : entries) state.add(std::move(key), {Result::Kind::action, 0, 0}, {});
  const double add_s = seconds_since(added);

  std::size_t lookups = 0;
  std::uint64_t sum = 0;
  const auto begin = Clock::now();
  double duration_s = 0;
  do {
    for (const Words& key : keys) sum += state.find(key.data());
    lookups += keys.size();
    duration_s = seconds_since(begin);
  } while (duration_s < min_seconds);
  if (sum == 0) std::cerr << "bench-tables: no look-up found an entry\n";
  return {{"kind", kind},
          {"entries", count},
          {"masks", masks},
          {"add_us", 1e6 * add_s / static_cast<double>(count)},
          {"lookup_ns", 1e9 * duration_s / static_cast<double>(lookups)}};
}

std::vector<Key> exact_keys(const Table& table, std::size_t count, std::mt19937_64& random) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < count; ++i) {
    KeyBuilder builder(table);
    // The lower 32 bits make all keys different, because the factor is odd. The upper bits are
    // random.
    builder.exact({(random() & 0xffffULL) << 32 | i * 2654435761ULL % (1ULL << 32)});
    keys.push_back(builder.finish(0));
  }
  return keys;
}

std::vector<Key> prefixes(const Table& table, std::size_t count, std::mt19937_64& random) {
  // Percentages of prefix lengths in a full routing table. The other prefixes have 8 to 15 bits.
  constexpr std::pair<std::uint32_t, std::uint32_t> shares[] = {
      {24, 60}, {23, 10}, {22, 11}, {21, 5}, {20, 4}, {19, 3}, {18, 2}, {16, 2}};
  std::vector<Key> keys;
  std::set<std::pair<std::uint32_t, std::uint64_t>> drawn;
  while (keys.size() < count) {
    std::uint32_t draw = static_cast<std::uint32_t>(random() % 100);
    std::uint32_t length = 8 + draw % 8;
    for (const auto& [bits, share] : shares) {
      if (draw < share) {
        length = bits;
        break;
      }
      draw -= share;
    }
    const std::uint64_t value = (random() & 0xffffffffULL) >> (32 - length) << (32 - length);
    if (!drawn.emplace(length, value).second) continue;
    KeyBuilder builder(table);
    builder.prefix({value}, length);
    keys.push_back(builder.finish(0));
  }
  return keys;
}

std::vector<Key> rules(const Table& table, std::size_t count, std::size_t masks,
                       std::mt19937_64& random) {
  // Prefix lengths of source and destination address.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> prefix_lengths;
  for (std::uint64_t source = 0; source <= 32; ++source) {
    for (std::uint64_t destination = 0; destination <= 32; ++destination) {
      prefix_lengths.emplace_back(source, destination);
    }
  }
  std::shuffle(prefix_lengths.begin(), prefix_lengths.end(), random);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t mask_number = i % masks;
    const auto [source, destination] = prefix_lengths[mask_number % prefix_lengths.size()];
    const std::uint64_t ports = 0xffff >> mask_number / prefix_lengths.size();
    KeyBuilder builder(table);
    const auto field = [&](std::uint32_t bits, std::uint64_t mask) {
      builder.ternary({random() & mask}, {mask & ((1ULL << bits) - 1)});
    };
    field(32, source == 0 ? 0 : ~0ULL << (32 - source) & 0xffffffff);
    field(32, destination == 0 ? 0 : ~0ULL << (32 - destination) & 0xffffffff);
    field(16, ports);
    field(16, 0xffff);
    field(8, 0xff);
    Key key = builder.finish(static_cast<std::int32_t>(random() % 1'000'000));
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace
}  // namespace nagi::p4

int main() {
  using namespace nagi::p4;
  std::mt19937_64 random(7);
  nlohmann::json all = nlohmann::json::array();
  const Table exact = table_of(Kind::exact, MatchKind::exact, {48});
  for (const std::size_t count : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
    all.push_back(measure("exact", exact, exact_keys(exact, count, random), 1, random));
  }
  const Table lpm = table_of(Kind::lpm, MatchKind::lpm, {32});
  for (const std::size_t count : {1'000U, 10'000U, 100'000U, 500'000U}) {
    all.push_back(measure("lpm", lpm, prefixes(lpm, count, random), 17, random));
  }
  const Table ternary = table_of(Kind::ternary, MatchKind::ternary, {32, 32, 16, 16, 8});
  for (const auto& [count, masks] : {std::pair(100U, 10U), std::pair(10'000U, 10U),
                                     std::pair(10'000U, 100U), std::pair(10'000U, 1'000U)}) {
    all.push_back(measure("ternary", ternary, rules(ternary, count, masks, random), masks, random));
  }
  std::cout << all.dump() << "\n";
}
