// SPDX-License-Identifier: Apache-2.0
//
// Loads pipelines: tables, conditions, their order, and the entries that the program declares.
#include <algorithm>
#include <tuple>
#include <utility>

#include "program/key.hpp"
#include "program/loader.hpp"

namespace nagi::p4 {

namespace {

constexpr std::uint64_t max_entries = 1 << 24;

MatchKind kind_of(const JsonAt& at) {
  const std::string& name = at.text();
  if (name == "exact") return MatchKind::exact;
  if (name == "lpm") return MatchKind::lpm;
  if (name == "ternary" || name == "optional") return MatchKind::ternary;
  if (name == "range") return MatchKind::range;
  if (name == "valid") return MatchKind::valid;
  at.unsupported("match of kind \"" + name + "\"");
}

}  // namespace

Index Loader::action_by_id(const JsonAt& at) const {
  const auto position = action_ids_.find(at.whole(0, 0x7fffffff));
  if (position == action_ids_.end()) at.refuse("no action has this id");
  return position->second;
}

std::vector<std::uint64_t> Loader::action_data(const JsonAt& at, Index index) const {
  const Action& action = program_->actions[index];
  if (at.size() != action.parameters.size()) {
    at.refuse("action " + action.name + " takes " + std::to_string(action.parameters.size()) +
              " parameters, not " + std::to_string(at.size()));
  }
  std::vector<std::uint64_t> data;
  for (std::size_t i = 0; i < action.parameters.size(); ++i) {
    const Parameter& parameter = action.parameters[i];
    const JsonAt one = at.element(i);
    const bool negative = one.text().rfind('-', 0) == 0;
    auto words = number(one, one.text().substr(negative ? 1 : 0), parameter.bits);
    words.resize(parameter.field.limbs);
    if (negative) {
      // two's complement
      bool carry = true;
      for (std::uint64_t& word : words) {
        word = ~word + (carry ? 1 : 0);
        carry = carry && word == 0;
      }
      words.back() &= parameter.field.top_mask();
    }
    data.insert(data.end(), words.begin(), words.end());
  }
  return data;
}

void Loader::load_profiles(const JsonAt& at) {
  at.each("action_profiles", [&](const JsonAt& one) {
    Profile profile;
    profile.name = one["name"].text();
    profile.size = one.has("max_size") ? one["max_size"].whole(0, 1ULL << 32) : max_entries;
    if (one.has("selector")) {
      const JsonAt selector = one["selector"];
      Calculation calculation;
      calculation.name = profile.name;
      calculation.function = hash_function(selector["algo"].text());
      if (calculation.function == nullptr) {
        selector["algo"].unsupported("hash algorithm \"" + selector["algo"].text() + "\"");
      }
      load_inputs(selector["input"], calculation);
      profile.selector = static_cast<Index>(program_->calculations.size());
      program_->calculations.push_back(std::move(calculation));
    }
    name(profiles_, one, static_cast<Index>(program_->profiles.size()), "action profile");
    program_->profiles.push_back(std::move(profile));
  });
}

void Loader::load_key(const JsonAt& at, Table& table) {
  std::uint32_t free = 0;  // free bits of the last word
  std::size_t prefixes = 0;
  bool masked = false;
  std::vector<std::pair<std::size_t, std::vector<std::uint64_t>>> masks;
  at.each("key", [&](const JsonAt& one) {
    KeyField field;
    field.match = kind_of(one["match_type"]);
    const JsonAt target = one["target"];
    if (field.match == MatchKind::valid) {
      const Header& header = program_->headers[find(headers_, target, "header")];
      field.name = header.name;
      field.field.word = header.base + valid_word;
      field.field.bits = 1;
    } else if (target.is_object()) {
      const Value element = value(target, exact);
      const Node& node = program_->nodes[element.node];
      if (node.op != Op::access) target.unsupported("key that is calculated");
      field.value = element.node;
      field.field.bits = node.field.bits;
      field.field.limbs = node.field.limbs;
      field.name = one["name"].text();
    } else {
      field.field = this->field(target);
      if (field.field.is_variable) target.unsupported("match on a field of variable length");
      field.name = target.element(0).text() + "." + target.element(1).text();
    }
    if (one.has("name")) field.name = one["name"].text();
    if (field.match == MatchKind::lpm && ++prefixes > 1) one.refuse("a second lpm field");
    if (field.match == MatchKind::range && table.kind != p4::Kind::range) {
      one.refuse("a range in a table of another match type");
    }
    if (field.match == MatchKind::ternary && table.kind != p4::Kind::ternary &&
        table.kind != p4::Kind::range) {
      one.refuse("a ternary match in a table of another match type");
    }
    if (field.match == MatchKind::lpm && table.kind == p4::Kind::exact) {
      one.refuse("an lpm match in a table of another match type");
    }
    const std::uint32_t bits = field.field.bits;
    if (bits <= free) {
      field.word = table.words - 1;
      field.shift = 64 - free;
      free -= bits;
    } else {
      field.word = table.words;
      table.words += field.field.limbs;
      free = field.field.limbs == 1 ? 64 - bits : 0;
    }
    if (table.words > max_key_words) at["key"].unsupported("key of more than 4,096 bits");
    std::vector<std::uint64_t> mask = KeyBuilder::ones(bits);
    if (one.has("mask")) {
      mask = number(one["mask"], (bits + 7) / 8 * 8);
      masked = true;
    }
    masks.emplace_back(table.key.size(), std::move(mask));
    table.key.push_back(std::move(field));
  });
  if (!masked) return;
  table.key_mask.assign(table.words, 0);
  for (const auto& [index, mask] : masks) {
    const KeyField& field = table.key[index];
    for (std::uint32_t i = 0; i < field.field.limbs; ++i) {
      table.key_mask[field.word + i] |= mask[i] << field.shift;
    }
  }
}

void Loader::load_table(const JsonAt& at) {
  Table table;
  table.name = at["name"].text();
  const MatchKind kind = kind_of(at["match_type"]);
  if (kind == MatchKind::valid) at["match_type"].refuse("not a table's match type");
  table.kind = static_cast<p4::Kind>(kind);
  load_key(at, table);
  table.is_constant = at.has("entries");
  table.size = table.is_constant ? at["entries"].size() : at["max_size"].whole(0, 1ULL << 32);
  table.size = std::min(table.size, max_entries);
  at["action_ids"].each([&](const JsonAt& one) { table.actions.push_back(action_by_id(one)); });
  const auto same = [&](Index a, Index b) {
    return program_->actions[a].name == program_->actions[b].name;
  };
  const std::string& type = at["type"].text();
  if (type == "indirect" || type == "indirect_ws") {
    table.profile = find(profiles_, at["action_profile"], "action profile");
    table.with_groups = type == "indirect_ws";
    Profile& profile = program_->profiles[table.profile];
    if (table.with_groups && profile.selector == none) {
      at["action_profile"].refuse("an action profile without a selector");
    }
    for (const Index action : table.actions) {
      if (std::none_of(profile.actions.begin(), profile.actions.end(),
                       [&](Index other) { return same(other, action); })) {
        profile.actions.push_back(action);
      }
    }
  } else if (type == "simple") {
    for (const Index action : table.actions) {
      table.data_words = std::max(table.data_words, program_->actions[action].words);
    }
  } else {
    at["type"].unsupported("table of type \"" + type + "\"");
  }
  const auto index = static_cast<Index>(program_->tables.size());
  table.with_counters = at.flag("with_counters", false);
  table.with_timeouts = at.flag("support_timeout", false);
  if (at.has("direct_meters")) {
    table.meter = find(meters_, at["direct_meters"], "meter");
    MeterArray& meter = program_->meters[table.meter];
    if (!meter.is_direct) at["direct_meters"].refuse("not a direct meter");
    if (meter.table != none) at["direct_meters"].refuse("the meter of another table");
    meter.table = index;
  }
  for (const Index action : table.actions) notice_digest(at, action);
  name(tables_, at, index, "table");
  program_->tables.push_back(std::move(table));
}

/// Add a notice if an action calls digest() in egress, where it has no effect, as in simple_switch.
void Loader::notice_digest(const JsonAt& at, Index index) {
  const Action& action = program_->actions[index];
  if (!in_egress_ || std::none_of(action.steps.begin(), action.steps.end(),
                                  [](const Step& step) { return step.code == Do::digest; })) {
    return;
  }
  const std::string line = at.source();
  program_->notices.push_back((line.empty() ? "" : line + ": ") + "digest() in egress (action " +
                              action.name +
                              ") is never sent; call it in ingress, for a recirculated clone");
}

void Loader::load_next(const JsonAt& at, Table& table, const Names& nodes) const {
  const auto node = [&](const JsonAt& one) {
    return one.is_null() ? none : find(nodes, one, "table or condition");
  };
  const JsonAt next = at["next_tables"];
  if (!next.is_object()) next.refuse("not an object");
  const auto& all = next.json();
  if (all.contains("__HIT__") || all.contains("__MISS__")) {
    table.by_hit = true;
    if (all.contains("__HIT__")) table.hit_next = node(next["__HIT__"]);
    if (all.contains("__MISS__")) table.miss_next = node(next["__MISS__"]);
  } else {
    for (const Index action : table.actions) {
      table.next.push_back(node(next[program_->actions[action].name.c_str()]));
    }
  }
  if (at.has("base_default_next")) table.base_next = node(at["base_default_next"]);
}

void Loader::load_default(const JsonAt& at, Table& table) {
  if (!at.has("default_entry")) return;
  const JsonAt entry = at["default_entry"];
  table.default_action = action_by_id(entry["action_id"]);
  if (std::find(table.actions.begin(), table.actions.end(), table.default_action) ==
      table.actions.end()) {
    entry["action_id"].refuse("not an action of the table");
  }
  table.default_data = action_data(entry["action_data"], table.default_action);
  table.default_action_is_constant = entry.flag("action_const", false);
  table.default_is_constant = entry.flag("action_entry_const", false);
  table.is_hidden = table.key.empty() && table.default_is_constant;
}

void Loader::load_entries(const JsonAt& at, Index index) {
  const Table& table = program_->tables[index];
  TableState& state = program_->table_states[index];
  if (!table.is_constant) return;
  if (table.profile != none) at["entries"].unsupported("entries of a table with an action profile");
  at["entries"].each([&](const JsonAt& one) {
    const JsonAt keys = one["match_key"];
    if (keys.size() != table.key.size()) {
      keys.refuse("the table has " + std::to_string(table.key.size()) + " key fields");
    }
    KeyBuilder builder(table);
    for (std::size_t i = 0; i < table.key.size(); ++i) {
      const JsonAt key = keys.element(i);
      const std::uint32_t bits = table.key[i].field.bits;
      if (kind_of(key["match_type"]) != table.key[i].match) {
        key["match_type"].refuse("another kind of match than the table's");
      }
      switch (table.key[i].match) {
        case MatchKind::exact:
          builder.exact(number(key["key"], bits));
          break;
        case MatchKind::valid:
          builder.exact({key["key"].flag() ? 1ULL : 0ULL});
          break;
        case MatchKind::lpm:
          builder.prefix(number(key["key"], bits),
                         static_cast<std::uint32_t>(key["prefix_length"].whole(0, bits)));
          break;
        case MatchKind::ternary:
          builder.ternary(number(key["key"], bits), number(key["mask"], bits));
          break;
        case MatchKind::range:
          builder.range(number(key["start"], bits), number(key["end"], bits));
          break;
      }
    }
    const bool ranked = table.kind == p4::Kind::ternary || table.kind == p4::Kind::range;
    const auto priority =
        one.has("priority")
            ? static_cast<std::int32_t>(one["priority"].integer(INT32_MIN, INT32_MAX))
            : 0;
    Key key = builder.finish(ranked ? priority : 0);
    if (state.find_same(key) != none) one.refuse("the entry is there already");
    const JsonAt entry = one["action_entry"];
    const Index action = action_by_id(entry["action_id"]);
    const auto position = std::find(table.actions.begin(), table.actions.end(), action);
    if (position == table.actions.end()) entry["action_id"].refuse("not an action of the table");
    const auto choice = static_cast<Index>(position - table.actions.begin());
    state.add(std::move(key), {Result::Kind::action, action, choice},
              action_data(entry["action_data"], action));
  });
}

void Loader::load_flow(const JsonAt& at, Pipeline& pipeline) {
  Names nodes;
  const auto index = [&] { return static_cast<Index>(nodes.size()); };
  const auto tables = [&](const auto& visit) {
    at.each("tables", [&](const JsonAt& one) { visit(one); });
  };
  tables([&](const JsonAt& one) { name(nodes, one, index(), "table or condition"); });
  at.each("conditionals",
          [&](const JsonAt& one) { name(nodes, one, index(), "table or condition"); });
  at.each("action_calls",
          [&](const JsonAt& one) { name(nodes, one, index(), "table or condition"); });
  const auto next = [&](const JsonAt& one, const char* key) {
    return one.has(key) ? find(nodes, one[key], "table or condition") : none;
  };
  tables([&](const JsonAt& one) {
    const Index table = find(tables_, one["name"], "table");
    load_next(one, program_->tables[table], nodes);
    pipeline.nodes.push_back({FlowNode::Kind::table, table, none, none, 0});
  });
  at.each("conditionals", [&](const JsonAt& one) {
    pipeline.nodes.push_back({FlowNode::Kind::condition, truth(one["expression"]).node,
                              next(one, "true_next"), next(one, "false_next"), 0});
    shorten(pipeline.nodes.back());
  });
  at.each("action_calls", [&](const JsonAt& one) {
    const Index action = action_by_id(one["action_id"]);
    if (!program_->actions[action].parameters.empty()) one.refuse("an action with parameters");
    notice_digest(one, action);
    pipeline.nodes.push_back({FlowNode::Kind::action, action, next(one, "next_node"), none, 0});
  });
  pipeline.first = next(at, "init_table");
  refuse_cycles(at, pipeline);
}

void Loader::refuse_cycles(const JsonAt& at, const Pipeline& pipeline) const {
  enum class Visit : std::uint8_t { no, open, done };
  std::vector<Visit> visits(pipeline.nodes.size(), Visit::no);
  const auto after = [&](Index index) {
    const FlowNode& node = pipeline.nodes[index];
    if (node.kind != FlowNode::Kind::table) return std::vector<Index>{node.yes, node.no};
    const Table& table = program_->tables[node.index];
    std::vector<Index> all = table.next;
    all.insert(all.end(), {table.hit_next, table.miss_next, table.base_next});
    return all;
  };
  std::vector<std::pair<Index, std::vector<Index>>> path;
  for (Index start = 0; start < visits.size(); ++start) {
    if (visits[start] != Visit::no) continue;
    visits[start] = Visit::open;
    path.emplace_back(start, after(start));
    while (!path.empty()) {
      auto& [node, rest] = path.back();
      if (rest.empty()) {
        visits[node] = Visit::done;
        path.pop_back();
        continue;
      }
      const Index next = rest.back();
      rest.pop_back();
      if (next == none || visits[next] == Visit::done) continue;
      if (visits[next] == Visit::open)
        at.refuse("tables and conditions that follow one another in a circle");
      visits[next] = Visit::open;
      path.emplace_back(next, after(next));
    }
  }
}

/// Replace a condition by a node of kind `equal` if it only compares a word of the packet with a
/// constant.
void Loader::shorten(FlowNode& node) const {
  const auto& nodes = program_->nodes;
  const auto is_field = [&](Index index) { return is_word(index) && nodes[index].op == Op::field; };
  const auto is_constant = [&](Index index) {
    return is_word(index) && nodes[index].op == Op::constant;
  };
  while (nodes[node.index].op == Op::negate) {
    node.index = nodes[node.index].b;
    std::swap(node.yes, node.no);
  }
  const Node& condition = nodes[node.index];
  if (condition.op == Op::is_valid && condition.is_plain) {
    node.kind = FlowNode::Kind::equal;
    node.index = condition.field.word;
    node.value = 1;
  } else if (condition.op == Op::value_to_bool && is_field(condition.b)) {
    node.kind = FlowNode::Kind::equal;
    node.index = nodes[condition.b].field.word;
    node.value = 0;
    std::swap(node.yes, node.no);
  } else if ((condition.op == Op::is_equal || condition.op == Op::is_different) &&
             condition.is_plain && is_field(condition.a) && is_constant(condition.b)) {
    if (condition.op == Op::is_different) std::swap(node.yes, node.no);
    node.kind = FlowNode::Kind::equal;
    node.index = nodes[condition.a].field.word;
    node.value = nodes[condition.b].value;
  }
}

/// Replace hidden tables by their action. The compiler makes a hidden table of each statement. It
/// has no key, and controllers cannot change it, so it always runs the same action.
void Loader::unwrap_actions(Pipeline& pipeline) const {
  for (FlowNode& node : pipeline.nodes) {
    if (node.kind != FlowNode::Kind::table) continue;
    const Table& table = program_->tables[node.index];
    if (!table.is_hidden || table.profile != none || !table.default_data.empty()) continue;
    const Index choice = program_->table_states[node.index].miss.choice;
    Index next = table.base_next;
    if (table.by_hit) {
      next = table.miss_next;
    } else if (choice < table.next.size()) {
      next = table.next[choice];
    }
    node = {FlowNode::Kind::action, table.default_action, next, none, 0};
  }
}

void Loader::load_pipelines() {
  const JsonAt pipelines = root_["pipelines"];
  pipelines.each([&](const JsonAt& at) { load_profiles(at); });
  bool ingress = false;
  bool egress = false;
  pipelines.each([&](const JsonAt& at) {
    const std::string& called = at["name"].text();
    in_egress_ = called == "egress";
    if (called != "ingress" && called != "egress") at.unsupported("pipeline \"" + called + "\"");
    if (std::exchange(in_egress_ ? egress : ingress, true)) at.refuse("a second " + called);
    at.each("tables", [&](const JsonAt& one) { load_table(one); });
    load_flow(at, in_egress_ ? program_->egress : program_->ingress);
  });
  if (!ingress || !egress) pipelines.refuse("ingress or egress is missing");
  root_.each("counter_arrays", [&](const JsonAt& at) {
    CounterArray& array = program_->counters[find(counters_, at["name"], "counter")];
    if (!array.is_direct) return;
    array.table = find(tables_, at["binding"], "table");
    program_->tables[array.table].with_counters = true;
    program_->tables[array.table].counter_name = array.name;
  });
  for (Table& table : program_->tables) {
    if (table.profile == none) continue;
    for (const Index action : program_->profiles[table.profile].actions) {
      const auto position =
          std::find_if(table.actions.begin(), table.actions.end(), [&](Index other) {
            return program_->actions[other].name == program_->actions[action].name;
          });
      table.profile_choices.push_back(position == table.actions.end()
                                          ? none
                                          : static_cast<Index>(position - table.actions.begin()));
    }
  }
  program_->table_states.reserve(program_->tables.size());
  for (const Table& table : program_->tables) program_->table_states.emplace_back(table);
  pipelines.each([&](const JsonAt& at) {
    at.each("tables", [&](const JsonAt& one) {
      const Index index = find(tables_, one["name"], "table");
      Table& table = program_->tables[index];
      load_default(one, table);
      TableState& state = program_->table_states[index];
      std::tie(state.miss, state.miss_data) = initial_miss(table);
      load_entries(one, index);
    });
  });
  for (Pipeline* pipeline : {&program_->ingress, &program_->egress}) unwrap_actions(*pipeline);
  std::vector<std::pair<std::uint64_t, Index>> ids(action_ids_.begin(), action_ids_.end());
  std::sort(ids.begin(), ids.end());
  program_->action_ids = std::move(ids);
}

}  // namespace nagi::p4
