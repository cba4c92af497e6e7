// SPDX-License-Identifier: Apache-2.0
//
// Executes pipelines: tables, conditions and actions.
#include <algorithm>
#include <cstring>

#include "program/state.hpp"

namespace nagi::p4 {

Scope State::scope_of(std::uint64_t* words, const std::uint64_t* data) {
  return {*program, words, data, registers, nullptr, 0, &counts.outside_array};
}

void State::run(const Pipeline& pipeline, Packet& packet) {
  for (Index index = pipeline.first; index != none && !requests_.exit && !requests_.failed;) {
    const FlowNode& node = pipeline.nodes[index];
    switch (node.kind) {
      case FlowNode::Kind::table:
        index = apply(node.index, packet);
        break;
      case FlowNode::Kind::condition:
        index = truth_of(scope_of(packet.words_.get(), nullptr), node.index) ? node.yes : node.no;
        break;
      case FlowNode::Kind::equal:
        index = packet.words_[node.index] == node.value ? node.yes : node.no;
        break;
      case FlowNode::Kind::action:
        run_action(node.index, nullptr, packet);
        index = node.yes;
        break;
    }
  }
}

Index State::apply(Index index, Packet& packet) {
  const Table& table = program->tables[index];
  TableState& state = tables[index].live;
  const std::uint64_t* words = packet.words_.get();
  Index entry = none;
  if (state.used() != 0) {
    std::uint64_t key[max_key_words];
    std::fill_n(key, table.words, 0);
    for (const KeyField& field : table.key) {
      if (field.value != none) [[unlikely]] {
        std::uint64_t value[max_field_words];
        words_of(scope_of(packet.words_.get(), nullptr), field.value, value, field.field.limbs);
        value[field.field.limbs - 1] &= field.field.top_mask();
        for (std::uint32_t i = 0; i < field.field.limbs; ++i) {
          key[field.word + i] |= value[i] << field.shift;
        }
      } else if (field.field.limbs == 1) {
        key[field.word] |= words[field.field.word] << field.shift;
      } else {
        std::copy_n(words + field.field.word, field.field.limbs, key + field.word);
      }
    }
    if (!table.key_mask.empty()) {
      for (std::uint32_t i = 0; i < table.words; ++i) key[i] &= table.key_mask[i];
    }
    entry = state.find(key);
  }
  const bool hit = entry != none;
  const Result* result = &state.miss;
  const std::uint64_t* data = state.miss_data.data();
  if (hit) {
    ++state.hits;
    state.hit(entry, now_us_);
    result = &state.result(entry);
    data = state.data(entry);
    if (table.meter != none) {
      const MeterArray& meter = program->meters[table.meter];
      const std::uint64_t amount = meter.bytes ? packet.arrived_ : 1;
      set(packet.words_.get(), meter.result, state.meter(entry).colour(amount, now_us_));
    }
    if (table.with_counters) {
      Count& count = state.count(entry);
      ++count.packets;
      count.bytes += packet.arrived_;
    }
  }
  if (!hit) ++state.misses;
  Index action = result->index;
  Index choice = result->choice;
  if (result->kind != Result::Kind::action) {
    const ProfileState& profile = profiles[table.profile].live;
    std::uint32_t member = result->index;
    if (result->kind == Result::Kind::group) {
      const auto& members = profile.groups[result->index].members;
      if (members.empty()) return table.by_hit ? table.hit_next : table.base_next;
      const Calculation& selector =
          program->calculations[program->profiles[table.profile].selector];
      member = members[calculate(selector, packet) % members.size()];
    }
    action = profile.members[member].action;
    data = profile.members[member].data.data();
    choice = table.profile_choices[profile.members[member].choice];
  }
  Index next = table.base_next;
  if (table.by_hit) {
    next = hit ? table.hit_next : table.miss_next;
  } else if (choice < table.next.size()) {
    next = table.next[choice];
  }
  if (action != none) run_action(action, data, packet);
  return next;
}

void State::run_action(Index index, const std::uint64_t* data, Packet& packet) {
  const Action& action = program->actions[index];
  const Scope scope = scope_of(packet.words_.get(), data);
  for (std::size_t at = 0; at < action.steps.size() && !requests_.failed;) {
    const Step& next = action.steps[at++];
    if (next.code <= Do::set_value) {
      assign(next, scope);
    } else {
      at = step(next, at, scope, packet);
    }
  }
}

void State::assign(const Step& step, const Scope& scope) {
  std::uint64_t* words = scope.words;
  const Field& to = step.to;
  switch (step.code) {
    case Do::set_constant:
      words[to.word] = step.value;
      break;
    case Do::set_field:
      words[to.word] = words[step.from.word] & step.value;
      break;
    case Do::set_parameter:
      words[to.word] = scope.data[step.from.word] & step.value;
      break;
    case Do::set_value:
      words[to.word] = word_of(scope, step.a) & step.value;
      break;
    case Do::set_wide: {
      std::uint64_t value[max_field_words];
      words_of(scope, step.a, value, to.limbs);
      value[to.limbs - 1] &= to.top_mask();
      std::copy_n(value, to.limbs, words + to.word);
      break;
    }
    case Do::set_dynamic: {
      std::uint64_t value[max_field_words];
      words_of(scope, step.a, value, to.limbs);
      value[to.limbs - 1] &= to.top_mask();
      const Index header = header_of(scope, step.target);
      if (header == none) return;
      const Index base = program->headers[header].base;
      std::copy_n(value, to.limbs, words + base + to.word);
      words[base + written_word] = 1;
      return;
    }
    case Do::set_variable:
      std::memcpy(words + to.word + 1, words + step.from.word + 1, words[step.from.word] / 8);
      words[to.word] = words[step.from.word];
      break;
    default:
      return;
  }
  words[to.written] = 1;
}

void State::copy_header(std::uint64_t* words, Index to, Index from) {
  if (to == none || from == none || to == from) return;
  const Header& target = program->headers[to];
  const std::uint64_t* source = words + program->headers[from].base;
  std::uint64_t* into = words + target.base;
  if (source[valid_word] == 0) {
    if (!target.is_metadata) into[valid_word] = 0;
    return;
  }
  const std::uint32_t count = program->types[target.type].words - first_field_word;
  std::memcpy(into + first_field_word, source + first_field_word, 8 * count);
  make_valid(words, target);
  into[written_word] = 1;
}

void State::copy_headers(std::uint64_t* words, const std::vector<Index>& to,
                         const std::vector<Index>& from) {
  for (std::size_t i = 0; i < to.size(); ++i) copy_header(words, to[i], from[i]);
}

void State::push(std::uint64_t* words, const Stack& stack, std::uint64_t elements) {
  const std::size_t size = stack.headers.size();
  elements = std::min<std::uint64_t>(elements, stack.size());
  const std::size_t count = elements * stack.width;
  const auto header = [&](std::size_t i) -> const Header& {
    return program->headers[stack.headers[i]];
  };
  words[stack.next] = std::min<std::uint64_t>(stack.size(), words[stack.next] + elements);
  for (std::size_t i = size; i-- > count && count > 0;) {
    std::memcpy(words + header(i).base, words + header(i - count).base,
                8 * program->types[header(i).type].words);
  }
  for (std::size_t i = 0; i < count; ++i) words[header(i).base + valid_word] = 0;
}

void State::pop(std::uint64_t* words, const Stack& stack, std::uint64_t elements) {
  const std::size_t size = stack.headers.size();
  elements = std::min<std::uint64_t>(elements, stack.size());
  const std::size_t count = elements * stack.width;
  const auto header = [&](std::size_t i) -> const Header& {
    return program->headers[stack.headers[i]];
  };
  words[stack.next] -= std::min(words[stack.next], elements);
  for (std::size_t i = 0; i + count < size && count > 0; ++i) {
    std::memcpy(words + header(i).base, words + header(i + count).base,
                8 * program->types[header(i).type].words);
  }
  for (std::size_t i = size - count; i < size; ++i) words[header(i).base + valid_word] = 0;
}

std::uint64_t State::draw(std::uint64_t low, std::uint64_t high) {
  const std::uint64_t any = random_.draw(draws_++);
  const std::uint64_t span = high - low + 1;  // 0 for the full range
  if (span == 0) return any;
  return low + static_cast<std::uint64_t>(static_cast<unsigned __int128>(any) * span >> 64);
}

void State::log(const LogMessage& message, const Scope& scope) const {
  if (!settings.log) return;
  std::string text = message.pieces[0];
  for (std::size_t i = 0; i < message.values.size(); ++i) {
    text += text_of(scope, message.values[i]) + message.pieces[i + 1];
  }
  settings.log(text);
}

void State::count_loop() {
  constexpr std::uint32_t maximum = 1 << 20;  // over all loops of a pipeline
  if (++requests_.jumps_back < maximum) return;
  requests_.failed = true;
  if (settings.log) settings.log("a loop has too many rounds; the packet is dropped");
}

std::size_t State::step(const Step& step, std::size_t next, const Scope& scope, Packet& packet) {
  std::uint64_t* words = scope.words;
  const auto store = [&](std::uint64_t value) {
    words[step.to.word] = value & step.to.mask();
    for (std::uint32_t i = 1; i < step.to.limbs; ++i) words[step.to.word + i] = 0;
    words[step.to.written] = 1;
  };
  switch (step.code) {
    case Do::set_constant:
    case Do::set_field:
    case Do::set_parameter:
    case Do::set_value:
    case Do::set_wide:
    case Do::set_dynamic:
    case Do::set_variable:
      assign(step, scope);
      return next;
    case Do::set_header:
      copy_header(words, header_of(scope, step.a), header_of(scope, step.b));
      return next;
    case Do::set_stack: {
      const Stack& to = program->stacks[step.a];
      const Stack& from = program->stacks[step.b];
      words[to.next] = words[from.next];
      copy_headers(words, to.headers, from.headers);
      return next;
    }
    case Do::set_union:
      copy_headers(words, program->unions[step.a].headers, program->unions[step.b].headers);
      return next;
    case Do::push:
      push(words, program->stacks[step.a], word_of(scope, step.b));
      return next;
    case Do::pop:
      pop(words, program->stacks[step.a], word_of(scope, step.b));
      return next;
    case Do::jump:
      if (step.flag) count_loop();
      return step.value;
    case Do::jump_if_zero:
      if (truth_of(scope, step.a)) return next;
      if (step.flag) count_loop();
      return step.value;
    case Do::exit:
      requests_.exit = true;
      return next;
    case Do::assertion:
      if (truth_of(scope, step.a)) return next;
      requests_.failed = true;
      if (settings.log) settings.log(program->assertion_sources[step.b]);
      return next;
    case Do::log:
      log(program->messages[step.a], scope);
      return next;
    case Do::add_header: {
      const Index header = header_of(scope, step.a);
      if (header == none) return next;
      std::uint64_t* at = words + program->headers[header].base;
      if (at[valid_word] != 0) return next;
      const std::uint32_t count = program->types[program->headers[header].type].words;
      std::fill_n(at, count, 0);
      make_valid(words, program->headers[header]);
      at[written_word] = 1;
      if (step.flag) packet.length_ += static_cast<std::uint32_t>(bytes_of(words, header));
      return next;
    }
    case Do::remove_header: {
      const Index header = header_of(scope, step.a);
      if (header == none) return next;
      std::uint64_t* at = words + program->headers[header].base;
      if (at[valid_word] == 0 || program->headers[header].is_metadata) return next;
      packet.length_ -= static_cast<std::uint32_t>(bytes_of(words, header));
      at[valid_word] = 0;
      return next;
    }
    case Do::mark_to_drop:
      store(settings.drop_port);
      if (step.from.bits != 0) words[step.from.word] = 0;
      return next;
    case Do::clone:
      requests_.clone_session = static_cast<std::uint32_t>(word_of(scope, step.a) & 0x7fff);
      requests_.clone_list = word_of(scope, step.b) & 0xffff;
      return next;
    case Do::resubmit:
      requests_.resubmit_list = word_of(scope, step.a) & 0xffff;
      return next;
    case Do::recirculate:
      packet.recirculate_ = word_of(scope, step.a) & 0xffff;
      return next;
    case Do::digest:
      requests_.digest = word_of(scope, step.a) & 0xffff;
      return next;
    case Do::register_read: {
      const RegisterArray& array = program->registers[step.b];
      const std::uint64_t index = word_of(scope, step.a) & 0xffffffff;
      if (index >= array.size) {
        ++counts.outside_array;
        return next;
      }
      if (array.cell.limbs == 1 && step.to.limbs == 1 && !array.cell.is_signed) {
        store(registers[step.b].live[index]);
        return next;
      }
      const std::uint64_t* cell = registers[step.b].live.data() + index * array.cell.limbs;
      for (std::uint32_t i = 0; i < step.to.limbs; ++i) {
        words[step.to.word + i] = i < array.cell.limbs ? cell[i] : 0;
      }
      words[step.to.word + step.to.limbs - 1] &= step.to.top_mask();
      words[step.to.written] = 1;
      return next;
    }
    case Do::register_write: {
      const RegisterArray& array = program->registers[step.b];
      const std::uint64_t index = word_of(scope, step.a) & 0xffffffff;
      if (index >= array.size) {
        ++counts.outside_array;
        return next;
      }
      if (array.cell.limbs == 1) {
        registers[step.b].live[index] = word_of(scope, step.c) & array.cell.mask();
        return next;
      }
      std::uint64_t value[max_field_words];
      words_of(scope, step.c, value, array.cell.limbs);
      value[array.cell.limbs - 1] &= array.cell.top_mask();
      std::copy_n(value, array.cell.limbs,
                  registers[step.b].live.data() + index * array.cell.limbs);
      return next;
    }
    case Do::count: {
      const std::uint64_t index = word_of(scope, step.a) & 0xffffffff;
      auto& array = counters[step.b].live;
      if (index >= array.size()) {
        ++counts.outside_array;
        return next;
      }
      ++array[index].packets;
      array[index].bytes += packet.arrived_;
      return next;
    }
    case Do::meter: {
      const std::uint64_t index = word_of(scope, step.a) & 0xffffffff;
      auto& array = meters[step.b].live;
      if (index >= array.size()) {
        ++counts.outside_array;
        return next;
      }
      const std::uint64_t amount = program->meters[step.b].bytes ? packet.arrived_ : 1;
      store(array[index].colour(amount, now_us_));
      return next;
    }
    case Do::hash: {
      const std::uint64_t size = word_of(scope, step.c);
      const std::uint64_t value = calculate(program->calculations[step.b], packet);
      store(value % (size == 0 ? 1 : size) + word_of(scope, step.a));
      return next;
    }
    case Do::random: {
      const std::uint64_t low = word_of(scope, step.a);
      const std::uint64_t high = word_of(scope, step.b);
      if (low <= high) store(draw(low, high));
      return next;
    }
    case Do::truncate:
      packet.truncated_ = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(packet.truncated_, word_of(scope, step.a)));
      return next;
    case Do::nothing:
      return next;
  }
  return next;
}

}  // namespace nagi::p4
