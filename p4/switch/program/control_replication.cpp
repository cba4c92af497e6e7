// SPDX-License-Identifier: Apache-2.0
//
// Mirror sessions, multicast groups, and value sets of the parser.
#include <algorithm>

#include "program/control.hpp"
#include "program/operation.hpp"

namespace nagi::p4 {

namespace {

constexpr Port max_ports = 512;
constexpr std::uint32_t max_group = 0xffff;
constexpr std::uint32_t max_session = 0x7fff;
constexpr std::size_t max_copies = 1 << 16;

}  // namespace

void Control::mirror_add(std::uint32_t session, const Mirror& mirror) {
  const std::string where = "mirror session " + std::to_string(session);
  if (session > max_session) {
    refuse(where, "not a session", "give a number up to " + std::to_string(max_session));
  }
  if (!mirror.port && !mirror.group) {
    refuse(where, "it has no destination", "give a port, a multicast group, or both");
  }
  if (mirror.port && *mirror.port >= max_ports) {
    refuse(where, "there is no port " + std::to_string(*mirror.port),
           "ports are numbered up to " + std::to_string(max_ports - 1));
  }
  Operation(state_).change(state_.mirrors)[session] = mirror;
}

void Control::mirror_delete(std::uint32_t session) {
  if (!state_.mirrors.now().contains(session)) {
    refuse("mirror session " + std::to_string(session), "there is no such session",
           "give one that was added", not_found);
  }
  Operation(state_).change(state_.mirrors).erase(session);
}

void Control::multicast_create(std::uint32_t group, const std::vector<Copies>& copies) {
  const std::string where = "multicast group " + std::to_string(group);
  if (group == 0 || group > max_group) {
    refuse(where, "not a group", "give a number from 1 to " + std::to_string(max_group));
  }
  std::size_t count = 0;
  for (const Copies& one : copies) {
    count += one.ports.size();
    if (one.rid > 0xffff) {
      refuse(where, "not a replication id: " + std::to_string(one.rid), "give one up to 65535");
    }
    for (const Port port : one.ports) {
      if (port >= max_ports) {
        refuse(where, "there is no port " + std::to_string(port),
               "ports are numbered up to " + std::to_string(max_ports - 1));
      }
    }
  }
  if (count > max_copies) {
    refuse(where, std::to_string(count) + " copies", "give at most " + std::to_string(max_copies));
  }
  if (state_.groups.now().contains(group)) {
    refuse(where, "it exists already", "delete it first", already_exists);
  }
  Operation(state_).change(state_.groups)[group] = copies;
}

void Control::multicast_delete(std::uint32_t group) {
  if (!state_.groups.now().contains(group)) {
    refuse("multicast group " + std::to_string(group), "there is no such group",
           "give one that was created", not_found);
  }
  Operation(state_).change(state_.groups).erase(group);
}

void Control::value_set_add(const std::string& name, const Bytes& value) {
  Operation operation(state_);
  const Index index = find(state_.program->value_sets, name, "value set");
  const ValueSet& set = state_.program->value_sets[index];
  const Words words = words_for(name, value, set.bits);
  Bytes tidy = bytes_of_words(words.data(), set.bits);
  const auto& values = state_.value_sets[index].now();
  if (std::find(values.begin(), values.end(), tidy) != values.end()) {
    refuse(name, "the value is in the set already", "add another", already_exists);
  }
  if (set.size != 0 && values.size() >= set.size) {
    refuse(name, "it is full: " + std::to_string(set.size) + " values", "clear it",
           resource_exhausted);
  }
  operation.change(state_.value_sets[index]).push_back(tidy);
  // For each parser state that uses the set, convert the value to the layout of the state's key.
  for (std::size_t i = 0; i < state_.program->value_set_uses.size(); ++i) {
    const ValueSetUse& use = state_.program->value_set_uses[i];
    if (use.set != index) continue;
    Words& keys = operation.change(state_.value_set_keys[i]);
    std::size_t at = 8 * tidy.size() - set.bits;
    for (const std::uint32_t bits : use.bits) {
      Words part((bits + 63) / 64);
      read_bits(tidy.data(), at, bits, part.data());
      at += bits;
      keys.insert(keys.end(), part.begin(), part.end());
    }
  }
}

void Control::value_set_clear(const std::string& name) {
  Operation operation(state_);
  const Index index = find(state_.program->value_sets, name, "value set");
  operation.change(state_.value_sets[index]).clear();
  for (std::size_t i = 0; i < state_.program->value_set_uses.size(); ++i) {
    if (state_.program->value_set_uses[i].set != index) continue;
    operation.change(state_.value_set_keys[i]).clear();
  }
}
}  // namespace nagi::p4
