// SPDX-License-Identifier: Apache-2.0
//
// Expressions are compiled with as few bits as their use needs. These tests compare the values of
// random expressions with those of unbounded arithmetic.
#include <boost/multiprecision/cpp_int.hpp>
#include <random>

#include "small_program.hpp"

namespace nagi::p4::test {
namespace {

using Whole = boost::multiprecision::cpp_int;

struct Input {
  std::string name;
  unsigned bits;
  bool is_signed;
  Whole value;
};

/// A random expression and its value, computed in a straightforward way.
class Maker {
 public:
  Maker(std::mt19937_64& random, const std::vector<Input>& inputs)
      : random_(random), inputs_(inputs) {}

  std::pair<Json, Whole> value(int depth) {
    const unsigned choice = depth == 0 ? pick(2) : 2 + pick(15);
    switch (choice) {
      case 0: {
        const Input& input = inputs_[pick(inputs_.size())];
        return {field(input.is_signed ? "scalars" : "h", input.name), input.value};
      }
      case 1:
        return constant(1 + pick(130));
      case 2:
      case 3: {
        const auto [a, x] = value(depth - 1);
        const auto [b, y] = value(depth - 1);
        return {operation("+", a, b), x + y};
      }
      case 4: {
        const auto [a, x] = value(depth - 1);
        const auto [b, y] = value(depth - 1);
        return {operation("-", a, b), x - y};
      }
      case 5: {
        const auto [a, x] = value(depth - 1);
        const auto [b, y] = value(depth - 1);
        return {operation("*", a, b), x * y};
      }
      case 6: {  // as p4c masks what an operation gives
        const auto [a, x] = value(depth - 1);
        const unsigned bits = 1 + pick(140);
        const Whole modulus = Whole(1) << bits;
        return {operation("&", a, hex_of(modulus - 1)), modulo(x, modulus)};
      }
      case 7: {
        const auto [a, x] = value(depth - 1);
        const unsigned by = pick(70);
        return {operation("<<", a, hex(by)), x << by};
      }
      case 8: {
        const auto [a, x] = value(depth - 1);
        const unsigned by = pick(70);
        return {operation(">>", a, hex(by)), floor_shift(x, by)};
      }
      case 9: {  // a signed type
        const auto [a, x] = value(depth - 1);
        const unsigned bits = 2 + pick(130);
        const Whole modulus = Whole(1) << bits;
        Whole low = modulo(x, modulus);
        if (low >= modulus / 2) low -= modulus;
        return {operation("two_comp_mod", a, hex(bits)), low};
      }
      case 10: {
        const auto [a, x] = value(depth - 1);
        const unsigned bits = 1 + pick(130);
        const Whole maximum = (Whole(1) << bits) - 1;
        return {operation("usat_cast", a, hex(bits)), x < 0 ? Whole(0) : x > maximum ? maximum : x};
      }
      case 11: {
        const auto [a, x] = value(depth - 1);
        const unsigned bits = 2 + pick(130);
        const Whole half = Whole(1) << (bits - 1);
        return {operation("sat_cast", a, hex(bits)), x < -half   ? Whole(-half)
                                                     : x >= half ? Whole(half - 1)
                                                                 : x};
      }
      case 12: {
        const auto [c, truth] = condition(depth - 1);
        const auto [a, x] = value(depth - 1);
        const auto [b, y] = value(depth - 1);
        Json chosen = operation("?", a, b);
        chosen["value"]["cond"] = c;
        return {chosen, truth ? x : y};
      }
      case 13: {
        const auto [c, truth] = condition(depth - 1);
        return {operation("b2d", nullptr, c), truth ? 1 : 0};
      }
      case 14: {
        const auto [a, x] = value(depth - 1);
        return {operation("~", nullptr, a), -x - 1};
      }
      case 15: {  // of numbers that are not negative, as P4 has it
        const auto [a, x] = low_bits(depth - 1);
        const auto [b, y] = low_bits(depth - 1);
        const unsigned kind = pick(5);
        if (kind == 0) return {operation("/", a, b), y == 0 ? Whole(0) : x / y};
        if (kind == 1) return {operation("%", a, b), y == 0 ? Whole(0) : x % y};
        if (kind == 2) return {operation("|", a, b), x | y};
        if (kind == 3) return {operation("^", a, b), x ^ y};
        return {operation("&", a, b), x & y};
      }
      default: {  // by an amount known only then
        const auto [a, x] = low_bits(depth - 1);
        const auto [b, y] = value(depth - 1);
        const Json by = operation("&", b, hex(31));
        const auto amount = static_cast<unsigned>(modulo(y, 32));
        if (pick(2) == 0) return {operation(">>", a, by), x >> amount};
        return {operation("<<", a, by), x << amount};
      }
    }
  }

  std::pair<Json, bool> condition(int depth) {
    const auto [a, x] = value(depth > 0 ? depth : 0);
    const auto [b, y] = value(depth > 0 ? depth : 0);
    switch (pick(9)) {
      case 0:
        return {operation("==", a, b), x == y};
      case 1:
        return {operation("!=", a, b), x != y};
      case 2:
        return {operation("<", a, b), x < y};
      case 3:
        return {operation("<=", a, b), x <= y};
      case 4:
        return {operation(">", a, b), x > y};
      case 5:
        return {operation("d2b", nullptr, a), x != 0};
      case 6:
        return {operation("and", operation("<", a, b), operation("d2b", nullptr, b)),
                x < y && y != 0};
      case 7:
        return {
            operation("not", nullptr, operation("or", operation("==", a, b), operation(">", a, b))),
            !(x >= y)};
      default:
        return {operation(">=", a, b), x >= y};
    }
  }

 private:
  unsigned pick(std::size_t count) { return static_cast<unsigned>(random_() % count); }
  static Whole modulo(const Whole& value, const Whole& modulus) {
    Whole low = value % modulus;
    if (low < 0) low += modulus;
    return low;
  }
  static Whole floor_shift(const Whole& value, unsigned by) {
    if (value >= 0) return value >> by;
    return -((-value - 1) >> by) - 1;
  }
  static Json hex_of(const Whole& value) {
    std::stringstream text;
    if (value < 0) text << '-';
    text << "0x" << std::hex << abs(value);
    return hex(text.str());
  }
  std::pair<Json, Whole> constant(unsigned bits) {
    Whole value = 0;
    for (unsigned i = 0; i < bits; i += 64) value = (value << 64) | Whole(random_());
    value = modulo(value, Whole(1) << bits);
    if (pick(4) == 0) value = -value;
    return {hex_of(value), value};
  }
  std::pair<Json, Whole> low_bits(int depth) {
    const auto [a, x] = value(depth > 0 ? depth : 0);
    const unsigned bits = 1 + pick(100);
    const Whole modulus = Whole(1) << bits;
    return {operation("&", a, hex_of(modulus - 1)), modulo(x, modulus)};
  }

  std::mt19937_64& random_;
  const std::vector<Input>& inputs_;
};

TEST(Expression, AgreesWithArithmeticWithoutEnd) {
  std::mt19937_64 random(2008);
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    // Values arrive in the packet; signed ones are copies of them.
    std::vector<Input> inputs = {{"u8", 8, false, 0},     {"u16", 16, false, 0},
                                 {"u32", 32, false, 0},   {"u64", 64, false, 0},
                                 {"u128", 128, false, 0}, {"s8", 8, true, 0},
                                 {"s64", 64, true, 0},    {"s128", 128, true, 0}};
    constexpr std::array<int, 6> out_bits = {8, 16, 64, 128, 256, 40};
    std::vector<FieldSpec> fields = {
        {"u8", 8}, {"u16", 16}, {"u32", 32}, {"u64", 64}, {"u128", 128}};
    unsigned bytes = 31;
    for (std::size_t i = 0; i < out_bits.size(); ++i) {
      fields.push_back({"out" + std::to_string(i), out_bits[i]});
      bytes += static_cast<unsigned>(out_bits[i]) / 8;
    }
    SmallProgram program(fields, {{"s8", 8, true}, {"s64", 64, true}, {"s128", 128, true}});
    Bytes packet(bytes);
    for (std::uint8_t& byte : packet) {
      const auto any = random();
      byte = any % 5 == 0 ? 0 : any % 5 == 1 ? 0xff : static_cast<std::uint8_t>(any >> 8);
    }
    std::size_t at = 0;
    for (Input& input : inputs) {
      if (input.is_signed) continue;
      for (unsigned i = 0; i < input.bits / 8; ++i) input.value = input.value << 8 | packet[at++];
    }
    const std::array<std::size_t, 3> sources = {0, 3, 4};
    std::vector<Json> steps;
    for (std::size_t i = 0; i < 3; ++i) {
      Input& input = inputs[5 + i];
      input.value = inputs[sources[i]].value;
      if ((input.value >> (input.bits - 1)) != 0) input.value -= Whole(1) << input.bits;
      steps.push_back(assign(field("scalars", input.name), field("h", inputs[sources[i]].name)));
    }
    Maker maker(random, inputs);
    std::vector<Whole> expected;
    std::vector<Json> made;
    for (std::size_t i = 0; i < out_bits.size(); ++i) {
      const auto [json, value] = maker.value(1 + round % 4);
      steps.push_back(assign(field("h", "out" + std::to_string(i)), wrapped(json)));
      made.push_back(json);
      expected.push_back(value);
    }
    program.ingress(steps);
    program.forward();
    if (program.refusal() != "not refused") {  // too wide to be exact
      EXPECT_THAT(program.refusal(), testing::HasSubstr("bits"));
      continue;
    }
    Switch machine(program);
    const Bytes sent = machine.one(packet);
    ASSERT_EQ(sent.size(), packet.size());
    at = 31;
    for (std::size_t i = 0; i < out_bits.size(); ++i) {
      Whole got = 0;
      for (int byte = 0; byte < out_bits[i] / 8; ++byte) got = got << 8 | sent[at++];
      const Whole modulus = Whole(1) << out_bits[i];
      Whole low = expected[i] % modulus;
      if (low < 0) low += modulus;
      ASSERT_EQ(got, low) << "round " << round << ", " << out_bits[i] << " bits of " << made[i];
      ++compared;
    }
  }
  EXPECT_GT(compared, 600);
}

TEST(Expression, ConditionsAgreeToo) {
  std::mt19937_64 random(42);
  const std::vector<Input> inputs = {{"u8", 8, false, 0x80}, {"u64", 64, false, ~0ULL}};
  for (int round = 0; round < 200; ++round) {
    SmallProgram program({{"u8", 8}, {"u64", 64}, {"out", 8}});
    Maker maker(random, inputs);
    const auto [json, truth] = maker.condition(1 + round % 3);
    program.ingress({assign(field("h", "out"), wrapped(operation("b2d", nullptr, json)))});
    program.forward();
    if (program.refusal() != "not refused") continue;
    Switch machine(program);
    const Bytes sent = machine.one({0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x55});
    ASSERT_EQ(sent.size(), 10U);
    ASSERT_EQ(sent[9], truth ? 1 : 0) << json;
  }
}

TEST(Expression, ShiftsByMoreThanThereIsGiveNothing) {
  SmallProgram program({{"a", 64}, {"by", 8}});
  program.ingress({assign(field("h", "a"),
                          wrapped(operation("&", operation("<<", field("h", "a"), field("h", "by")),
                                            hex("0xffffffffffffffff"))))});
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 1, 63}), (Bytes{0x80, 0, 0, 0, 0, 0, 0, 0, 63}));
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 1, 64}), (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 64}));
  EXPECT_EQ(machine.one({0, 0, 0, 0, 0, 0, 0, 1, 255}), (Bytes{0, 0, 0, 0, 0, 0, 0, 0, 255}));
}

TEST(Expression, DivisionByNothingGivesNothing) {
  SmallProgram program({{"a", 8}, {"b", 8}, {"q", 8}, {"r", 8}});
  program.ingress(
      {assign(field("h", "q"), wrapped(operation("/", field("h", "a"), field("h", "b")))),
       assign(field("h", "r"), wrapped(operation("%", field("h", "a"), field("h", "b"))))});
  program.forward();
  Switch machine(program);
  EXPECT_EQ(machine.one({17, 5, 0, 0}), (Bytes{17, 5, 3, 2}));
  EXPECT_EQ(machine.one({17, 0, 9, 9}), (Bytes{17, 0, 0, 0}));
}

TEST(Expression, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const Json& expression) {
    SmallProgram program;
    program.ingress({assign(field("h", "a"), wrapped(expression))});
    return program.refusal();
  };
  EXPECT_THAT(
      refused(operation("frobnicate", hex(1), hex(2))),
      testing::AllOf(testing::HasSubstr("operator \"frobnicate\""),
                     testing::HasSubstr("not supported"), testing::HasSubstr("small.p4:42")));
  EXPECT_THAT(refused(operation("+", hex(1), field("h", "nothing"))),
              testing::HasSubstr("h_t has no field nothing"));
  EXPECT_THAT(refused(operation("+", hex(1), operation("==", hex(1), hex(2)))),
              testing::HasSubstr("not a number"));
  EXPECT_THAT(refused(hex("0xzz")), testing::HasSubstr("not a hexadecimal number"));
  EXPECT_THAT(refused(operation("<<", field("h", "d"), field("h", "d"))), "not refused");
  EXPECT_THAT(
      refused(operation(">>", operation("<<", field("h", "d"), field("h", "d")), field("h", "d"))),
      testing::HasSubstr("mask the result"));
  Json deep = hex(1);
  for (int i = 0; i < 300; ++i) deep = operation("+", deep, hex(1));
  EXPECT_THAT(refused(deep), testing::HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace nagi::p4::test
