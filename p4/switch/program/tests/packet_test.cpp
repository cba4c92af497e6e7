// SPDX-License-Identifier: Apache-2.0
//
// Tests of the parser, the deparser, and the processing between the pipelines.
#include <numeric>

#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

Json standard(const std::string& name) { return field("standard_metadata", name); }

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(Packet, PassesUnchanged) {
  SmallProgram program;
  program.forward();
  Switch machine(program);
  Bytes long_one(1500);
  std::iota(long_one.begin(), long_one.end(), std::uint8_t{0});
  EXPECT_EQ(machine.send(long_one), (std::vector<Sent>{{1, long_one}}));
  EXPECT_EQ(machine.last_size(), 1500U);
  EXPECT_EQ(machine.machine().counters().sent, 1U);
}

TEST(Packet, TooShortIsAParserErrorAndGoesOn) {
  SmallProgram program;
  program.ingress({assign(standard("egress_spec"), standard("parser_error"))});
  Switch machine(program);
  EXPECT_EQ(machine.send({9, 9, 9}), (std::vector<Sent>{{1, {9, 9, 9}}}));
  EXPECT_EQ(machine.machine().counters().parser_errors, 1U);
  EXPECT_EQ(machine.send(eight), (std::vector<Sent>{{0, eight}}));
}

TEST(Packet, StackTakesSoManyAndNoMore) {
  SmallProgram program;
  program.type("label_t", {{"more", 8}});
  program.stack("s", "label_t", 2);
  program.state("start", {SmallProgram::extract("h")}, {}, {SmallProgram::otherwise("next")});
  program.state("next", {SmallProgram::extract_next("s")},
                {{{"type", "stack_field"}, {"value", Json::array({"s", "more"})}}},
                {SmallProgram::on("0x01", "next"), SmallProgram::otherwise(nullptr)});
  program.ingress({assign(standard("egress_spec"), standard("parser_error")),
                   primitive("pop", {named("header_stack", "s"), hex(1)})});
  Switch machine(program);
  EXPECT_EQ(machine.send(joined(eight, {1, 0, 7})),
            (std::vector<Sent>{{0, joined(eight, {0, 7})}}));
  EXPECT_EQ(machine.send(joined(eight, {0, 7})), (std::vector<Sent>{{0, joined(eight, {7})}}));
  EXPECT_EQ(machine.send(joined(eight, {1, 1, 1, 7})),  // StackOutOfBounds
            (std::vector<Sent>{{3, joined(eight, {1, 1, 7})}}));
}

TEST(Packet, StackElementsAreReachedAtRunTime) {
  SmallProgram program;
  program.type("label_t", {{"value", 8}});
  program.stack("s", "label_t", 3);
  program.state("start", {SmallProgram::extract("h"), SmallProgram::extract_next("s"),
                          SmallProgram::extract_next("s"), SmallProgram::extract_next("s")});
  const Json element =
      operation("dereference_header_stack", named("header_stack", "s"), field("h", "a"));
  const Json access = {{"type", "expression"},
                       {"value", {{"op", "access_field"}, {"left", element}, {"right", 0}}}};
  program.ingress({assign(field("h", "b"), wrapped(access)), assign(wrapped(access), hex(0x55))});
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one({1, 0, 0, 0, 0, 0, 0, 0, 10, 11, 12}),
            (Bytes{1, 11, 0, 0, 0, 0, 0, 0, 10, 0x55, 12}));
  EXPECT_EQ(machine.one({3, 9, 0, 0, 0, 0, 0, 0, 10, 11, 12}),
            (Bytes{3, 0, 0, 0, 0, 0, 0, 0, 10, 11, 12}));
  EXPECT_EQ(machine.machine().counters().outside_array, 2U);
}

TEST(Packet, PushMakesRoomThatIsFilled) {
  SmallProgram program;
  program.type("label_t", {{"value", 16}});
  program.stack("s", "label_t", 3);
  program.state("start", {SmallProgram::extract("h"), SmallProgram::extract_next("s")});
  program.ingress({primitive("push", {named("header_stack", "s"), hex(2)}),
                   primitive("add_header", {named("header", "s[0]")}),
                   assign(field("s[0]", "value"), hex(0x1111)),
                   primitive("add_header", {named("header", "s[1]")})});
  program.forward();
  program.egress({assign(field("h", "c"), standard("packet_length"))});
  Switch machine(program);
  EXPECT_EQ(machine.one(joined(eight, {0xab, 0xcd, 0xee})),
            (Bytes{1, 2, 0, 15, 5, 6, 7, 8, 0x11, 0x11, 0, 0, 0xab, 0xcd, 0xee}));
  EXPECT_EQ(machine.last_size(), 15U);
}

TEST(Packet, LoopThatTakesNothingEnds) {
  SmallProgram program;
  program.state("start", {}, {}, {SmallProgram::otherwise("start")});
  program.ingress({assign(standard("egress_spec"), standard("parser_error"))});
  Switch machine(program);
  EXPECT_EQ(machine.send(eight), (std::vector<Sent>{{5, eight}}));  // ParserTimeout
}

/// Return a program in which header `v` follows `h`. Its field of variable length has h.a bytes, at
/// most 4.
SmallProgram with_variable() {
  SmallProgram program;
  program.root["header_types"].push_back(
      {{"name", "v_t"},
       {"id", 9},
       {"fields",
        Json::array({Json::array({"n", 8}), Json::array({"v", "*"}), Json::array({"e", 8})})},
       {"max_length", 6}});
  program.header("v", "v_t", false);
  program.deparse("v");
  const Json bits = operation("<<", field("h", "a"), hex(3));
  program.state("start", {SmallProgram::extract("h"),
                          {{"op", "extract_VL"},
                           {"parameters", Json::array({named("regular", "v"), wrapped(bits)})}}});
  return program;
}

TEST(Packet, VariableLength) {
  SmallProgram program = with_variable();
  program.ingress({assign(standard("egress_spec"), standard("parser_error")),
                   assign(field("h", "b"), field("v", "e"))});
  Switch machine(program);
  EXPECT_EQ(machine.send({3, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 8, 7}),
            (std::vector<Sent>{{0, {3, 8, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 8, 7}}}));
  EXPECT_EQ(machine.send({0, 0, 0, 0, 0, 0, 0, 0, 9, 8, 7}),
            (std::vector<Sent>{{0, {0, 8, 0, 0, 0, 0, 0, 0, 9, 8, 7}}}));
  EXPECT_EQ(machine.send({5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8})[0].port,
            4U);  // too long
  EXPECT_EQ(machine.send({4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3})[0].port, 1U);
}

TEST(Packet, VariableLengthIsANumberToExpressions) {
  SmallProgram program = with_variable();
  program.ingress({primitive("_jump_if_zero",
                             {wrapped(operation("==", field("v", "v"), hex(0x10203))), hex(2)}),
                   assign(field("h", "b"), hex(1))});
  program.forward();
  Switch machine(program);
  const auto b = [&](const Bytes& bytes) { return machine.one(bytes)[1]; };
  EXPECT_EQ(b({3, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 8}), 1);
  EXPECT_EQ(b({4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 2, 3, 8}), 1);
  EXPECT_EQ(b({3, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 4, 8}), 0);
  EXPECT_EQ(b({0, 0, 0, 0, 0, 0, 0, 0, 9, 8}), 0);
}

TEST(Packet, LooksAheadAndAdvances) {
  SmallProgram program;
  const Json ahead = {{"type", "lookahead"}, {"value", Json::array({4, 12})}};
  program.state("start",
                {{{"op", "set"}, {"parameters", Json::array({field("scalars", "x"), ahead})}},
                 {{"op", "advance"}, {"parameters", Json::array({hex(16)})}},
                 SmallProgram::extract("h")},
                {{{"type", "lookahead"}, {"value", Json::array({0, 8})}}},
                {SmallProgram::on("0x77", "seen"), SmallProgram::otherwise(nullptr)});
  program.state("seen",
                {{{"op", "set"}, {"parameters", Json::array({standard("egress_spec"), hex(5)})}}});
  program.ingress({assign(field("h", "c"), field("scalars", "x"))});
  Switch machine(program);
  EXPECT_EQ(machine.send(joined({0xab, 0xcd}, joined(eight, {0x77}))),
            (std::vector<Sent>{{5, {1, 2, 0x0b, 0xcd, 5, 6, 7, 8, 0x77}}}));
  EXPECT_EQ(machine.send(joined({0xab, 0xcd}, eight))[0].port, 0U);
  EXPECT_EQ(machine.machine().counters().parser_errors, 1U);  // nothing to look ahead at
}

TEST(Packet, VerifyEndsParsing) {
  SmallProgram program;
  program.state("start",
                {SmallProgram::extract("h"),
                 {{"op", "verify"},
                  {"parameters", Json::array({operation("==", field("h", "a"), hex(1)), hex(2)})}},
                 SmallProgram::extract("h")});
  program.ingress({assign(standard("egress_spec"), standard("parser_error"))});
  Switch machine(program);
  EXPECT_EQ(machine.send(joined(eight, eight))[0].port, 0U);
  EXPECT_EQ(machine.send(joined({2, 2, 3, 4, 5, 6, 7, 8}, eight))[0].port, 2U);
}

TEST(Packet, ValueSetsAreFilledAtRunTime) {
  SmallProgram program;
  program.root["parse_vsets"] =
      Json::array({{{"name", "v"}, {"id", 0}, {"compressed_bitwidth", 24}, {"max_size", 2}}});
  program.state("start", {SmallProgram::extract("h")}, {field("h", "a"), field("h", "c")},
                {{{"type", "parse_vset"}, {"value", "v"}, {"mask", nullptr}, {"next_state", "in"}},
                 SmallProgram::otherwise(nullptr)});
  program.state("in",
                {{{"op", "set"}, {"parameters", Json::array({standard("egress_spec"), hex(7)})}}});
  program.ingress({});
  Switch machine(program);
  EXPECT_EQ(machine.send(eight)[0].port, 0U);
  machine.control().value_set_add("v", {1, 3, 4});
  EXPECT_EQ(machine.send(eight)[0].port, 7U);
  EXPECT_THROW(machine.control().value_set_add("v", {1, 3, 4}), InputError);
  EXPECT_THROW(machine.control().value_set_add("v", {1, 1, 3, 4}), InputError);
  machine.control().value_set_clear("v");
  EXPECT_EQ(machine.send(eight)[0].port, 0U);
}

TEST(Packet, ChecksumsAreVerifiedAndUpdated) {
  SmallProgram program;
  program.root["calculations"].push_back(
      {{"name", "c"},
       {"id", 0},
       {"algo", "csum16"},
       {"input", Json::array({field("h", "a"), field("h", "b"), field("h", "d"),
                              Json{{"type", "payload"}, {"value", nullptr}}})}});
  program.root["checksums"].push_back({{"name", "k"},
                                       {"id", 0},
                                       {"target", Json::array({"h", "c"})},
                                       {"type", "generic"},
                                       {"calculation", "c"},
                                       {"verify", true},
                                       {"update", true},
                                       {"if_cond", operation("!=", field("h", "b"), hex(9))}});
  program.ingress({assign(standard("egress_spec"), standard("checksum_error")),
                   assign(field("h", "a"), hex(2))});
  Switch machine(program);
  // 0x0101 + 0 + 0 + 0x0500 = 0x0601, complemented 0xf9fe; with a = 2: 0xf8fe
  EXPECT_EQ(machine.send({1, 1, 0xf9, 0xfe, 0, 0, 0, 0, 5}),
            (std::vector<Sent>{{0, {2, 1, 0xf8, 0xfe, 0, 0, 0, 0, 5}}}));
  EXPECT_EQ(machine.send({1, 1, 0xf9, 0xff, 0, 0, 0, 0, 5})[0].port, 1U);
  EXPECT_EQ(machine.send({1, 9, 0, 0, 0, 0, 0, 0, 5}),
            (std::vector<Sent>{{0, {2, 9, 0, 0, 0, 0, 0, 0, 5}}}));
}

TEST(Packet, ClonesKeepWhatTheyAreToldTo) {
  SmallProgram program({{"a", 8}, {"b", 8}, {"c", 16}, {"d", 32}}, {{"kept", 8}, {"lost", 8}});
  program.root["field_lists"].push_back(
      {{"id", 1}, {"name", "l"}, {"elements", Json::array({field("scalars", "kept")})}});
  program.ingress({assign(field("scalars", "kept"), hex(0x11)),
                   assign(field("scalars", "lost"), hex(0x22)), assign(field("h", "d"), hex(0)),
                   primitive("clone_ingress_pkt_to_egress", {hex(5), hex(1)})});
  program.forward();
  program.egress({assign(field("h", "a"), field("scalars", "kept")),
                  assign(field("h", "b"), field("scalars", "lost")),
                  assign(field("h", "c"), standard("instance_type"))});
  Switch machine(program);
  EXPECT_EQ(machine.send(eight).size(), 1U);
  EXPECT_EQ(machine.machine().counters().clones_without_session, 1U);
  machine.control().mirror_add(5, {9, 2});
  machine.control().multicast_create(2, {{7, {4, 5}}});
  // Copies are made of the packet as it arrived.
  const Bytes clone = {0x11, 0, 0, 1, 5, 6, 7, 8};
  EXPECT_EQ(
      machine.send(eight),
      (std::vector<Sent>{{4, clone}, {5, clone}, {9, clone}, {1, {0x11, 0x22, 0, 0, 0, 0, 0, 0}}}));
}

TEST(Packet, EgressClonesGoThroughEgressAgain) {
  SmallProgram program;
  const int twin =
      program.action("twin", {assign(field("h", "a"), hex(0x77)),
                              primitive("clone_egress_pkt_to_egress", {hex(1), hex(0)})});
  const int mark = program.action("mark", {assign(field("h", "b"), hex(0x99))});
  program.table("egress", "t", "exact", {key("exact", "standard_metadata", "instance_type")},
                {twin, mark}, mark);
  program.forward();
  Switch machine(program);
  machine.control().table_add("t", {Exact{{0}}}, ActionCall{"twin", {}});
  machine.control().mirror_add(1, {6, {}});
  EXPECT_EQ(machine.send(eight), (std::vector<Sent>{{1, {0x77, 2, 3, 4, 5, 6, 7, 8}},
                                                    {6, {0x77, 0x99, 3, 4, 5, 6, 7, 8}}}));
}

TEST(Packet, MulticastNumbersItsCopies) {
  SmallProgram program;
  program.ingress({assign(standard("mcast_grp"), field("h", "a"))});
  program.forward();
  program.egress({assign(field("h", "a"), standard("egress_port")),
                  assign(field("h", "b"), standard("instance_type")),
                  assign(field("h", "c"), standard("egress_rid"))});
  Switch machine(program);
  machine.control().multicast_create(1, {{3, {2, 8}}, {4, {2}}});
  EXPECT_EQ(machine.send(eight), (std::vector<Sent>{{2, {2, 5, 0, 3, 5, 6, 7, 8}},
                                                    {8, {8, 5, 0, 3, 5, 6, 7, 8}},
                                                    {2, {2, 5, 0, 4, 5, 6, 7, 8}}}));
  EXPECT_TRUE(machine.send({2, 2, 3, 4, 5, 6, 7, 8}).empty());  // there is no such group
  EXPECT_EQ(machine.machine().counters().replicated, 1U);
  EXPECT_EQ(machine.machine().counters().dropped_for(DropCause::no_group), 1U);
}

TEST(Packet, ResubmitAndRecirculateEnd) {
  for (const std::string how : {"resubmit", "recirculate"}) {
    SmallProgram program;
    program.root["field_lists"].push_back(
        {{"id", 1}, {"name", "l"}, {"elements", Json::array({field("scalars", "x")})}});
    const std::vector<Json> steps = {
        assign(field("scalars", "x"), wrapped(operation("+", field("scalars", "x"), hex(1)))),
        primitive(how,
                  {wrapped(operation("b2d", nullptr,
                                     operation("<", field("scalars", "x"), field("h", "a"))))})};
    if (how == "resubmit") program.ingress(steps);
    program.forward();
    if (how == "recirculate") program.egress(steps);
    program.egress({assign(field("h", "b"), field("scalars", "x")),
                    assign(field("h", "c"), standard("packet_length"))});
    Settings settings;
    settings.rounds = 10;
    Switch machine(program, settings);
    const Bytes sent = machine.one({4, 0, 0, 0, 0, 0, 0, 0});
    ASSERT_EQ(sent.size(), 8U) << how;
    EXPECT_EQ(sent[1], 4) << how;
    EXPECT_EQ(sent[3], 8) << how;
    EXPECT_TRUE(machine.send({200, 0, 0, 0, 0, 0, 0, 0}).empty());
    EXPECT_EQ(machine.machine().counters().dropped_for(DropCause::rounds), 1U) << how;
  }
}

TEST(Packet, GrowsAndShrinks) {
  for (const std::size_t payload : {std::size_t{0}, std::size_t{100}, std::size_t{4088}}) {
    SmallProgram program;
    program.header("more", "h_t", false);
    program.root["deparsers"][0]["order"] = Json::array({"more", "h"});
    const int grow = program.action("grow", {primitive("add_header", {named("header", "more")}),
                                             assign(field("more", "d"), hex(0x01020304))});
    const int shrink =
        program.action("shrink", {primitive("remove_header", {named("header", "h")})});
    program.table("ingress", "t", "exact", {key("exact", "h", "a")}, {grow, shrink}, shrink);
    program.forward();
    Switch machine(program);
    machine.control().table_add("t", {Exact{{1}}}, ActionCall{"grow", {}});
    Bytes tail(payload);
    std::iota(tail.begin(), tail.end(), std::uint8_t{7});
    Bytes other = eight;
    other[0] = 2;
    if (payload > 0) {
      EXPECT_EQ(machine.one(joined(other, tail)), tail);
    }
    const auto sent = machine.send(joined(eight, tail));
    if (payload == 4088) {  // no slot is as long
      EXPECT_TRUE(sent.empty());
      EXPECT_EQ(machine.machine().counters().dropped_for(DropCause::too_long), 1U);
    } else {
      EXPECT_EQ(sent,
                (std::vector<Sent>{{1, joined(joined({0, 0, 0, 0, 1, 2, 3, 4}, eight), tail)}}));
    }
  }
}

TEST(Packet, TruncatesAndDrops) {
  SmallProgram program;
  program.ingress({primitive("truncate", {field("h", "a")})});
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one({10, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}),
            (Bytes{10, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(machine.last_size(), 10U);
  program = SmallProgram();
  program.forward();
  program.egress({primitive("mark_to_drop", {named("header", "standard_metadata")})});
  Switch dropper(program);
  EXPECT_TRUE(dropper.send(eight).empty());
  EXPECT_EQ(dropper.machine().counters().dropped_for(DropCause::egress), 1U);
}

TEST(Packet, CopiesAndWhatGoesRoundAreNotTruncated) {
  SmallProgram program;
  program.ingress({primitive("truncate", {hex(3)}),
                   primitive("clone_ingress_pkt_to_egress", {hex(1), hex(0)})});
  program.forward();
  Switch cloner(program);
  cloner.control().mirror_add(1, {6, {}});
  EXPECT_EQ(cloner.send(eight), (std::vector<Sent>{{6, eight}, {1, {1, 2, 3}}}));
  program = SmallProgram();
  program.root["field_lists"].push_back(
      {{"id", 1}, {"name", "l"}, {"elements", Json::array({field("scalars", "x")})}});
  program.forward();
  program.egress(
      {primitive("truncate", {hex(3)}), assign(field("h", "b"), standard("packet_length")),
       assign(field("scalars", "x"), wrapped(operation("+", field("scalars", "x"), hex(1)))),
       primitive("recirculate",
                 {wrapped(operation("b2d", nullptr,
                                    operation("<", field("scalars", "x"), field("h", "a"))))})});
  Switch rounds(program);
  EXPECT_EQ(rounds.one({2, 0, 0, 0, 0, 0, 0, 0}), (Bytes{2, 8, 0}));
}

TEST(Packet, SeesItsQueue) {
  SmallProgram program(
      {{"enqueued", 32}, {"depth", 32}, {"waited", 32}, {"left", 32}, {"now", 64}});
  program.forward();
  program.egress({assign(field("h", "enqueued"), standard("enq_timestamp")),
                  assign(field("h", "depth"), standard("enq_qdepth")),
                  assign(field("h", "waited"), standard("deq_timedelta")),
                  assign(field("h", "left"), standard("deq_qdepth")),
                  assign(field("h", "now"), standard("egress_global_timestamp"))});
  Switch machine(program);
  const auto sent = machine.send(Bytes(24), 1, 0x1234, {1, 2, 3, 4, 0});
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].bytes,
            (Bytes{0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0x12, 0x34}));
}

}  // namespace
}  // namespace nagi::p4::test
