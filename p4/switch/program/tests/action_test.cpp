// SPDX-License-Identifier: Apache-2.0
//
// Tests of primitives.
#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

/// Return the packet after these primitives have run in ingress.
Bytes after(SmallProgram& program, const std::vector<Json>& steps, const Bytes& packet = eight) {
  program.ingress(steps);
  program.forward();
  Switch machine(program);
  return machine.one(packet);
}

TEST(Action, Assigns) {
  SmallProgram program;
  EXPECT_EQ(
      after(program,
            {assign(field("h", "c"), field("h", "d")), assign(field("h", "a"), hex("0x1ff")),
             assign(field("h", "d"), wrapped(operation("+", field("h", "d"), hex("0xffffffff"))))}),
      (Bytes{0xff, 2, 7, 8, 5, 6, 7, 7}));
}

TEST(Action, OldPrimitivesOfTwoValues) {
  SmallProgram program;
  EXPECT_EQ(after(program, {primitive("add", {field("h", "a"), field("h", "a"), hex(0xff)}),
                            primitive("subtract_from_field", {field("h", "b"), hex(3)}),
                            primitive("bit_xor", {field("h", "c"), field("h", "c"), hex(0xffff)}),
                            primitive("shift_left", {field("h", "d"), field("h", "d"), hex(8)})}),
            (Bytes{0, 0xff, 0xfc, 0xfb, 6, 7, 8, 0}));
}

TEST(Action, JumpsOver) {
  SmallProgram program;
  const std::vector<Json> steps = {
      primitive("_jump_if_zero", {field("h", "a"), hex(3)}),
      assign(field("h", "b"), hex(0x10)),
      primitive("_jump", {hex(4)}),
      assign(field("h", "b"), hex(0x20)),
      assign(field("h", "c"), hex(0x30)),
  };
  EXPECT_EQ(after(program, steps), (Bytes{1, 0x10, 0, 0x30, 5, 6, 7, 8}));
  SmallProgram other;
  EXPECT_EQ(after(other, steps, {0, 2, 3, 4, 5, 6, 7, 8}), (Bytes{0, 0x20, 0, 0x30, 5, 6, 7, 8}));
}

/// Return the primitives that newer compilers generate for `for`: they shift `b` to the left `a`
/// times.
std::vector<Json> loop() {
  return {primitive("_jump_if_zero", {field("h", "a"), hex(4)}),
          primitive("shift_left", {field("h", "b"), field("h", "b"), hex(1)}),
          primitive("subtract_from_field", {field("h", "a"), hex(1)}),
          primitive("_jump", {hex(0)})};
}

TEST(Action, JumpsBack) {
  SmallProgram program;
  EXPECT_EQ(after(program, loop(), {5, 2, 3, 4, 5, 6, 7, 8}), (Bytes{0, 64, 3, 4, 5, 6, 7, 8}));
}

TEST(Action, ALoopThatDoesNotEndDropsThePacket) {
  SmallProgram program;
  std::vector<Json> steps = loop();
  steps[2] = assign(field("h", "a"), hex(1));
  program.ingress(steps);
  program.forward();
  Switch machine(program);
  EXPECT_TRUE(machine.send({1, 2, 3, 4, 5, 6, 7, 8}).empty());
  EXPECT_EQ(machine.machine().counters().dropped_for(DropCause::assertion), 1U);
  EXPECT_EQ(machine.one({0, 2, 3, 4, 5, 6, 7, 8}), (Bytes{0, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Action, ExitEndsThePipeline) {
  SmallProgram program;
  program.forward();
  program.ingress({primitive("exit", {}), assign(field("h", "a"), hex(9))});
  program.ingress({assign(field("h", "b"), hex(9))});
  program.egress({assign(field("h", "c"), hex(9))});
  Switch machine(program);
  EXPECT_EQ(machine.one(eight), (Bytes{9, 2, 0, 9, 5, 6, 7, 8}));
}

TEST(Action, RegistersKeepTheirWidth) {
  SmallProgram program({{"index", 8}, {"value", 64}, {"wide", 128}});
  program.root["register_arrays"] =
      Json::array({{{"name", "r"}, {"id", 0}, {"size", 4}, {"bitwidth", 12}},
                   {{"name", "w"}, {"id", 1}, {"size", 2}, {"bitwidth", 100}}});
  program.ingress(
      {primitive("register_write",
                 {named("register_array", "r"), field("h", "index"), field("h", "value")}),
       primitive("register_read",
                 {field("h", "value"), named("register_array", "r"), field("h", "index")}),
       primitive("register_write", {named("register_array", "w"), hex(1), field("h", "wide")}),
       primitive("register_read", {field("h", "wide"), named("register_array", "w"), hex(1)})});
  program.forward();
  Switch machine(program);
  Bytes packet(25, 0xff);
  packet[0] = 3;
  Bytes expected(25, 0xff);
  expected[0] = 3;
  std::fill(expected.begin() + 1, expected.begin() + 7, 0);
  expected[7] = 0x0f;
  std::fill(expected.begin() + 9, expected.begin() + 12, 0);
  expected[12] = 0x0f;
  EXPECT_EQ(machine.one(packet), expected);
  EXPECT_EQ(machine.control().register_read("r", 3), (Bytes{0x0f, 0xff}));
  packet[0] = 4;  // there is none: nothing is written, nothing read
  EXPECT_EQ(machine.one(packet)[1], 0xff);
  EXPECT_EQ(machine.machine().counters().outside_array, 2U);
}

TEST(Action, CountersCountPacketsAsTheyCame) {
  SmallProgram program;
  program.root["counter_arrays"].push_back(
      {{"name", "k"}, {"id", 0}, {"size", 3}, {"is_direct", false}});
  program.ingress({primitive("remove_header", {named("header", "h")})});
  program.egress({primitive("count", {named("counter_array", "k"), hex(2)})});
  program.forward();
  Switch machine(program);
  machine.send(Bytes(100));
  machine.send(Bytes(50));
  EXPECT_EQ(machine.control().counter_read("k", 2).packets, 2U);
  EXPECT_EQ(machine.control().counter_read("k", 2).bytes, 150U);
}

TEST(Action, MetersColourByTwoRates) {
  SmallProgram program;
  program.root["meter_arrays"].push_back({{"name", "m"},
                                          {"id", 0},
                                          {"size", 1},
                                          {"rate_count", 2},
                                          {"type", "packets"},
                                          {"is_direct", false}});
  program.ingress(
      {primitive("execute_meter", {named("meter_array", "m"), hex(0), field("h", "a")})});
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one(eight)[0], 0);  // not set: green
  machine.control().meter_rates("m", 0, {{0.001, 2}, {0.002, 4}});
  std::vector<int> colours;
  for (int i = 0; i < 6; ++i) colours.push_back(machine.send(eight, 3, 10)[0].bytes[0]);
  EXPECT_EQ(colours, (std::vector<int>{0, 0, 1, 1, 2, 2}));
  // 1 ms later there is one token of the committed rate, and two of the peak rate.
  colours.clear();
  for (int i = 0; i < 3; ++i) colours.push_back(machine.send(eight, 3, 1000)[0].bytes[0]);
  EXPECT_EQ(colours, (std::vector<int>{0, 1, 2}));
}

TEST(Action, RandomNumbersFollowFromTheSeed) {
  SmallProgram program;
  program.ingress({primitive("modify_field_rng_uniform", {field("h", "d"), hex(10), hex(19)})});
  program.forward();
  const auto draws = [&](std::uint64_t seed) {
    Settings settings;
    settings.seed = seed;
    Switch machine(program, settings);
    std::vector<int> values;
    for (int i = 0; i < 1000; ++i) values.push_back(machine.one(eight)[7]);
    return values;
  };
  const auto values = draws(1);
  EXPECT_EQ(values, draws(1));
  EXPECT_NE(values, draws(2));
  for (int value = 10; value < 20; ++value) {
    // Each of ten 100 times of 1,000, give or take five standard deviations of 9.5.
    EXPECT_NEAR(static_cast<double>(std::count(values.begin(), values.end(), value)), 100, 47);
  }
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), 10);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 19);
}

TEST(Action, HashesIntoARange) {
  SmallProgram program;
  program.root["calculations"].push_back(
      {{"name", "c"},
       {"id", 0},
       {"algo", "identity"},
       {"input", Json::array({field("h", "a"),
                              Json{{"type", "hexstr"}, {"value", "0x5"}, {"bitwidth", 8}}})}});
  EXPECT_EQ(
      after(program, {primitive("modify_field_with_hash_based_offset",
                                {field("h", "d"), hex(100), named("calculation", "c"), hex(200)})}),
      (Bytes{1, 2, 3, 4, 0, 0, 0, 100 + 0x0105 % 200}));
}

TEST(Action, DigestsAreCollected) {
  SmallProgram program;
  program.root["learn_lists"].push_back(
      {{"id", 3},
       {"name", "d"},
       {"elements", Json::array({field("h", "d"), field("standard_metadata", "ingress_port")})}});
  program.ingress({primitive("generate_digest", {hex(0), hex(3)})});
  program.forward();
  Settings settings;
  settings.digests = 2;
  Switch machine(program, settings);
  for (std::uint64_t i = 0; i < 3; ++i) machine.send(eight, 5, i);
  const auto digests = machine.machine().take_digests();
  ASSERT_EQ(digests.size(), 2U);
  EXPECT_EQ(digests[1].name, "d");
  EXPECT_EQ(digests[1].at_us, 1U);
  EXPECT_EQ(digests[1].values, (std::vector<Bytes>{{5, 6, 7, 8}, {0, 5}}));
  EXPECT_EQ(machine.machine().counters().digests_lost, 1U);
  EXPECT_TRUE(machine.machine().take_digests().empty());
}

TEST(Action, LogsAndAsserts) {
  SmallProgram program;
  program.ingress(
      {primitive("log_msg", {{{"type", "string"}, {"value", "a={} \\{d\\}={}."}},
                             {{"type", "parameters_vector"},
                              {"value", Json::array({field("h", "a"), field("h", "d")})}}}),
       primitive("log_msg", {{{"type", "string"}, {"value", "no values"}},
                             {{"type", "parameters_vector"}, {"value", Json::object()}}}),
       primitive("assert", {wrapped(operation("==", field("h", "b"), hex(2)))})});
  program.forward();
  std::vector<std::string> lines;
  Settings settings;
  settings.log = [&](const std::string& line) { lines.push_back(line); };
  Switch machine(program, settings);
  EXPECT_EQ(machine.send(eight).size(), 1U);
  EXPECT_EQ(lines, (std::vector<std::string>{"a=1 {d}=84281096.", "no values"}));
  lines.clear();
  EXPECT_TRUE(machine.send({1, 3, 3, 4, 5, 6, 7, 8}).empty());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[2], testing::HasSubstr("small.p4:42"));
  EXPECT_EQ(machine.machine().counters().dropped_for(DropCause::assertion), 1U);
}

TEST(Action, HeadersAndStacksAreCopied) {
  SmallProgram program;
  program.header("twin", "h_t", false);
  program.deparse("twin");
  program.stack("s", "h_t", 2);
  program.stack("t", "h_t", 2);
  program.state("start", {SmallProgram::extract("h"), SmallProgram::extract_next("s")});
  program.ingress(
      {primitive("assign_header", {named("header", "twin"), named("header", "h")}),
       assign(field("twin", "a"), hex(0x99)),
       primitive("assign_header_stack", {named("header_stack", "t"), named("header_stack", "s")}),
       primitive("remove_header", {named("header", "s[0]")}),
       assign(field("h", "b"), wrapped(operation("b2d", nullptr,
                                                 operation("==", named("header", "t[0]"),
                                                           named("header", "s[0]")))))});
  program.forward();
  Switch machine(program);
  Bytes packet = eight;
  packet.insert(packet.end(), {9, 9, 9, 9, 9, 9, 9, 9, 0x55});
  EXPECT_EQ(machine.one(packet), (Bytes{1, 0, 3, 4, 5, 6, 7, 8, 0x99, 2, 3, 4,   5,
                                        6, 7, 8, 9, 9, 9, 9, 9, 9,    9, 9, 0x55}));
}

}  // namespace
}  // namespace nagi::p4::test
