// SPDX-License-Identifier: Apache-2.0
//
// Actions and their primitives.
#include <algorithm>
#include <array>
#include <string_view>

#include "program/loader.hpp"

namespace nagi::p4 {

namespace {

/// Primitives that apply an operator to two values and store the result into the first parameter.
struct Shorthand {
  const char* name;
  const char* op;
};
constexpr Shorthand shorthands[] = {{"add", "+"},         {"subtract", "-"}, {"bit_xor", "^"},
                                    {"bit_or", "|"},      {"bit_and", "&"},  {"shift_left", "<<"},
                                    {"shift_right", ">>"}};

}  // namespace

/// Find the parameters to which the program itself assigns negative values, in default or constant
/// entries. Expressions treat these parameters as signed. Values from a controller are never
/// negative, because controllers write all types as unsigned numbers.
void Loader::find_negative_data() {
  const auto look = [&](const JsonAt& entry) {
    const std::uint64_t id = entry["action_id"].whole(0, 0x7fffffff);
    const JsonAt data = entry["action_data"];
    for (std::size_t i = 0, n = data.size(); i < n; ++i) {
      if (data.element(i).text().rfind('-', 0) == 0) negative_.emplace(id, i);
    }
  };
  root_["pipelines"].each([&](const JsonAt& pipeline) {
    pipeline.each("tables", [&](const JsonAt& table) {
      if (table.has("default_entry")) look(table["default_entry"]);
      table.each("entries", [&](const JsonAt& one) { look(one["action_entry"]); });
    });
  });
}

void Loader::load_actions() {
  find_negative_data();
  const auto load = [&](const JsonAt& at) {
    Action action;
    action.name = at["name"].text();
    const std::uint64_t id = at["id"].whole(0, 0x7fffffff);
    if (!action_ids_.emplace(id, static_cast<Index>(program_->actions.size())).second) {
      at["id"].refuse("another action has this id");
    }
    at.each("runtime_data", [&](const JsonAt& one) {
      Parameter parameter;
      parameter.name = one["name"].text();
      parameter.bits = static_cast<std::uint32_t>(one["bitwidth"].whole(1, 64 * max_field_words));
      parameter.field.is_signed = negative_.contains({id, action.parameters.size()});
      parameter.field.bits = parameter.bits + (parameter.field.is_signed ? 1 : 0);
      parameter.field.limbs = (parameter.field.bits + 63) / 64;
      parameter.field.word = action.words;
      action.words += parameter.field.limbs;
      action.parameters.push_back(std::move(parameter));
    });
    if (action.words > 4096) at["runtime_data"].refuse("too many parameters");
    action_ = &action;
    const JsonAt steps = at["primitives"];
    const std::size_t count = steps.size();
    for (std::size_t i = 0; i < count; ++i) {
      const JsonAt one = steps.element(i);
      Step step = primitive(one, action);
      if (step.code == Do::jump || step.code == Do::jump_if_zero) {
        if (step.value > count) one.refuse("jumps out of its action");
        step.flag = step.value <= i;
      }
      action.steps.push_back(step);
    }
    action_ = nullptr;
    program_->actions.push_back(std::move(action));
  };
  root_.each("actions", load);
}

Index Loader::any_stack(const JsonAt& at) const {
  if (at["type"].text() == "header_union_stack") {
    return find(union_stacks_, at["value"], "header union stack");
  }
  return object(stacks_, at, "header_stack", "header stack");
}

std::uint32_t Loader::union_member(Index stack, const JsonAt& at) const {
  return find(union_members_[program_->stacks[stack].type], at, "member");
}

Index Loader::object(const Names& names, const JsonAt& at, const char* type,
                     const char* object_kind) const {
  if (at["type"].text() != type) at.refuse("not a " + std::string(object_kind));
  return find(names, at["value"], object_kind);
}

/// Return the field that a primitive writes.
Field Loader::target(const JsonAt& at) const {
  if (at["type"].text() != "field") {
    at.unsupported("a result that is not stored in a field");
  }
  const Field to = field(at["value"]);
  if (to.is_variable) at.refuse("a field of variable length");
  if (to.written == 0) at.refuse("a field that cannot be written to");
  return to;
}

Step Loader::assignment(const JsonAt& at, const Field& to, Value from) {
  Step step;
  step.to = to;
  step.a = from.node;
  if (to.is_variable) at.refuse("a field of variable length; use assign_VL");
  if (to.limbs > 1) {
    step.code = Do::set_wide;
    return step;
  }
  const Node& node = program_->nodes[from.node];
  step.value = to.mask();
  step.code = Do::set_value;
  if (node.op == Op::constant && node.a == none) {
    step.code = Do::set_constant;
    step.value = node.value & to.mask();
  } else if ((node.op == Op::field || node.op == Op::parameter) && !node.field.is_signed) {
    step.code = node.op == Op::field ? Do::set_field : Do::set_parameter;
    step.from = node.field;
  }
  return step;
}

/// Compile an assignment. `to` may be any lvalue.
Step Loader::assignment(const JsonAt& at, const JsonAt& to, const JsonAt& from) {
  const std::string& type = to["type"].text();
  if (type == "field") {
    const Field field_to = target(to);
    return assignment(at, field_to, value(from, field_to.bits));
  }
  if (type == "register") {
    Step step;
    step.code = Do::register_write;
    step.b = find(registers_, to["value"].element(0), "register");
    step.a = value(to["value"].element(1), 32).node;
    step.c = value(from, program_->registers[step.b].cell.bits).node;
    return step;
  }
  if (type != "expression" && type != "stack_field") {
    to.unsupported("assignment to \"" + type + "\"");
  }
  const Value lvalue = value(to, exact);
  const Node node = program_->nodes[lvalue.node];
  Step step;
  step.to = node.field;
  if (node.op == Op::field) return assignment(at, node.field, value(from, node.field.bits));
  if (node.op == Op::access) {
    step.target = node.a;
  } else if (node.op == Op::stack_last) {
    // Select the element `last` by its index.
    Node element;
    element.op = Op::stack_element;
    element.a = node.a;
    element.b = last_index(node.a).node;
    step.target = put_truth(element).node;
  } else {
    to.refuse("an expression to which no value can be assigned");
  }
  if (step.to.written == 0) to.refuse("a field that cannot be written to");
  step.code = Do::set_dynamic;
  step.a = value(from, step.to.bits).node;
  return step;
}

Step Loader::assignment_of_variable(const JsonAt& to, const JsonAt& from) {
  if (to["type"].text() != "field" || from["type"].text() != "field") {
    to.unsupported("assignment of fields of variable length other than between fields");
  }
  Step step;
  step.code = Do::set_variable;
  step.to = field(to["value"]);
  step.from = field(from["value"]);
  if (!step.to.is_variable || !step.from.is_variable) to.refuse("not a field of variable length");
  if (step.from.bits > step.to.bits) to.refuse("shorter than the field that is assigned to it");
  return step;
}

Step Loader::log_message(const JsonAt& format, const JsonAt& values) {
  LogMessage message;
  if (format["type"].text() != "string") format.refuse("not a string");
  if (values["type"].text() != "parameters_vector") values.refuse("not a list of values");
  const std::string& text = format["value"].text();
  std::string piece;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '{' || text[i + 1] == '}')) {
      piece += text[++i];
    } else if (text[i] == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string::npos) format.refuse("a brace that is not closed", "close it");
      message.pieces.push_back(std::move(piece));
      piece.clear();
      i = end;
    } else {
      piece += text[i];
    }
  }
  message.pieces.push_back(std::move(piece));
  const JsonAt list = values["value"];
  if (!list.is_object() || !list.json().empty()) {  // p4c writes {} for an empty list
    list.each([&](const JsonAt& one) { message.values.push_back(value(one, exact).node); });
  }
  if (message.pieces.size() != message.values.size() + 1) {
    format.refuse(std::to_string(message.pieces.size() - 1) + " {} for " +
                      std::to_string(message.values.size()) + " values",
                  "write as many {} as there are values");
  }
  program_->messages.push_back(std::move(message));
  Step step;
  step.code = Do::log;
  step.a = static_cast<Index>(program_->messages.size() - 1);
  return step;
}

Step Loader::primitive(const JsonAt& at, Action& action) {
  const std::string& name = at["op"].text();
  const JsonAt parameters = at["parameters"];
  const std::size_t parameter_count = parameters.size();
  const auto need = [&](std::size_t count) {
    if (parameter_count != count) {
      parameters.refuse(name + " takes " + std::to_string(count) + " parameters, not " +
                        std::to_string(parameter_count));
    }
  };
  const auto parameter = [&](std::size_t index) { return parameters.element(index); };
  const auto word = [&](std::size_t index) { return value(parameter(index), 64).node; };
  Step step;

  if (name == "assign" || name == "modify_field") {
    need(2);
    return assignment(at, parameter(0), parameter(1));
  }
  if (name == "assign_VL") {
    need(2);
    return assignment_of_variable(parameter(0), parameter(1));
  }
  for (const Shorthand& one : shorthands) {
    if (name != one.name) continue;
    need(3);
    const Field to = target(parameter(0));
    const nlohmann::json written = {
        {"op", one.op}, {"left", parameter(1).json()}, {"right", parameter(2).json()}};
    const std::string where = "parameters of " + name;
    return assignment(at, to, operation(JsonAt(written, where), to.bits, 0));
  }
  if (name == "add_to_field" || name == "subtract_from_field") {
    need(2);
    const Field to = target(parameter(0));
    const nlohmann::json written = {{"op", name == "add_to_field" ? "+" : "-"},
                                    {"left", parameter(0).json()},
                                    {"right", parameter(1).json()}};
    const std::string where = "parameters of " + name;
    return assignment(at, to, operation(JsonAt(written, where), to.bits, 0));
  }
  if (name == "assign_header" || name == "copy_header") {
    need(2);
    const Value to = header(parameter(0));
    const Value from = header(parameter(1));
    if (to.type != from.type) at.refuse("headers of different types");
    step.code = Do::set_header;
    step.a = to.node;
    step.b = from.node;
    return step;
  }
  if (name == "assign_union") {
    need(2);
    step.code = Do::set_union;
    step.a = object(unions_, parameter(0), "header_union", "header union");
    step.b = object(unions_, parameter(1), "header_union", "header union");
    if (program_->unions[step.a].type != program_->unions[step.b].type) {
      at.refuse("header unions of different types");
    }
    return step;
  }
  if (name == "assign_header_stack" || name == "assign_union_stack") {
    need(2);
    step.code = Do::set_stack;
    step.a = any_stack(parameter(0));
    step.b = any_stack(parameter(1));
    const Stack& to = program_->stacks[step.a];
    const Stack& from = program_->stacks[step.b];
    if (to.type != from.type || to.width != from.width ||
        to.headers.size() != from.headers.size()) {
      at.refuse("header stacks of different types");
    }
    for (std::size_t i = 0; i < to.headers.size(); ++i) {
      if (program_->headers[to.headers[i]].type != program_->headers[from.headers[i]].type) {
        at.refuse("header stacks of different types");
      }
    }
    return step;
  }
  if (name == "push" || name == "pop") {
    need(2);
    step.code = name == "push" ? Do::push : Do::pop;
    step.a = any_stack(parameter(0));
    step.b = word(1);
    return step;
  }
  if (name == "_jump" || name == "_jump_if_zero") {
    need(name == "_jump" ? 1 : 2);
    step.code = name == "_jump" ? Do::jump : Do::jump_if_zero;
    if (step.code == Do::jump_if_zero) step.a = truth(parameter(0)).node;
    const Value to = value(parameter(parameter_count - 1), exact);
    if (!to.number) parameter(parameter_count - 1).unsupported("jump to a calculated position");
    step.value = *to.number;
    return step;
  }
  if (name == "exit") {
    need(0);
    step.code = Do::exit;
    return step;
  }
  if (name == "assert" || name == "assume") {
    need(1);
    step.code = Do::assertion;
    step.a = truth(parameter(0)).node;
    step.b = static_cast<Index>(program_->assertion_sources.size());
    program_->assertion_sources.push_back(name + " failed in action " + action.name +
                                          (at.source().empty() ? "" : " (" + at.source() + ")"));
    return step;
  }
  if (name == "log_msg") {
    need(2);
    return log_message(parameter(0), parameter(1));
  }
  if (name == "add_header" || name == "add_header_fast" || name == "remove_header") {
    need(1);
    step.code = name == "remove_header" ? Do::remove_header : Do::add_header;
    step.flag = name == "add_header";
    step.a = header(parameter(0)).node;
    return step;
  }
  if (name == "drop" || name == "mark_to_drop") {
    step.code = Do::mark_to_drop;
    if (name == "drop") {
      need(0);
      step.to = program_->standard.egress_spec;
      step.from = program_->standard.multicast_group;
      if (step.to.bits == 0) at.refuse("there is no standard_metadata.egress_spec");
    } else {
      need(1);
      const Node& node = program_->nodes[header(parameter(0)).node];
      if (node.op != Op::header) at.refuse("drops by a header that is chosen at run time");
      const Header& standard = program_->headers[node.a];
      const HeaderType& type = program_->types[standard.type];
      for (std::size_t i = 0; i < type.fields.size(); ++i) {
        if (type.names[i] == "egress_spec") step.to = at_base(type.fields[i], standard.base);
        if (type.names[i] == "mcast_grp") step.from = at_base(type.fields[i], standard.base);
      }
      if (step.to.bits == 0) at.refuse("the header has no egress_spec");
    }
    if (step.to.limbs != 1 || step.from.limbs != 1) at.refuse("fields wider than 64 bits");
    return step;
  }
  if (name == "clone_ingress_pkt_to_egress" || name == "clone_egress_pkt_to_egress") {
    need(2);
    step.code = Do::clone;
    step.a = word(0);
    step.b = word(1);
    return step;
  }
  if (name == "resubmit" || name == "recirculate") {
    need(1);
    step.code = name == "resubmit" ? Do::resubmit : Do::recirculate;
    step.a = word(0);
    return step;
  }
  if (name == "generate_digest") {
    need(2);
    step.code = Do::digest;
    step.a = word(1);
    return step;
  }
  if (name == "register_read") {
    need(3);
    step.code = Do::register_read;
    step.to = target(parameter(0));
    step.b = object(registers_, parameter(1), "register_array", "register");
    step.a = word(2);
    return step;
  }
  if (name == "register_write") {
    need(3);
    step.code = Do::register_write;
    step.b = object(registers_, parameter(0), "register_array", "register");
    step.a = word(1);
    step.c = value(parameter(2), program_->registers[step.b].cell.bits).node;
    return step;
  }
  if (name == "count") {
    need(2);
    step.code = Do::count;
    step.b = object(counters_, parameter(0), "counter_array", "counter");
    if (program_->counters[step.b].is_direct) at.refuse("counts in a direct counter");
    step.a = word(1);
    return step;
  }
  if (name == "execute_meter") {
    need(3);
    step.code = Do::meter;
    step.b = object(meters_, parameter(0), "meter_array", "meter");
    if (program_->meters[step.b].is_direct) at.refuse("executes a direct meter");
    step.a = word(1);
    step.to = target(parameter(2));
    return step;
  }
  if (name == "modify_field_with_hash_based_offset") {
    need(4);
    step.code = Do::hash;
    step.to = target(parameter(0));
    step.a = word(1);
    step.b = object(calculations_, parameter(2), "calculation", "calculation");
    step.c = word(3);
    return step;
  }
  if (name == "modify_field_rng_uniform") {
    need(3);
    step.code = Do::random;
    step.to = target(parameter(0));
    step.a = word(1);
    step.b = word(2);
    return step;
  }
  if (name == "truncate") {
    need(1);
    step.code = Do::truncate;
    step.a = word(0);
    return step;
  }
  if (name == "no_op") {
    need(0);
    step.code = Do::nothing;
    return step;
  }
  at.unsupported("primitive \"" + name + "\"");
}

}  // namespace nagi::p4
