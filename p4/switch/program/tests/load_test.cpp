// SPDX-License-Identifier: Apache-2.0
//
// Broken programs are refused with the position in the JSON, unsupported ones with the construct's
// name and line; the loader fails in no other way.
#include <random>

#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    (void)load_program(text, "broken.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

/// Return a program that uses a little of everything.
SmallProgram rich() {
  SmallProgram program;
  Json& root = program.root;
  program.stack("s", "h_t", 3);
  program.state("start", {SmallProgram::extract("h")}, {field("h", "a")},
                {SmallProgram::on("0x01", "more"), SmallProgram::otherwise(nullptr)});
  program.state("more", {SmallProgram::extract_next("s")},
                {{{"type", "stack_field"}, {"value", Json::array({"s", "a"})}}},
                {SmallProgram::on("0x01", "more", "0x0f"), SmallProgram::otherwise(nullptr)});
  root["register_arrays"].push_back({{"name", "r"}, {"id", 0}, {"size", 4}, {"bitwidth", 12}});
  root["counter_arrays"].push_back({{"name", "k"}, {"id", 0}, {"size", 4}, {"is_direct", false}});
  root["calculations"].push_back(
      {{"name", "c"}, {"id", 0}, {"algo", "csum16"}, {"input", Json::array({field("h", "d")})}});
  root["checksums"].push_back({{"name", "k"},
                               {"id", 0},
                               {"target", Json::array({"h", "c"})},
                               {"type", "generic"},
                               {"calculation", "c"},
                               {"verify", false},
                               {"update", true},
                               {"if_cond", nullptr}});
  root["field_lists"].push_back(
      {{"id", 1}, {"name", "l"}, {"elements", Json::array({field("scalars", "x")})}});
  root["learn_lists"].push_back(
      {{"id", 1}, {"name", "d"}, {"elements", Json::array({field("h", "a")})}});
  const int set = program.action("set", {assign(field("h", "a"), parameter(0))}, {8});
  program.table("ingress", "t", "lpm", {key("lpm", "h", "d")}, {set}, set, Json::array({"0x1"}));
  program.ingress(
      {primitive("register_write", {named("register_array", "r"), hex(1), field("h", "c")}),
       primitive("count", {named("counter_array", "k"), field("h", "a")}),
       primitive("push", {named("header_stack", "s"), hex(1)}),
       primitive("generate_digest", {hex(0), hex(1)})});
  program.forward();
  return program;
}

TEST(Load, TakesAProgram) {
  EXPECT_EQ(rich().refusal(), "not refused");
  Switch machine(rich());
  EXPECT_EQ(machine.send({1, 2, 3, 4, 5, 6, 7, 8}).size(), 1U);
}

/// Replace or remove every value in the JSON, one after another.
void visit(const Json& value, const Json::json_pointer& at,
           std::vector<Json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object()) {
    for (const auto& [name, inner] : value.items()) visit(inner, at / name, places);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) visit(value[i], at / i, places);
  }
}

TEST(Load, NothingBrokenGetsFurtherThanAComplaint) {
  const Json good = rich().root;
  std::vector<Json::json_pointer> places;
  visit(good, Json::json_pointer(), places);
  const std::vector<Json> replacements = {nullptr,
                                          true,
                                          -1,
                                          0,
                                          7,
                                          1e300,
                                          "nonsense",
                                          "0x",
                                          "",
                                          4294967296,
                                          18446744073709551615U,
                                          Json::array(),
                                          Json::object(),
                                          Json::array({1, 2}),
                                          Json{{"op", "+"}}};
  int refused = 0;
  int taken = 0;
  std::size_t number = 0;
  for (const auto& place : places) {
    for (std::size_t i = 0; i <= replacements.size(); ++i) {
      if (number++ % 4 != 0) continue;  // of each place a quarter, and of each replacement
      Json bad = good;
      if (i < replacements.size()) {
        bad[place] = replacements[i];
      } else if (bad[place.parent_pointer()].is_object()) {
        bad[place.parent_pointer()].erase(place.back());
      } else {
        bad[place.parent_pointer()].erase(std::stoul(place.back()));
      }
      SmallProgram program;
      program.root = bad;
      try {
        Switch machine(program);  // if it is taken, packets pass it
        machine.send({1, 1, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1});
        machine.send({1});
        ++taken;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("small.json: "), HasSubstr("; ")));
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, taken);
}

TEST(Load, SaysWhere) {
  EXPECT_THAT(refusal_of("{"), HasSubstr("broken.json:1: not JSON"));
  EXPECT_THAT(refusal_of(std::string(100'000, '[')),
              HasSubstr("broken.json:1: column 1025: lists and objects nested more than 1024"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("broken.json: the whole program: not an object"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("has no \"header_types\""));
  SmallProgram program;
  program.root["headers"][2]["header_type"] = "nothing";
  EXPECT_THAT(program.refusal(),
              HasSubstr("small.json: headers.2.header_type: no header type is called nothing"));
  program = SmallProgram();
  program.root["__meta__"]["version"] = Json::array({3, 0});
  EXPECT_THAT(program.refusal(), HasSubstr("not version 2"));
}

TEST(Load, RefusesWhatItDoesNotSupportByNameAndLine) {
  SmallProgram program;
  program.ingress({primitive("fly_to_the_moon", {})});
  EXPECT_THAT(program.refusal(), AllOf(HasSubstr("primitive \"fly_to_the_moon\""),
                                       HasSubstr("not supported"), HasSubstr("small.p4:42")));
  program = SmallProgram();
  program.root["extern_instances"] =
      Json::array({{{"name", "e"},
                    {"id", 0},
                    {"type", "my_extern"},
                    {"source_info", {{"line", 5}, {"filename", "x.p4"}}}}});
  EXPECT_THAT(program.refusal(), AllOf(HasSubstr("extern my_extern"), HasSubstr("x.p4:5")));
  program = SmallProgram();
  program.root["calculations"].push_back(
      {{"name", "c"}, {"id", 0}, {"algo", "random"}, {"input", Json::array()}});
  EXPECT_THAT(program.refusal(), HasSubstr("hash algorithm \"random\""));
  program = SmallProgram();
  program.egress({primitive("generate_digest", {hex(0), hex(1)})});
  EXPECT_THAT(program.load().describe().notices,
              ElementsAre(AllOf(HasSubstr("digest() in egress"), HasSubstr("small.p4:17"))));
  program = SmallProgram();
  program.ingress({primitive("_jump", {hex(9)})});
  EXPECT_THAT(program.refusal(), HasSubstr("jumps out of its action"));
}

TEST(Load, TakesZeroForFalse) {
  SmallProgram program;
  program.root["header_types"][2]["fields"][0][2] = 0;
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one(Bytes(8)), Bytes(8));
}

TEST(Load, NegativeDataIsNegativeWhereTheProgramGivesIt) {
  SmallProgram program({{"a", 8}, {"b", 8}, {"c", 16}, {"d", 64}, {"e", 128}});
  const int act =
      program.action("act",
                     {assign(field("h", "b"), wrapped(operation(">>", parameter(0), hex(1)))),
                      assign(field("h", "d"), wrapped(operation(">>", parameter(1), hex(4)))),
                      assign(field("h", "e"), parameter(2))},
                     {8, 64, 128});
  program.table("ingress", "t", "exact", {key("exact", "h", "a")}, {act}, act,
                Json::array({"-0x05", "-0x10", "-0x01"}));
  program.forward();
  Switch machine(program);
  Bytes packet(28, 0);
  Bytes expected(28, 0xff);
  expected[0] = 0;
  expected[1] = 0xfd;
  expected[2] = expected[3] = 0;
  EXPECT_EQ(machine.one(packet), expected);
  packet[0] = 1;
  const ActionCall call{"act", {{0xfb}, number(16, 8), number(2, 16)}};
  machine.control().table_add("t", {Exact{{1}}}, call);
  expected = Bytes(28, 0);
  expected[0] = 1;
  expected[1] = 0x7d;  // an unsigned number, as in bmv2
  expected[11] = 1;
  expected[27] = 2;
  EXPECT_EQ(machine.one(packet), expected);
  EXPECT_EQ(std::get<ActionCall>(machine.control().table_entries("t").entries[0].target).data,
            call.data);
}

TEST(Load, RefusesCirclesAndHugeThings) {
  SmallProgram program;
  program.forward();
  program.forward(2);
  Json& tables = program.root["pipelines"][0]["tables"];
  const std::string action = tables[1]["actions"][0];
  tables[1]["next_tables"][action] = tables[0]["name"];
  EXPECT_THAT(program.refusal(), HasSubstr("in a circle"));
  program = SmallProgram();
  program.root["register_arrays"].push_back(
      {{"name", "r"}, {"id", 0}, {"size", 4000000000U}, {"bitwidth", 64}});
  EXPECT_THAT(program.refusal(), HasSubstr("more than 1 GiB"));
  program = SmallProgram({{"a", 8}, {"b", 1 << 20}});
  EXPECT_THAT(program.refusal(), HasSubstr("field of 1048576 bits"));
  program = SmallProgram({{"a", 8}, {"b", 3}});
  EXPECT_THAT(program.refusal(), HasSubstr("not whole bytes"));
}

}  // namespace
}  // namespace nagi::p4::test
