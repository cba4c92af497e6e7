// SPDX-License-Identifier: Apache-2.0
//
// Compiles expressions, checks types, and determines how many bits each value can have. If only the
// low bits of a result are needed (`demand`; for example a sum that is masked to 16 bits), sums,
// products, shifts to the left and bitwise operations need only the low bits of their operands.
// They can then be calculated modulo a power of two, which the fixed widths of Width do.
#include <algorithm>
#include <bit>

#include "program/loader.hpp"

namespace nagi::p4 {

namespace {

Width width_for(std::uint32_t bits) {
  if (bits <= 64) return Width::word;
  return bits <= 128 ? Width::twice : Width::any;
}

}  // namespace

/// Append a node whose value has `bits` bits, with the width that `demand` requires.
Loader::Value Loader::put(Node node, std::uint32_t bits, bool is_signed, std::uint32_t demand) {
  Width width = width_for(std::min(demand, bits + 1));
  const auto widen = [&](Index operand) {
    if (operand < program_->nodes.size()) width = std::max(width, width_of(operand));
  };
  switch (node.op) {
    case Op::constant:
    case Op::field:
    case Op::variable:
    case Op::parameter:
    case Op::lookahead:
    case Op::stack_last:
    case Op::access:
    case Op::register_cell:
    case Op::last_index:
    case Op::stack_size:
    case Op::bool_to_value:
      break;
    case Op::shift_left:
    case Op::shift_right:
    case Op::wrap_signed:
    case Op::saturate_signed:
    case Op::saturate_unsigned:
      widen(node.a);
      break;
    case Op::bit_not:
      widen(node.b);
      break;
    default:
      widen(node.a);
      widen(node.b);
  }
  node.width = width;
  program_->nodes.push_back(node);
  Value value;
  value.node = static_cast<Index>(program_->nodes.size() - 1);
  value.bits = bits;
  value.is_signed = is_signed;
  return value;
}

bool Loader::is_word(Index index) const {
  const Node& node = program_->nodes[index];
  if (node.op == Op::constant) return node.a == none && node.value >> 63 == 0;
  return node.op == Op::field && node.width == Width::word && !node.field.is_signed &&
         node.field.limbs == 1;
}

Loader::Value Loader::put_truth(Node node) {
  switch (node.op) {
    case Op::is_equal:
    case Op::is_different:
    case Op::less:
    case Op::less_or_equal:
    case Op::greater:
    case Op::greater_or_equal:
      node.is_plain = is_word(node.a) && is_word(node.b);
      break;
    case Op::value_to_bool:
      node.is_plain = is_word(node.b);
      break;
    case Op::is_valid:
      if (program_->nodes[node.b].op == Op::header) {
        node.is_plain = true;
        node.field.word = program_->headers[program_->nodes[node.b].a].base + valid_word;
      }
      break;
    default:
      break;
  }
  program_->nodes.push_back(node);
  Value value;
  value.node = static_cast<Index>(program_->nodes.size() - 1);
  value.kind = Kind::truth;
  return value;
}

Loader::Value Loader::put_field(Op op, const Field& field, std::uint32_t demand, Index object) {
  Node node;
  node.op = op;
  node.field = field;
  node.a = object;
  return put(node, field.is_signed ? field.bits - 1 : field.bits, field.is_signed, demand);
}

Loader::Value Loader::constant(const JsonAt& at) {
  std::string digits = at.text();
  const bool negative = !digits.empty() && digits[0] == '-';
  if (negative) digits.erase(0, 1);
  if (digits.rfind("0x", 0) == 0) digits.erase(0, 2);
  if (digits.empty() || digits.size() > max_bits / 4 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) {
    at.refuse("not a hexadecimal number");
  }
  Big number("0x" + digits);
  const auto bits = number == 0 ? 0 : static_cast<std::uint32_t>(msb(number) + 1);
  const bool all_ones = number > 0 && !negative && (number & (number + 1)) == 0;
  if (negative) number = -number;
  Node node;
  node.op = Op::constant;
  if (bits <= 63) {
    const auto small = static_cast<std::int64_t>(number);
    node.value = static_cast<std::uint64_t>(small);
  } else {
    const std::uint32_t limbs = bits / 64 + 1;
    if (negative) number += Big(1) << (64 * limbs);
    std::vector<std::uint64_t> words;
    for (std::uint32_t i = 0; i < limbs; ++i) {
      words.push_back(static_cast<std::uint64_t>(number & ~0ULL));
      number >>= 64;
    }
    node.a = static_cast<Index>(program_->wide_constants.size());
    program_->wide_constants.push_back(std::move(words));
  }
  Value value = put(node, bits, negative, exact);
  if (!negative && bits <= 63) value.number = node.value;
  value.all_ones = all_ones;
  return value;
}

Loader::Value Loader::expression(const JsonAt& at, std::uint32_t demand, unsigned depth) {
  if (depth > deepest) at.refuse("expressions nested too deeply", "write it in several steps");
  const std::string& type = at["type"].text();
  const JsonAt content = at["value"];
  if (type == "expression") {
    // If an expression is a parameter of a primitive, the compiler wraps it in another expression.
    return content.has("type") ? expression(content, demand, depth + 1)
                               : operation(content, demand, depth);
  }
  if (type == "hexstr") return constant(content);
  if (type == "field") {
    if (content.is_array() && content.element(0).is_object())
      return field_of_element(content, demand, depth);
    const Field from = field(content);
    if (!from.is_variable) return put_field(Op::field, from, demand);
    if (from.bits > 64 * max_field_words) {
      content.unsupported("arithmetic with a field of more than 2,048 bits");
    }
    return put_field(Op::variable, from, demand);
  }
  if (type == "bool") {
    Node node;
    node.op = Op::truth;
    node.value = content.flag() ? 1 : 0;
    return put_truth(node);
  }
  if (type == "local" || type == "runtime_data") {
    if (action_ == nullptr) at.refuse("an action's parameter outside an action");
    const std::uint64_t index = content.whole(0, 1 << 20);
    if (index >= action_->parameters.size()) {
      content.refuse("the action has no parameter " + std::to_string(index));
    }
    return put_field(Op::parameter, action_->parameters[index].field, demand);
  }
  if (type == "header") {
    Node node;
    node.op = Op::header;
    node.a = find(headers_, content, "header");
    Value value = put_truth(node);
    value.kind = Kind::header;
    value.type = program_->headers[node.a].type;
    return value;
  }
  if (type == "header_stack") {
    Value value;
    value.kind = Kind::stack;
    value.node = find(stacks_, content, "header stack");
    value.type = program_->stacks[value.node].type;
    return value;
  }
  if (type == "stack_field") {
    const Index stack = find(stacks_, content.element(0), "header stack");
    if (const auto whole = end_of_stack(stack, content.element(1))) return *whole;
    const Field from = field_of_type(program_->stacks[stack].type, content.element(1));
    if (from.is_variable) content.unsupported("arithmetic with a field of variable length");
    return put_field(Op::stack_last, from, demand, stack);
  }
  if (type == "register") {
    Node node;
    node.op = Op::register_cell;
    node.a = find(registers_, content.element(0), "register");
    node.b = operand(content.element(1), 32, depth, Kind::value).node;
    node.field = program_->registers[node.a].cell;
    return put(node, node.field.bits, false, demand);
  }
  if (type == "lookahead") {
    if (!ahead_) at.refuse("looks ahead outside the parser");
    Field from;
    from.bits = static_cast<std::uint32_t>(content.element(1).whole(1, 64 * max_field_words));
    from.limbs = (from.bits + 63) / 64;
    Node node;
    node.op = Op::lookahead;
    node.field = from;
    node.value = content.element(0).whole(0, 1 << 20);
    return put(node, from.bits, false, demand);
  }
  if (type == "union_stack_field") {
    Node node;
    node.op = Op::stack_last;
    node.a = find(union_stacks_, content.element(0), "header union stack");
    node.value = union_member(node.a, content.element(1));
    const Stack& stack = program_->stacks[node.a];
    node.field =
        field_of_type(program_->headers[stack.headers[node.value]].type, content.element(2));
    if (node.field.is_variable) content.unsupported("arithmetic with a field of variable length");
    return put(node, node.field.bits, node.field.is_signed, demand);
  }
  at.unsupported("expression of type \"" + type + "\"");
}

/// Compile `last` or `next` of a stack, which is a header, although the compiler writes it like a
/// field. Return nothing if the header type of the stack has a field with this name, or if the name
/// is another one.
std::optional<Loader::Value> Loader::end_of_stack(Index stack, const JsonAt& name) {
  const HeaderType& type = program_->types[program_->stacks[stack].type];
  const std::string& end = name.text();
  if ((end != "last" && end != "next") || std::ranges::find(type.names, end) != type.names.end()) {
    return std::nullopt;
  }
  Node element;
  element.op = Op::stack_element;
  element.a = stack;
  element.b = last_index(stack).node;
  if (end == "next") {
    Node one;
    one.op = Op::constant;
    one.value = 1;
    Node sum;
    sum.op = Op::add;
    sum.a = element.b;
    sum.b = put(one, 1, false, exact).node;
    element.b = put(sum, 33, true, exact).node;
  }
  Value value = put_truth(element);
  value.kind = Kind::header;
  value.type = program_->stacks[stack].type;
  return value;
}

/// Compile a field of a header that an expression selects: an element of a stack that is chosen at
/// run time.
Loader::Value Loader::field_of_element(const JsonAt& at, std::uint32_t demand, unsigned depth) {
  const JsonAt element = at.element(0);
  const Value header = element.has("type") ? operand(element, exact, depth, Kind::header)
                                           : operation(element, exact, depth + 1);
  if (header.kind != Kind::header) element.refuse("not a header");
  if (at.element(1).text() == "$valid$") {
    Node valid;
    valid.op = Op::is_valid;
    valid.b = header.node;
    Node node;
    node.op = Op::bool_to_value;
    node.b = put_truth(valid).node;
    return put(node, 1, false, exact);
  }
  const Field from = field_of_type(header.type, at.element(1));
  if (from.is_variable) {
    at.unsupported("field of variable length of a header that is chosen at run time");
  }
  return put_field(Op::access, from, demand, header.node);
}

/// Compile the index of the last extracted element of a stack, which is -1 if there is none.
Loader::Value Loader::last_index(Index stack) {
  Node last;
  last.op = Op::last_index;
  last.a = stack;
  return put(last, 32, true, exact);
}

Loader::Value Loader::operand(const JsonAt& at, std::uint32_t demand, unsigned depth, Kind kind) {
  const Value value = expression(at, demand, depth + 1);
  if (value.kind != kind) {
    constexpr const char* names[] = {"a number", "a truth value", "a header", "a header stack"};
    at.refuse("not " + std::string(names[static_cast<std::size_t>(kind)]));
  }
  return value;
}

Loader::Value Loader::value(const JsonAt& at, std::uint32_t demand) {
  const Value value = expression(at, demand);
  if (value.kind == Kind::value) return value;
  if (value.kind != Kind::truth) at.refuse("not a number");
  Node node;
  node.op = Op::bool_to_value;
  node.b = value.node;
  return put(node, 1, false, exact);
}

Loader::Value Loader::truth(const JsonAt& at) {
  const Value value = expression(at, exact);
  if (value.kind == Kind::truth) return value;
  if (value.kind != Kind::value) at.refuse("not a truth value");
  Node node;
  node.op = Op::value_to_bool;
  node.b = value.node;
  node.compare = width_of(value.node);
  return put_truth(node);
}

Loader::Value Loader::header(const JsonAt& at) { return operand(at, exact, 0, Kind::header); }

}  // namespace nagi::p4
