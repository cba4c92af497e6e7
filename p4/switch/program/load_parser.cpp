// SPDX-License-Identifier: Apache-2.0
//
// Loads the states of the parser, and value sets.
#include "program/loader.hpp"

namespace nagi::p4 {

void Loader::load_value_sets() {
  root_.each("parse_vsets", [&](const JsonAt& at) {
    ValueSet set;
    set.name = at["name"].text();
    set.bits = static_cast<std::uint32_t>(
        at["compressed_bitwidth"].whole(1, 64 * std::uint64_t{max_key_words}));
    if (at.has("max_size")) set.size = at["max_size"].whole(0, 1 << 30);
    name(value_sets_, at, static_cast<Index>(program_->value_sets.size()), "value set");
    program_->value_sets.push_back(std::move(set));
  });
}

ParserStep Loader::parser_step(const JsonAt& at) {
  const std::string& op = at["op"].text();
  const JsonAt parameters = at["parameters"];
  const auto parameter = [&](std::size_t index) { return parameters.element(index); };
  ParserStep step;
  if (op == "extract" || op == "extract_VL") {
    const JsonAt source = parameter(0);
    const std::string& type = source["type"].text();
    const bool variable = op == "extract_VL";
    Index type_index = none;
    if (type == "regular" && source["value"].is_object()) {
      if (variable) {
        at.unsupported(
            "header of variable length extracted into a stack's element that is chosen "
            "at run time");
      }
      const Value element = header(source["value"]);
      step.code = ParserDo::extract_element;
      step.a = element.node;
      type_index = element.type;
    } else if (type == "regular") {
      step.object = find(headers_, source["value"], "header");
      step.code = variable ? ParserDo::extract_variable : ParserDo::extract;
      type_index = program_->headers[step.object].type;
      if (program_->headers[step.object].is_metadata) source.refuse("metadata is extracted");
    } else if (type == "stack") {
      step.object = find(stacks_, source["value"], "header stack");
      step.code = variable ? ParserDo::extract_next_variable : ParserDo::extract_next;
      type_index = program_->stacks[step.object].type;
    } else if (type == "union_stack") {
      const JsonAt path = source["value"];
      step.object = find(union_stacks_, path.element(0), "header union stack");
      step.member = union_member(step.object, path.element(1));
      step.code = variable ? ParserDo::extract_next_variable : ParserDo::extract_next;
      const Stack& stack = program_->stacks[step.object];
      type_index = program_->headers[stack.headers[step.member]].type;
    } else {
      source.unsupported("extraction of \"" + type + "\"");
    }
    if (variable) {
      if (program_->types[type_index].variable == none) at.refuse("no field of variable length");
      step.a = value(parameter(1), 32).node;
    } else if (program_->types[type_index].variable != none) {
      // In an older format of bmv2, the header type has the length.
      at.unsupported("header with a field of variable length whose length is not given");
    }
    return step;
  }
  if (op == "set") {
    step.code = ParserDo::set;
    const JsonAt to = parameter(0);
    const JsonAt from = parameter(1);
    if (to["type"].text() == "field" && field(to["value"]).is_variable) {
      step.set = assignment_of_variable(to, from);
      return step;
    }
    if (from["type"].text() == "lookahead") {
      const JsonAt range = from["value"];
      step.needs = static_cast<std::uint32_t>(
          (range.element(0).whole(0, 1 << 20) + range.element(1).whole(1, 1 << 20) + 7) / 8);
    }
    ahead_ = step.needs != 0;
    step.set = assignment(at, to, from);
    ahead_ = false;
    return step;
  }
  if (op == "verify") {
    step.code = ParserDo::verify;
    step.a = truth(parameter(0)).node;
    const JsonAt error = parameter(1);
    if (error.is_number()) {
      Node node;
      node.op = Op::constant;
      node.value = error.whole(0, 0x7fffffff);
      step.b = put(node, 32, false, exact).node;
    } else {
      step.b = value(error, 32).node;
    }
    return step;
  }
  if (op == "shift" || op == "advance") {
    step.code = ParserDo::advance;
    if (op == "advance") {
      step.a = value(parameter(0), 64).node;
    } else {
      Node node;
      node.op = Op::constant;
      node.value = 8 * parameter(0).whole(0, 1 << 20);
      step.a = put(node, 32, false, exact).node;
    }
    return step;
  }
  if (op == "primitive") {
    step.code = ParserDo::act;
    Action action;
    action.name = "of the parser";
    action.steps.push_back(primitive(parameter(0), action));
    if (action.steps[0].code == Do::jump || action.steps[0].code == Do::jump_if_zero) {
      at.refuse("a jump in the parser");
    }
    step.object = static_cast<Index>(program_->actions.size());
    program_->actions.push_back(std::move(action));
    return step;
  }
  at.unsupported("parser operation \"" + op + "\"");
}

/// Convert a hexadecimal string to the words of a state's key. In the string, each part of the key
/// takes whole bytes.
std::vector<std::uint64_t> Loader::key_number(const JsonAt& at, const ParserState& state) const {
  std::uint32_t bytes = 0;
  for (const KeyPart& part : state.key) bytes += (part.bits + 7) / 8;
  const std::vector<std::uint64_t> all = number(at, 8 * bytes);
  std::vector<std::uint64_t> key;
  std::uint32_t rest = bytes;
  for (const KeyPart& part : state.key) {
    rest -= (part.bits + 7) / 8;
    for (std::uint32_t i = 0; i < part.limbs; ++i) {
      std::uint64_t word = 0;
      for (std::uint32_t byte = 0; byte < 8 && 8 * i + byte < (part.bits + 7) / 8; ++byte) {
        const std::uint32_t position = rest + 8 * i + byte;
        word |= (all[position / 8] >> 8 * (position % 8) & 0xff) << 8 * byte;
      }
      key.push_back(word);
    }
  }
  return key;
}

void Loader::load_transitions(const JsonAt& at, ParserState& state, const Names& states) {
  at.each("transitions", [&](const JsonAt& one) {
    Transition transition;
    if (one.has("next_state")) transition.next = find(states, one["next_state"], "parser state");
    const std::string type = one.has("type")                    ? one["type"].text()
                             : one["value"].json() == "default" ? "default"
                                                                : "hexstr";
    if (type == "default") {
      state.otherwise = transition.next;
      return;
    }
    if (state.key.empty()) one.refuse("selects by a key that the state does not have");
    if (type == "hexstr") {
      transition.value = key_number(one["value"], state);
      if (one.has("mask")) {
        transition.mask = key_number(one["mask"], state);
      } else {
        transition.mask.assign(state.words, ~0ULL);
      }
      for (std::uint32_t i = 0; i < state.words; ++i) transition.value[i] &= transition.mask[i];
    } else if (type == "parse_vset") {
      ValueSetUse use;
      use.set = find(value_sets_, one["value"], "value set");
      std::uint32_t bits = 0;
      for (const KeyPart& part : state.key) {
        use.bits.push_back(part.bits);
        bits += part.bits;
      }
      if (bits != program_->value_sets[use.set].bits) {
        one.refuse("a value set of another width than the state's key");
      }
      if (one.has("mask")) use.mask = key_number(one["mask"], state);
      transition.set = static_cast<Index>(program_->value_set_uses.size());
      program_->value_set_uses.push_back(std::move(use));
    } else {
      one.unsupported("transition of type \"" + type + "\"");
    }
    state.transitions.push_back(std::move(transition));
  });
}

void Loader::load_parser() {
  const JsonAt parsers = root_["parsers"];
  if (parsers.size() != 1) parsers.unsupported("anything but one parser");
  const JsonAt parser = parsers.element(0);
  Names states;
  const JsonAt list = parser["parse_states"];
  list.each([&](const JsonAt& at) {
    name(states, at, static_cast<Index>(states.size()), "parser state");
  });
  list.each([&](const JsonAt& at) {
    ParserState state;
    state.name = at["name"].text();
    at.each("parser_ops", [&](const JsonAt& one) { state.steps.push_back(parser_step(one)); });
    ahead_ = true;
    at.each("transition_key", [&](const JsonAt& one) {
      const std::string& type = one["type"].text();
      if (type != "field" && type != "stack_field" && type != "union_stack_field" &&
          type != "lookahead") {
        one.unsupported("selection by \"" + type + "\"");
      }
      if (type == "lookahead") {
        const JsonAt range = one["value"];
        const std::uint64_t bits =
            range.element(0).whole(0, 1 << 20) + range.element(1).whole(1, 1 << 20);
        state.needs = std::max(state.needs, static_cast<std::uint32_t>((bits + 7) / 8));
      }
      const Value value = expression(one, exact);
      KeyPart part;
      part.value = value.node;
      const Node& node = program_->nodes[value.node];
      if (node.op == Op::variable) one.unsupported("selection by a field of variable length");
      part.bits = node.field.bits;
      part.limbs = node.field.limbs;
      if (node.op == Op::field && part.limbs == 1 && !node.field.is_signed) {
        part.word = node.field.word;
      }
      state.words += part.limbs;
      state.key.push_back(part);
    });
    ahead_ = false;
    if (state.words > max_key_words) at["transition_key"].refuse("a key that is too wide");
    load_transitions(at, state, states);
    program_->states.push_back(std::move(state));
  });
  if (parser.has("init_state")) {
    program_->first_state = find(states, parser["init_state"], "parser state");
  }
}

}  // namespace nagi::p4
