// SPDX-License-Identifier: Apache-2.0
//
// Compiles the operators of expressions: see load_expression.cpp.
#include <algorithm>
#include <optional>
#include <string>

#include "program/loader.hpp"

namespace nagi::p4 {

namespace {

struct Operator {
  const char* name;
  Op op;
};

constexpr Operator arithmetic[] = {
    {"+", Op::add},
    {"-", Op::subtract},
    {"*", Op::multiply},
    {"/", Op::divide},
    {"%", Op::modulo},
    {"<<", Op::shift_left},
    {">>", Op::shift_right},
    {"&", Op::bit_and},
    {"|", Op::bit_or},
    {"^", Op::bit_xor},
    {"two_comp_mod", Op::wrap_signed},
    {"sat_cast", Op::saturate_signed},
    {"usat_cast", Op::saturate_unsigned},
};
constexpr Operator comparisons[] = {
    {"<", Op::less}, {"<=", Op::less_or_equal}, {">", Op::greater}, {">=", Op::greater_or_equal}};

template <std::size_t count>
std::optional<Op> named(const Operator (&operators)[count], const std::string& name) {
  for (const Operator& one : operators) {
    if (name == one.name) return one.op;
  }
  return std::nullopt;
}

}  // namespace

Loader::Value Loader::operation(const JsonAt& at, std::uint32_t demand, unsigned depth) {
  const std::string& name = at["op"].text();
  const auto left = [&](std::uint32_t bits, Kind kind = Kind::value) {
    return operand(at["left"], bits, depth, kind);
  };
  const auto right = [&](std::uint32_t bits, Kind kind = Kind::value) {
    return operand(at["right"], bits, depth, kind);
  };
  const auto check = [&](std::uint64_t bits) {
    if (bits > max_bits) {
      at.refuse("a number of " + std::to_string(bits) + " bits",
                "mask the result to the bits that are needed");
    }
    return static_cast<std::uint32_t>(bits);
  };
  Node node;

  if (const auto op = named(arithmetic, name)) {
    node.op = *op;
    const bool unary = !at.has("left");
    if (unary && node.op != Op::add && node.op != Op::subtract) at.refuse("has no left operand");
    if (unary) {
      const Value argument = right(demand);
      if (node.op == Op::add) return argument;
      Node zero;
      node.a = put(zero, 0, false, exact).node;
      node.b = argument.node;
      return put(node, check(argument.bits + 1), true, demand);
    }
    switch (node.op) {
      case Op::add:
      case Op::subtract: {
        const Value a = left(demand);
        const Value b = right(demand);
        node.a = a.node;
        node.b = b.node;
        return put(node, check(std::max(a.bits, b.bits) + 1ULL),
                   a.is_signed || b.is_signed || node.op == Op::subtract, demand);
      }
      case Op::multiply: {
        const Value a = left(demand);
        const Value b = right(demand);
        node.a = a.node;
        node.b = b.node;
        return put(node, check(std::uint64_t{a.bits} + b.bits), a.is_signed || b.is_signed, demand);
      }
      case Op::divide:
      case Op::modulo: {
        const Value a = left(exact);
        const Value b = right(exact);
        node.a = a.node;
        node.b = b.node;
        return put(node, a.bits, a.is_signed, exact);
      }
      case Op::shift_left: {
        const Value by = right(exact);
        const Value a = left(demand);
        node.a = a.node;
        node.b = by.node;
        // Bits that are shifted beyond the demand are not needed.
        std::uint64_t maximum =
            by.number ? *by.number : (by.bits > 31 ? ~0U : (1ULL << by.bits) - 1);
        std::uint64_t bits = std::min<std::uint64_t>(a.bits + maximum, std::uint64_t{1} << 40);
        if (demand != exact) bits = std::min<std::uint64_t>(bits, std::max(demand, a.bits));
        return put(node, check(bits), a.is_signed, demand);
      }
      case Op::shift_right: {
        const Value by = right(exact);
        const bool is_limited = demand != exact && by.number && *by.number < max_bits;
        const Value a = left(is_limited ? demand + static_cast<std::uint32_t>(*by.number) : exact);
        node.a = a.node;
        node.b = by.node;
        return put(node, a.bits, a.is_signed, demand);
      }
      case Op::bit_and: {
        // If one operand is a constant, only its bits of the other operand are needed.
        bool all_ones = false;
        const auto mask = [&](const char* side) -> std::optional<std::uint32_t> {
          const JsonAt one = at[side];
          if (!one.has("type") || one["type"].json() != "hexstr") return std::nullopt;
          const Value value = constant(one["value"]);
          all_ones = all_ones || value.all_ones;
          return value.is_signed ? std::nullopt : std::optional(value.bits);
        };
        const auto left_mask = mask("left");
        const auto right_mask = mask("right");
        // A mask that covers all bits of the demand has no effect.
        if (all_ones && left_mask && !right_mask && demand <= *left_mask) return right(demand);
        if (all_ones && right_mask && !left_mask && demand <= *right_mask) return left(demand);
        const Value a = left(right_mask ? std::min(demand, *right_mask) : demand);
        const Value b = right(left_mask ? std::min(demand, *left_mask) : demand);
        node.a = a.node;
        node.b = b.node;
        if (a.is_signed && b.is_signed) return put(node, std::max(a.bits, b.bits), true, demand);
        std::uint32_t bits = max_bits;
        if (!a.is_signed) bits = a.bits;
        if (!b.is_signed) bits = std::min(bits, b.bits);
        return put(node, bits, false, demand);
      }
      case Op::bit_or:
      case Op::bit_xor: {
        const Value a = left(demand);
        const Value b = right(demand);
        node.a = a.node;
        node.b = b.node;
        return put(node, std::max(a.bits, b.bits), a.is_signed || b.is_signed, demand);
      }
      default: {
        const Value by = right(exact);
        if (!by.number || *by.number < 1 || *by.number > 64 * max_field_words) {
          at["right"].refuse("not a width");
        }
        node.value = *by.number;
        const auto to = static_cast<std::uint32_t>(node.value);
        const Value a = left(node.op == Op::wrap_signed ? to : exact);
        node.a = a.node;
        if (node.op == Op::wrap_signed) return put(node, to - 1, true, exact);
        // The calculation must also have room for the bounds of saturation.
        Value result = put(node, std::max(a.bits, to) + 2, node.op == Op::saturate_signed, exact);
        result.bits = node.op == Op::saturate_signed ? to - 1 : to;
        return result;
      }
    }
  }
  if (const auto op = named(comparisons, name)) {
    node.op = *op;
    node.a = left(exact).node;
    node.b = right(exact).node;
    node.compare = std::max(width_of(node.a), width_of(node.b));
    return put_truth(node);
  }
  if (name == "==" || name == "!=") {
    const bool same = name == "==";
    const Value a = expression(at["left"], exact, depth + 1);
    const Value b = right(exact, a.kind);
    node.a = a.node;
    node.b = b.node;
    switch (a.kind) {
      case Kind::value:
        node.op = same ? Op::is_equal : Op::is_different;
        node.compare = std::max(width_of(node.a), width_of(node.b));
        break;
      case Kind::truth:
        node.op = same ? Op::bool_equal : Op::bool_different;
        break;
      case Kind::header:
        node.op = same ? Op::headers_equal : Op::headers_different;
        break;
      case Kind::stack:
        at.unsupported("comparison of header stacks");
    }
    return put_truth(node);
  }
  if (name == "and" || name == "or") {
    node.op = name == "and" ? Op::both : Op::either;
    node.a = left(exact, Kind::truth).node;
    node.b = right(exact, Kind::truth).node;
    return put_truth(node);
  }
  if (name == "not") {
    node.op = Op::negate;
    node.b = right(exact, Kind::truth).node;
    return put_truth(node);
  }
  if (name == "~") {
    node.op = Op::bit_not;
    const Value b = right(demand);
    node.b = b.node;
    return put(node, b.bits, true, demand);
  }
  if (name == "d2b") {
    node.op = Op::value_to_bool;
    node.b = right(exact).node;
    node.compare = width_of(node.b);
    return put_truth(node);
  }
  if (name == "b2d") {
    node.op = Op::bool_to_value;
    node.b = right(exact, Kind::truth).node;
    return put(node, 1, false, exact);
  }
  if (name == "valid") {
    node.op = Op::is_valid;
    node.b = right(exact, Kind::header).node;
    return put_truth(node);
  }
  if (name == "valid_union") {
    if (at["right"]["type"].text() != "header_union")
      at.unsupported("union that is chosen at run time");
    node.op = Op::union_valid;
    node.a = find(unions_, at["right"]["value"], "header union");
    return put_truth(node);
  }
  if (name == "?") {
    node.op = Op::choose;
    node.c = operand(at["cond"], exact, depth, Kind::truth).node;
    const Value a = expression(at["left"], demand, depth + 1);
    const Value b = right(demand, a.kind);
    node.a = a.node;
    node.b = b.node;
    if (a.kind == Kind::value) {
      return put(node, std::max(a.bits, b.bits), a.is_signed || b.is_signed, demand);
    }
    if (a.kind == Kind::stack) at.unsupported("choice between header stacks");
    if (a.type != b.type) at.refuse("headers of different types");
    Value value = put_truth(node);
    value.kind = a.kind;
    value.type = a.type;
    return value;
  }
  if (name == "dereference_header_stack") {
    const Value stack = left(exact, Kind::stack);
    node.op = Op::stack_element;
    node.a = stack.node;
    node.b = right(64).node;
    Value value = put_truth(node);
    value.kind = Kind::header;
    value.type = stack.type;
    return value;
  }
  if (name == "access_field") {
    const Value argument = left(exact, Kind::header);
    const auto& fields = program_->types[argument.type].fields;
    const std::uint64_t index = at["right"].whole(0, 1 << 20);
    if (index >= fields.size()) at["right"].refuse("the header has no such field");
    if (fields[index].is_variable) {
      at.unsupported("field of variable length of a header that is chosen at run time");
    }
    return put_field(Op::access, fields[index], demand, argument.node);
  }
  if (name == "last_stack_index") return last_index(right(exact, Kind::stack).node);
  if (name == "size_stack") {
    node.op = Op::stack_size;
    node.a = right(exact, Kind::stack).node;
    return put(node, 32, false, exact);
  }
  at["op"].unsupported("operator \"" + name + "\"");
}
}  // namespace nagi::p4
