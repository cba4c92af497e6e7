// SPDX-License-Identifier: Apache-2.0
//
// Members and groups of action profiles.
#include <algorithm>

#include "program/control.hpp"
#include "program/operation.hpp"

namespace nagi::p4 {

namespace {

constexpr std::size_t max_groups = 1 << 16;

}  // namespace

std::uint32_t Control::member_add(const std::string& name, const ActionCall& call) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const Profile& profile = state_.program->profiles[index];
  ProfileState& state = operation.change(state_.profiles[index]);
  const Index choice = find_action(*state_.program, profile.actions, name, call.action);
  const Index action = profile.actions[choice];
  Words data = data_of(state_.program->actions[action], name, call.data);
  auto free = std::find_if(state.members.begin(), state.members.end(),
                           [](const auto& member) { return !member.used; });
  if (free == state.members.end() && state.members.size() >= profile.size) {
    refuse(name, "it is full: " + std::to_string(profile.size) + " members", "delete some",
           resource_exhausted);
  }
  if (free == state.members.end()) free = state.members.emplace(free);
  *free = {true, choice, action, std::move(data), 0};
  return static_cast<std::uint32_t>(free - state.members.begin());
}

void Control::member_modify(const std::string& name, std::uint32_t number, const ActionCall& call) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  const Profile& profile = state_.program->profiles[index];
  operation.member(index, number);
  const Index choice = find_action(*state_.program, profile.actions, name, call.action);
  const Index action = profile.actions[choice];
  Words data = data_of(state_.program->actions[action], name, call.data);
  ProfileState& state = operation.change(state_.profiles[index]);
  state.members[number].choice = choice;
  state.members[number].action = action;
  state.members[number].data = std::move(data);
}

void Control::member_delete(const std::string& name, std::uint32_t number) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.member(index, number);
  ProfileState& state = operation.change(state_.profiles[index]);
  if (state.members[number].references != 0) {
    refuse(name, "member " + std::to_string(number) + " is in use",
           "delete the entries and groups that refer to it first", failed_precondition);
  }
  state.members[number] = {};
}

std::uint32_t Control::group_create(const std::string& name) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  if (state_.program->profiles[index].selector == none) {
    refuse(name, "it has no groups", "use its members");
  }
  ProfileState& state = operation.change(state_.profiles[index]);
  auto free = std::find_if(state.groups.begin(), state.groups.end(),
                           [](const auto& group) { return !group.used; });
  if (free == state.groups.end() && state.groups.size() >= max_groups) {
    refuse(name, "it has " + std::to_string(max_groups) + " groups", "delete some",
           resource_exhausted);
  }
  if (free == state.groups.end()) free = state.groups.emplace(free);
  *free = {true, {}, 0};
  return static_cast<std::uint32_t>(free - state.groups.begin());
}

void Control::group_add_member(const std::string& name, std::uint32_t group, std::uint32_t member) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, group);
  operation.member(index, member);
  ProfileState& state = operation.change(state_.profiles[index]);
  const auto& members = state.groups[group].members;
  const auto at = std::lower_bound(members.begin(), members.end(), member);
  if (at != members.end() && *at == member) {
    refuse(name, "member " + std::to_string(member) + " is in the group already", "add another",
           already_exists);
  }
  const auto offset = at - members.begin();
  auto& changed = state.groups[group].members;
  changed.insert(changed.begin() + offset, member);
  ++state.members[member].references;
}

void Control::group_remove_member(const std::string& name, std::uint32_t group,
                                  std::uint32_t member) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, group);
  ProfileState& state = operation.change(state_.profiles[index]);
  const auto& members = state.groups[group].members;
  const auto at = std::find(members.begin(), members.end(), member);
  if (at == members.end()) {
    refuse(name, "member " + std::to_string(member) + " is not in the group",
           "give a member of the group", not_found);
  }
  const auto offset = at - members.begin();
  auto& changed = state.groups[group].members;
  changed.erase(changed.begin() + offset);
  --state.members[member].references;
}

void Control::group_delete(const std::string& name, std::uint32_t number) {
  Operation operation(state_);
  const Index index = operation.profile(name);
  operation.group(index, number);
  ProfileState& state = operation.change(state_.profiles[index]);
  if (state.groups[number].references != 0) {
    refuse(name, "group " + std::to_string(number) + " is in use",
           "delete the entries that refer to it first", failed_precondition);
  }
  for (const std::uint32_t member : state.groups[number].members) {
    --state.members[member].references;
  }
  state.groups[number] = {};
}
}  // namespace nagi::p4
