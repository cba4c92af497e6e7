// SPDX-License-Identifier: Apache-2.0
//
// Tables of every kind find the same entry as a comparison with all entries, while entries are
// added and deleted.
#include <random>

#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

/// Return a program that looks up h.a and h.d; the action of the entry writes h.c.
SmallProgram keyed(const std::string& match, const std::vector<Json>& keys) {
  SmallProgram program;
  const int mark = program.action("mark", {assign(field("h", "c"), parameter(0))}, {16});
  program.table("ingress", "t", match, keys, {mark}, mark, Json::array({"0xffff"}));
  program.forward();
  return program;
}

Bytes packet(std::uint64_t a, std::uint64_t d) {
  return {static_cast<std::uint8_t>(a),
          0,
          0,
          0,
          static_cast<std::uint8_t>(d >> 24),
          static_cast<std::uint8_t>(d >> 16),
          static_cast<std::uint8_t>(d >> 8),
          static_cast<std::uint8_t>(d)};
}

std::uint64_t found(Switch& machine, std::uint64_t a, std::uint64_t d) {
  const Bytes sent = machine.one(packet(a, d));
  return sent.size() == 8 ? sent[2] * 256U + sent[3] : 0x10000;
}

ActionCall mark(std::uint64_t value) { return {"mark", {number(value, 2)}}; }

/// The reference form of an entry.
struct Known {
  Handle handle;
  std::uint64_t a, a_mask, d_low, d_high, d_mask;
  int rank;           // the smaller wins
  std::uint64_t age;  // then the older
  std::uint64_t value;
  [[nodiscard]] bool matches(std::uint64_t x, std::uint64_t y) const {
    return (x & a_mask) == a && (y & d_mask) >= d_low && (y & d_mask) <= d_high;
  }
};

std::uint64_t expected(const std::vector<Known>& entries, std::uint64_t a, std::uint64_t d) {
  const Known* best = nullptr;
  for (const Known& one : entries) {
    if (!one.matches(a, d)) continue;
    if (best == nullptr || one.rank < best->rank ||
        (one.rank == best->rank && one.age < best->age)) {
      best = &one;
    }
  }
  return best == nullptr ? 0xffff : best->value;
}

class Kinds : public testing::TestWithParam<std::string> {};

TEST_P(Kinds, FindWhatLookingAtAllFinds) {
  const std::string kind = GetParam();
  const std::string of_a = kind == "ternary" ? "ternary" : "exact";
  SmallProgram program = keyed(kind, {key(of_a, "h", "a"), key(kind, "h", "d")});
  Switch machine(program);
  Control& control = machine.control();
  std::mt19937 random(7);
  std::vector<Known> entries;
  std::uint64_t age = 0;
  for (int round = 0; round < 3000; ++round) {
    if (random() % 3 == 0 && !entries.empty()) {
      const std::size_t gone = random() % entries.size();
      control.table_delete("t", entries[gone].handle);
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(gone));
    } else if (entries.size() < 200) {
      Known one{};
      one.a = random() % 4;
      one.a_mask = 0xff;
      one.value = random() % 0xffff;
      one.age = age++;
      const std::uint64_t d = random() % 64 << 24 | random() % 4;
      one.d_mask = 0xffffffff;
      Match of_d = Any{};
      Match match_a = Exact{number(one.a, 1)};
      std::optional<std::int32_t> priority;
      if (kind == "exact") {
        one.d_low = one.d_high = d;
        of_d = Exact{number(d, 4)};
      } else if (kind == "lpm") {
        const auto length = static_cast<unsigned>(random() % 33);
        one.d_mask = length == 0 ? 0 : 0xffffffff << (32 - length) & 0xffffffff;
        one.d_low = one.d_high = d & one.d_mask;
        one.rank = -static_cast<int>(length);
        of_d = Prefix{number(one.d_low, 4), length};
      } else if (kind == "ternary") {
        one.a_mask = random() % 4;
        one.a &= one.a_mask;
        one.d_mask = random() % 2 == 0 ? 0xff000000 : random() % 2 == 0 ? 0x03000003 : 0;
        one.d_low = one.d_high = d & one.d_mask;
        match_a = Ternary{number(one.a, 1), number(one.a_mask, 1)};
        of_d = Ternary{number(one.d_low, 4), number(one.d_mask, 4)};
        priority = one.rank = static_cast<int>(random() % 10) - 5;
      } else {
        one.d_low = d;
        one.d_high = d + (random() % 8 << 24);
        of_d = Range{number(one.d_low, 4), number(one.d_high, 4)};
        priority = one.rank = static_cast<int>(random() % 10);
      }
      try {
        one.handle = control.table_add("t", {match_a, of_d}, mark(one.value), priority);
        entries.push_back(one);
      } catch (const InputError& error) {
        ASSERT_THAT(error.what(), testing::HasSubstr("an entry with this key already"));
        ASSERT_TRUE(std::any_of(entries.begin(), entries.end(), [&](const Known& other) {
          return other.a == one.a && other.a_mask == one.a_mask && other.d_low == one.d_low &&
                 other.d_high == one.d_high && other.d_mask == one.d_mask && other.rank == one.rank;
        }));
      }
    }
    const std::uint64_t a = random() % 4;
    const std::uint64_t d = random() % 64 << 24 | random() % 4;
    ASSERT_EQ(found(machine, a, d), expected(entries, a, d)) << kind << " round " << round;
  }
  EXPECT_EQ(control.table_size("t"), entries.size());
  // All entries are read back page by page and found by their keys.
  std::size_t read = 0;
  for (std::optional<std::uint64_t> from = 0; from;) {
    const Control::Page page = control.table_entries("t", *from, 7);
    for (const Entry& one : page.entries) {
      EXPECT_EQ(control.table_find("t", one.match, one.priority), one.handle);
      const auto known = std::find_if(entries.begin(), entries.end(), [&](const Known& other) {
        return other.handle == one.handle;
      });
      ASSERT_NE(known, entries.end());
      EXPECT_EQ(std::get<ActionCall>(one.target).data[0], number(known->value, 2));
    }
    read += page.entries.size();
    from = page.next;
  }
  EXPECT_EQ(read, entries.size());
  control.table_clear("t");
  EXPECT_EQ(found(machine, 1, 1), 0xffffU);
  EXPECT_EQ(control.table_size("t"), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, Kinds, testing::Values("exact", "lpm", "ternary", "range"));

TEST(Table, WideKeysAreComparedWhole) {
  SmallProgram program({{"a", 128}, {"b", 8}});
  const int mark = program.action("mark", {assign(field("h", "b"), parameter(0))}, {8});
  program.table("ingress", "t", "lpm", {key("lpm", "h", "a")}, {mark});
  program.forward();
  Switch machine(program);
  Bytes prefix(16);
  prefix[0] = 0x20;
  prefix[9] = 0x80;
  machine.control().table_add("t", {Prefix{prefix, 73}}, ActionCall{"mark", {{1}}});
  Bytes packet = prefix;
  packet.push_back(0);
  packet[15] = 7;
  EXPECT_EQ(machine.one(packet).back(), 1);
  packet[9] = 0xc0;
  EXPECT_EQ(machine.one(packet).back(), 1);
  packet[9] = 0x40;
  EXPECT_EQ(machine.one(packet).back(), 0);
}

TEST(Table, EntriesOfTheProgramStand) {
  SmallProgram program = keyed("lpm", {key("exact", "h", "a"), key("lpm", "h", "d")});
  Json& table = program.root["pipelines"][0]["tables"][0];
  table["entries"] =
      Json::array({{{"match_key",
                     {{{"match_type", "exact"}, {"key", "0x05"}},
                      {{"match_type", "lpm"}, {"key", "0x0a000000"}, {"prefix_length", 8}}}},
                    {"action_entry", {{"action_id", 0}, {"action_data", {"0x1234"}}}},
                    {"priority", 1}}});
  Switch machine(program);
  EXPECT_EQ(found(machine, 5, 0x0a010203), 0x1234U);
  EXPECT_EQ(found(machine, 4, 0x0a010203), 0xffffU);
  EXPECT_THROW(machine.control().table_clear("t"), InputError);
  EXPECT_THROW(machine.control().table_add("t", {Exact{{1}}, Any{}}, mark(1)), InputError);
  table["entries"].push_back(table["entries"][0]);
  EXPECT_THAT(program.refusal(), testing::HasSubstr("the entry is there already"));
}

TEST(Table, AHundredThousandEntriesAreFound) {
  SmallProgram program = keyed("exact", {key("exact", "h", "d")});
  program.root["pipelines"][0]["tables"][0]["max_size"] = 100000;
  Switch machine(program);
  machine.control().begin();
  for (std::uint64_t i = 0; i < 100000; ++i) {
    machine.control().table_add("t", {Exact{number(i * 7919, 4)}}, mark(i % 0xffff));
  }
  machine.control().commit();
  for (std::uint64_t i = 0; i < 100000; i += 997) {
    ASSERT_EQ(found(machine, 0, i * 7919), i % 0xffff);
    ASSERT_EQ(found(machine, 0, i * 7919 + 1), 0xffffU);
  }
  EXPECT_THROW(machine.control().table_add("t", {Exact{number(1, 4)}}, mark(1)), InputError);
}

}  // namespace
}  // namespace nagi::p4::test
