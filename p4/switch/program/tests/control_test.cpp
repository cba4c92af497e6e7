// SPDX-License-Identifier: Apache-2.0
//
// Invalid operations of a controller are refused with the reason, and change nothing.
#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename Operation>
std::string refusal(const Operation& operation) {
  try {
    operation();
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

/// A program with tables of all kinds, registers, a counter, meters and a profile.
SmallProgram everything() {
  SmallProgram program;
  Json& root = program.root;
  root["register_arrays"].push_back({{"name", "r"}, {"id", 0}, {"size", 4}, {"bitwidth", 12}});
  root["counter_arrays"].push_back({{"name", "k"}, {"id", 0}, {"size", 4}, {"is_direct", false}});
  root["counter_arrays"].push_back(
      {{"name", "of_exact"}, {"id", 1}, {"is_direct", true}, {"binding", "exact"}});
  root["meter_arrays"].push_back({{"name", "m"},
                                  {"id", 0},
                                  {"size", 2},
                                  {"rate_count", 2},
                                  {"type", "packets"},
                                  {"is_direct", false}});
  const int set = program.action("set", {assign(field("h", "a"), parameter(0))}, {8});
  const int nothing = program.action("nothing", {});
  const int other = program.action("other", {});
  (void)other;
  program.table("ingress", "exact", "exact", {key("exact", "h", "b")}, {set, nothing}, nothing);
  program.table("ingress", "lpm", "lpm", {key("lpm", "h", "d")}, {set, nothing}, nothing);
  program.table("ingress", "ternary", "ternary", {key("ternary", "h", "d")}, {set, nothing});
  program.table("ingress", "range", "range", {key("range", "h", "c")}, {set, nothing});
  program.table("ingress", "fixed", "exact", {key("exact", "h", "d")}, {set, nothing}, nothing,
                Json::array(), true);
  Json& shared =
      program.table("ingress", "shared", "exact", {key("exact", "h", "c")}, {set, nothing});
  shared["type"] = "indirect_ws";
  shared["action_profile"] = "p";
  root["pipelines"][0]["action_profiles"] = Json::array(
      {{{"name", "p"},
        {"id", 0},
        {"max_size", 3},
        {"selector", {{"algo", "identity"}, {"input", Json::array({field("h", "d")})}}}}});
  root["pipelines"][0]["tables"][0]["max_size"] = 2;
  program.forward();
  return program;
}

TEST(Control, RefusesWhatDoesNotFit) {
  Switch machine(everything());
  Control& c = machine.control();
  const ActionCall set{"set", {{1}}};
  const auto add = [&](const std::string& table, const std::vector<Match>& match,
                       const Target& target, std::optional<std::int32_t> priority = {}) {
    return refusal([&] { c.table_add(table, match, target, priority); });
  };
  EXPECT_THAT(add("none", {}, set),
              AllOf(HasSubstr("none: there is no such table"), HasSubstr("exact, lpm")));
  EXPECT_THAT(add("exact", {}, set), HasSubstr("0 key fields; give b (exact)"));
  EXPECT_THAT(add("exact", {Exact{{1, 0}}}, set), HasSubstr("more than 8 bits"));
  EXPECT_THAT(add("exact", {Any{}}, set), HasSubstr("no value for a field of kind exact"));
  EXPECT_THAT(add("exact", {Prefix{{1}, 8}}, set), HasSubstr("a prefix for a field"));
  EXPECT_THAT(add("exact", {Exact{{1}}}, ActionCall{"other", {}}),
              HasSubstr("action other is not permitted here"));
  EXPECT_THAT(add("exact", {Exact{{1}}}, ActionCall{"set", {}}),
              HasSubstr("set takes 1 values, not 0; give p0"));
  EXPECT_THAT(add("exact", {Exact{{1}}}, ActionCall{"set", {{1, 1}}}),
              HasSubstr("set: p0: a value of more than 8 bits"));
  EXPECT_THAT(add("exact", {Exact{{1}}}, Member{0}), HasSubstr("it has no action profile"));
  EXPECT_THAT(add("lpm", {Prefix{{10, 0, 0, 1}, 8}}, set),
              HasSubstr("bits are set after the prefix"));
  EXPECT_THAT(add("lpm", {Prefix{{0}, 33}}, set), HasSubstr("a prefix of 33 bits"));
  EXPECT_THAT(add("lpm", {Ternary{{0}, {0}}}, set), HasSubstr("a mask for a field"));
  EXPECT_THAT(add("ternary", {Any{}}, set), HasSubstr("no priority"));
  EXPECT_THAT(add("ternary", {Ternary{{3}, {1}}}, set, 1),
              HasSubstr("bits are set outside the mask"));
  EXPECT_THAT(add("range", {Range{{3}, {1}}}, set, 1), HasSubstr("a range that is empty"));
  EXPECT_EQ(c.table_size("exact") + c.table_size("lpm") + c.table_size("ternary"), 0U);

  EXPECT_EQ(c.table_add("exact", {Exact{{0, 0, 1}}}, set), 0U);
  EXPECT_THAT(add("exact", {Exact{{1}}}, set), HasSubstr("an entry with this key already"));
  EXPECT_EQ(c.table_add("exact", {Exact{{2}}}, set), 1U);
  EXPECT_THAT(add("exact", {Exact{{3}}}, set), HasSubstr("it is full: 2 entries"));
  EXPECT_THAT(refusal([&] { c.table_delete("exact", 7); }), HasSubstr("there is no entry 7"));
  c.table_delete("exact", 0);
  EXPECT_THAT(refusal([&] { c.table_delete("exact", 0); }), HasSubstr("there is no entry 0"));
  const Handle again = c.table_add("exact", {Exact{{1}}}, set);
  EXPECT_NE(again, 0U);  // what knew the old entry does not meet the new one
  EXPECT_THAT(refusal([&] { c.table_modify("exact", 0, set); }), HasSubstr("there is no entry 0"));
  EXPECT_THAT(refusal([&] { c.table_default("fixed", set); }),
              HasSubstr("its default action is constant"));
}

TEST(Control, RegistersCountersAndMeters) {
  Switch machine(everything());
  Control& c = machine.control();
  c.register_write("r", 3, {0x0a, 0xbc});
  EXPECT_EQ(c.register_read("r", 3), (Bytes{0x0a, 0xbc}));
  EXPECT_THAT(refusal([&] { c.register_write("r", 3, {0x1a, 0xbc}); }),
              HasSubstr("more than 12 bits"));
  EXPECT_THAT(refusal([&] { c.register_write("r", 4, {1}); }),
              HasSubstr("there is no index 4; the last one is 3"));
  EXPECT_EQ(c.register_read_all("r").size(), 4U);
  c.register_reset("r");
  EXPECT_EQ(c.register_read("r", 3), (Bytes{0, 0}));
  EXPECT_THAT(refusal([&] { (void)c.counter_read("of_exact", 0); }),
              HasSubstr("it belongs to the entries of exact"));
  EXPECT_THAT(refusal([&] { (void)c.direct_counter_read("lpm", 0); }),
              HasSubstr("it has no direct counter"));
  EXPECT_THAT(refusal([&] { c.meter_rates("m", 0, {{1, 1}}); }), HasSubstr("1 rates; give 2"));
  EXPECT_THAT(refusal([&] { c.meter_rates("m", 0, {{2, 1}, {1, 1}}); }),
              HasSubstr("below the committed"));
  EXPECT_THAT(refusal([&] { c.meter_rates("m", 0, {{-1, 1}, {1, 1}}); }), HasSubstr("not a rate"));
  const Handle entry = c.table_add("exact", {Exact{{9}}}, ActionCall{"nothing", {}});
  machine.send({1, 9, 0, 0, 0, 0, 0, 0, 1, 2});
  EXPECT_EQ(c.direct_counter_read("exact", entry).packets, 1U);
  EXPECT_EQ(c.direct_counter_read("exact", entry).bytes, 10U);
  c.counter_reset("of_exact");
  EXPECT_EQ(c.direct_counter_read("exact", entry).packets, 0U);
}

TEST(Control, MembersAndGroups) {
  Switch machine(everything());
  Control& c = machine.control();
  EXPECT_EQ(c.member_add("p", {"set", {{10}}}), 0U);
  EXPECT_EQ(c.member_add("p", {"set", {{20}}}), 1U);
  EXPECT_EQ(c.member_add("p", {"set", {{30}}}), 2U);
  EXPECT_THAT(refusal([&] { c.member_add("p", {"set", {{1}}}); }),
              HasSubstr("it is full: 3 members"));
  EXPECT_EQ(c.group_create("p"), 0U);
  EXPECT_THAT(refusal([&] { c.table_add("shared", {Exact{{1}}}, Group{0}); }),
              HasSubstr("group 0 is empty"));
  c.group_add_member("p", 0, 2);
  c.group_add_member("p", 0, 0);
  EXPECT_THAT(refusal([&] { c.group_add_member("p", 0, 0); }),
              HasSubstr("member 0 is in the group"));
  const Handle entry = c.table_add("shared", {Exact{{0}}}, Group{0});
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 4})[0], 10);  // 4 % 2 = 0: the smallest number
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 5})[0], 30);
  EXPECT_THAT(refusal([&] { c.member_delete("p", 0); }), HasSubstr("member 0 is in use"));
  EXPECT_THAT(refusal([&] { c.group_delete("p", 0); }), HasSubstr("group 0 is in use"));
  c.member_modify("p", 0, {"set", {{99}}});
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 4})[0], 99);
  c.table_modify("shared", entry, Member{1});
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 4})[0], 20);
  c.group_delete("p", 0);
  c.member_delete("p", 0);
  EXPECT_THAT(refusal([&] { c.member_delete("p", 1); }), HasSubstr("in use"));
  EXPECT_THAT(refusal([&] { c.table_add("shared", {Exact{{1}}}, Member{0}); }),
              HasSubstr("there is no member 0"));
  EXPECT_THAT(refusal([&] { c.table_add("shared", {Exact{{1}}}, ActionCall{"set", {{1}}}); }),
              HasSubstr("refer to the action profile p"));
}

TEST(Control, RollingBackUndoesEverything) {
  Switch machine(everything());
  Control& c = machine.control();
  const Handle first = c.table_add("exact", {Exact{{1}}}, ActionCall{"set", {{7}}});
  c.register_write("r", 0, {5});
  c.member_add("p", {"set", {{1}}});
  c.begin();
  c.table_delete("exact", first);
  c.table_add("exact", {Exact{{2}}}, ActionCall{"set", {{8}}});
  c.table_default("exact", ActionCall{"set", {{9}}});
  c.register_write("r", 0, {6});
  c.table_add("shared", {Exact{{0}}}, Member{0});
  c.mirror_add(1, {2, {}});
  c.multicast_create(1, {{0, {1}}});
  EXPECT_THAT(refusal([&] { c.begin(); }), HasSubstr("already"));
  c.roll_back();
  EXPECT_EQ(machine.one({0, 1, 0, 0, 0, 0, 0, 0})[0], 7);
  EXPECT_EQ(machine.one({0, 2, 0, 0, 0, 0, 0, 0})[0], 0);
  EXPECT_EQ(c.register_read("r", 0), (Bytes{0, 5}));
  EXPECT_EQ(c.table_size("shared"), 0U);
  c.member_delete("p", 0);  // nothing refers to it
  c.multicast_create(1, {{0, {1}}});
  EXPECT_THROW(c.mirror_delete(1), InputError);
  c.table_modify("exact", first, ActionCall{"set", {{11}}});
  EXPECT_EQ(machine.one({0, 1, 0, 0, 0, 0, 0, 0})[0], 11);
  const auto entries = c.table_entries("exact").entries;
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(std::get<ActionCall>(entries[0].target).data[0], (Bytes{11}));
  EXPECT_EQ(std::get<Exact>(entries[0].match[0]).value, (Bytes{1}));
}

TEST(Control, ReadsBackWhatWasWritten) {
  Switch machine(everything());
  Control& c = machine.control();
  c.set_time(10);
  const Handle handle =
      c.table_add("ternary", {Ternary{{10, 0, 0, 0}, {255, 0, 0, 0}}}, ActionCall{"set", {{7}}}, 5);
  EXPECT_EQ(c.table_find("ternary", {Prefix{{10, 0, 0, 0}, 8}}, 5), handle);
  EXPECT_THAT(refusal([&] { (void)c.table_find("ternary", {Prefix{{10, 0, 0, 0}, 8}}, 6); }),
              HasSubstr("no entry with this key"));
  c.table_delete("ternary", handle);

  c.table_add("exact", {Exact{{2}}}, ActionCall{"set", {{8}}});
  for (int i = 0; i < 3; ++i) machine.send({0, 2, 0, 0, 0, 0, 0, 0}, 3, 20);
  machine.send({0, 9, 0, 0, 0, 0, 0, 0}, 3, 20);
  c.set_time(50);
  const Entry entry = c.table_entries("exact").entries.at(0);
  EXPECT_EQ(entry.hits, 3U);
  EXPECT_EQ(entry.idle_us, 30U);
  EXPECT_EQ(entry.count->packets, 3U);
  EXPECT_FALSE(entry.timeout_us);
  c.direct_counter_write("exact", entry.handle, {100, 1000});
  EXPECT_EQ(c.table_entry("exact", entry.handle).count->bytes, 1000U);

  Default miss = c.table_default_read("exact");
  EXPECT_TRUE(miss.is_initial);
  EXPECT_EQ(std::get<ActionCall>(*miss.target).action, "nothing");
  EXPECT_EQ(miss.hits, 3U);
  EXPECT_EQ(miss.misses, 1U);
  c.table_default("exact", ActionCall{"set", {{9}}});
  miss = c.table_default_read("exact");
  EXPECT_FALSE(miss.is_initial);
  EXPECT_EQ(std::get<ActionCall>(*miss.target).data, (std::vector<Bytes>{{9}}));
  c.table_default_reset("exact");
  EXPECT_TRUE(c.table_default_read("exact").is_initial);
  EXPECT_FALSE(c.table_default_read("ternary").target);

  c.member_add("p", {"set", {{1}}});
  c.member_add("p", {"set", {{2}}});
  const std::uint32_t group = c.group_create("p");
  c.group_add_member("p", group, 1);
  EXPECT_EQ(c.members("p").size(), 2U);
  EXPECT_EQ(c.members("p", 1).at(0).call.data[0], (Bytes{2}));
  EXPECT_EQ(c.groups("p").at(0).members, (std::vector<std::uint32_t>{1}));
  EXPECT_THROW((void)c.members("p", 2), InputError);

  c.counter_write("k", 2, {5, 6});
  EXPECT_EQ(c.counter_read_all("k").at(2).packets, 5U);
  EXPECT_EQ(c.counter_read_all("k").size(), 4U);
  EXPECT_TRUE(c.meter_read("m", 1).empty());
  c.meter_rates("m", 1, {{0.5, 10}, {1.5, 20}});
  EXPECT_EQ(c.meter_read("m", 1).at(1).burst, 20U);
  EXPECT_EQ(c.meter_read_all("m").at(1).at(0).per_us, 0.5);
  c.mirror_add(3, {7, {}, 64});
  EXPECT_EQ(c.mirrors().at(3).max_bytes, 64U);
  c.multicast_create(4, {{1, {2, 3}}});
  EXPECT_EQ(c.multicast_groups().at(4)[0].ports, (std::vector<Port>{2, 3}));
}

TEST(Control, SaysWhyItRefuses) {
  Switch machine(everything());
  Control& c = machine.control();
  const auto code = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const InputError& error) {
      return error.code();
    }
    return "not refused";
  };
  const ActionCall set{"set", {{1}}};
  EXPECT_EQ(code([&] { c.table_add("none", {}, set); }), not_found);
  EXPECT_EQ(code([&] { c.table_add("exact", {Exact{{1, 0}}}, set); }), "");
  c.table_add("exact", {Exact{{1}}}, set);
  EXPECT_EQ(code([&] { c.table_add("exact", {Exact{{1}}}, set); }), already_exists);
  c.table_add("exact", {Exact{{2}}}, set);
  EXPECT_EQ(code([&] { c.table_add("exact", {Exact{{3}}}, set); }), resource_exhausted);
  EXPECT_EQ(code([&] { c.table_default("fixed", set); }), failed_precondition);
  EXPECT_EQ(code([&] { (void)c.register_read("r", 4); }), out_of_range);
}

TEST(Control, TellsOfEntriesThatNobodyHits) {
  SmallProgram program = everything();
  program.root["pipelines"][0]["tables"][0]["support_timeout"] = true;
  Switch machine(program);
  Control& c = machine.control();
  const auto expired = [&](std::uint64_t now_us) {
    c.set_time(now_us);
    std::vector<Handle> handles;
    for (const Expired& one : c.expired()) handles.push_back(one.entry.handle);
    return handles;
  };
  const ActionCall set{"set", {{7}}};
  const Handle one = c.table_add("exact", {Exact{{1}}}, set, {}, 100);
  const Handle two = c.table_add("exact", {Exact{{2}}}, set, {}, 0);
  EXPECT_THAT(refusal([&] { c.table_add("lpm", {Any{}}, set, {}, 5); }),
              HasSubstr("support_timeout"));
  EXPECT_EQ(c.table_size("lpm"), 0U);
  EXPECT_TRUE(expired(99).empty());
  machine.send({0, 1, 0, 0, 0, 0, 0, 0}, 3, 60);
  EXPECT_TRUE(expired(159).empty());
  EXPECT_EQ(expired(160), (std::vector<Handle>{one}));
  EXPECT_TRUE(expired(1000).empty());  // once
  machine.send({0, 1, 0, 0, 0, 0, 0, 0}, 3, 1010);
  EXPECT_TRUE(expired(1109).empty());
  EXPECT_EQ(expired(1110), (std::vector<Handle>{one}));
  c.table_modify("exact", two, set, 10);
  EXPECT_EQ(expired(1120), (std::vector<Handle>{two}));
  c.table_modify("exact", two, set, 50);  // begins anew, and so does what is told
  EXPECT_TRUE(expired(1169).empty());
  EXPECT_EQ(expired(1170), (std::vector<Handle>{two}));
  // Changes by packets during a transaction are kept.
  machine.send({0, 1, 0, 0, 0, 0, 0, 0}, 3, 1200);
  c.begin();
  c.table_add("lpm", {Any{}}, set);
  c.table_modify("exact", two, set, 0);
  machine.send({0, 1, 0, 0, 0, 0, 0, 0}, 3, 1250);
  c.commit();
  EXPECT_TRUE(expired(1349).empty());
  EXPECT_EQ(expired(1350), (std::vector<Handle>{one}));
  c.table_delete("exact", one);
  EXPECT_TRUE(expired(9999).empty());
}

TEST(Control, ReplicationIsChecked) {
  Switch machine(everything());
  Control& c = machine.control();
  EXPECT_THAT(refusal([&] { c.mirror_add(1, {}); }), HasSubstr("it has no destination"));
  EXPECT_THAT(refusal([&] { c.mirror_add(1, {512, {}}); }), HasSubstr("there is no port 512"));
  EXPECT_THAT(refusal([&] { c.mirror_add(0x8000, {1, {}}); }), HasSubstr("not a session"));
  EXPECT_THAT(refusal([&] { c.multicast_create(0, {}); }), HasSubstr("not a group"));
  EXPECT_THAT(refusal([&] { c.multicast_create(1, {{0, {600}}}); }),
              HasSubstr("there is no port 600"));
  EXPECT_THAT(refusal([&] { c.multicast_delete(1); }), HasSubstr("there is no such group"));
}

TEST(Control, DescribesTheProgram) {
  Switch machine(everything());
  const Description all = machine.machine().describe();
  ASSERT_GE(all.tables.size(), 6U);
  EXPECT_EQ(all.tables[1].name, "lpm");
  EXPECT_EQ(all.tables[1].key[0].match, "lpm");
  EXPECT_EQ(all.tables[1].key[0].bits, 32U);
  EXPECT_TRUE(all.tables[0].has_counters);
  EXPECT_EQ(all.tables[5].profile, "p");
  EXPECT_TRUE(all.tables.back().is_hidden);
  EXPECT_EQ(all.registers[0].bits, 12U);
  EXPECT_EQ(all.counters[1].table, "exact");
}

/// A program with a register and a table that marks h.c of packets whose h.b is 1, and counts them.
SmallProgram counted() {
  SmallProgram program;
  Json& root = program.root;
  root["register_arrays"].push_back({{"name", "r"}, {"id", 0}, {"size", 2}, {"bitwidth", 32}});
  root["counter_arrays"].push_back(
      {{"name", "of_t"}, {"id", 0}, {"is_direct", true}, {"binding", "t"}});
  const int mark = program.action("mark", {assign(field("h", "c"), parameter(0))}, {16});
  program.table("ingress", "t", "exact", {key("exact", "h", "b")}, {mark});
  program.ingress(
      {primitive("register_write", {named("register_array", "r"), hex(0), field("h", "d")})});
  program.forward();
  return program;
}

TEST(Transaction, IsNotMetByPacketsBeforeItsEnd) {
  for (const bool stands : {true, false}) {
    Switch machine(counted());
    Control& c = machine.control();
    const auto marked = [&](std::uint8_t d) { return machine.one({0, 1, 0, 0, 0, 0, 0, d})[3]; };
    const Handle first = c.table_add("t", {Exact{{1}}}, ActionCall{"mark", {{7}}});
    EXPECT_EQ(marked(5), 7);
    c.begin();
    c.table_modify("t", first, ActionCall{"mark", {{8}}});
    c.register_write("r", 1, {0, 0, 0, 9});
    const Handle second = c.table_add("t", {Exact{{2}}}, ActionCall{"mark", {{9}}});
    EXPECT_EQ(c.register_read("r", 1), (Bytes{0, 0, 0, 9}));
    EXPECT_EQ(c.table_size("t"), 2U);
    // Packets see the former entries, and their effects in the meantime count.
    EXPECT_EQ(marked(6), 7);
    EXPECT_EQ(machine.one({0, 2, 0, 0, 0, 0, 0, 6})[3], 0);
    if (stands) {
      c.commit();
    } else {
      c.roll_back();
    }
    EXPECT_EQ(marked(6), stands ? 8 : 7);
    EXPECT_EQ(c.direct_counter_read("t", first).packets, 3U);
    EXPECT_EQ(c.register_read("r", 0), (Bytes{0, 0, 0, 6}));
    EXPECT_EQ(c.register_read("r", 1), (Bytes{0, 0, 0, std::uint8_t(stands ? 9 : 0)}));
    EXPECT_EQ(c.table_size("t"), stands ? 2U : 1U);
    EXPECT_EQ(machine.one({0, 2, 0, 0, 0, 0, 0, 6})[3], stands ? 9 : 0);
    EXPECT_EQ(refusal([&] { c.table_delete("t", second); }) == "not refused", stands);
  }
}

TEST(Transaction, WhatIsSetToZeroInItIsZeroAtItsEnd) {
  Switch machine(counted());
  Control& c = machine.control();
  const Handle handle = c.table_add("t", {Exact{{1}}}, ActionCall{"mark", {{7}}});
  (void)machine.one({0, 1, 0, 0, 0, 0, 0, 0});
  c.begin();
  c.counter_reset("of_t");
  c.table_modify("t", handle, ActionCall{"mark", {{8}}});
  EXPECT_EQ(c.direct_counter_read("t", handle).packets, 0U);
  (void)machine.one({0, 1, 0, 0, 0, 0, 0, 0});
  c.commit();
  EXPECT_EQ(c.direct_counter_read("t", handle).packets, 0U);
  (void)machine.one({0, 1, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(c.direct_counter_read("t", handle).packets, 1U);
}

}  // namespace
}  // namespace nagi::p4::test
