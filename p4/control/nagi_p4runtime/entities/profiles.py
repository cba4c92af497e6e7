# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: members, groups, and action sets of table entries.

A group of a switch contains each member at most once. For a member with weight w in a group, the
server therefore creates w members of the switch with the same action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from nagi_p4runtime import actions
from nagi_p4runtime.entities.weights import decode_max_size, decode_weight, require_size
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.memory import ActionSetGroup, Group, Member, ProfileMemory
from nagi_p4runtime.p4info import Action, Profile, Table, find_by_id
from nagi_p4runtime.plan import DELETE, INSERT, MODIFY, Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

WeightedMember = tuple[int, int]  # the client's id of a member, and its weight
Item = TypeVar("Item")


def require_item(by_id: Mapping[int, Item], id: int, profile: Profile, kind: str) -> Item:
    """Return the member or group that clients know by `id`.

    Args:
        by_id: The members, or the groups, of the action profile, by the clients' ids.
        id: The client's id.
        profile: The action profile, for the error message.
        kind: "member" or "group", for the error message.

    Raises:
        P4Error: There is no such member or group.
    """
    if id not in by_id:
        raise P4Error(Code.NOT_FOUND, f"{profile.name}: there is no {kind} {id}; insert it first")
    return by_id[id]


# Action sets ("one-shot" programming in the specification): the server creates members and a group
# that clients do not see.


def add_action_set(
    context: UpdateContext,
    plan: Plan,
    table: Table,
    profile: Profile,
    action_set: p4r.ActionProfileActionSet,
) -> int:
    """Plan to create a group, with its members, for the action set of an entry.

    Returns:
        The switch's number of the group.

    Raises:
        P4Error: The action set is wrong, or the action profile has no selector.
    """
    if not profile.has_selector:
        raise InvalidArgument(
            f"{profile.name}: this action profile has no selector, so it does not support action "
            "sets"
        )
    if action_set.action_selection_mode not in (
        p4r.ActionProfileActionSet.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR,
        p4r.ActionProfileActionSet.HASH,
    ):
        raise P4Error(
            Code.UNIMPLEMENTED, f"{profile.name}: v1model selects by hash; leave the mode out"
        )
    memory = context.memory.get_profile(profile.id)
    weights = [
        decode_weight(message, profile, f"an action of {table.name}")
        for message in action_set.action_profile_actions
    ]
    require_size(sum(weights), profile, profile.max_group_size)
    members = []
    for message, weight in zip(action_set.action_profile_actions, weights, strict=True):
        action = actions.to_operation(message.action, table.entry_actions, context.info, table.name)
        for _ in range(weight):
            members.append(_add_switch_member(context, plan, profile, action, None))
    group = context.memory.allocate(memory.group_numbers, None)
    plan.add("group_create", profile=profile.name)
    plan.expect("group", group)
    for member in members:
        plan.add("group_add_member", profile=profile.name, group=group, member=member)
    stored = p4r.ActionProfileActionSet()
    stored.CopyFrom(action_set)
    context.memory.put(memory.action_set_groups, group, ActionSetGroup(stored, tuple(members)))
    return group


def remove_action_set(context: UpdateContext, plan: Plan, table: Table, group: int) -> None:
    """Plan to delete the group for the action set of an entry, with the members of the group.

    Args:
        context: The context of the Write.
        plan: The plan to extend.
        table: The table of the entry.
        group: The switch's number of the group.
    """
    profile = table.profile
    assert profile is not None
    memory = context.memory.get_profile(profile.id)
    plan.add("group_delete", profile=profile.name, group=group)
    context.memory.free(memory.group_numbers, group)
    for member in memory.action_set_groups[group].members:
        plan.add("member_delete", profile=profile.name, member=member)
        context.memory.free(memory.member_numbers, member)
    context.memory.drop(memory.action_set_groups, group)


# Members.


def plan_member(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.ActionProfileMember
) -> None:
    """Plan to insert, modify or delete a member."""
    profile = find_by_id(context.info.profiles, message.action_profile_id, "action profile")
    memory = context.memory.get_profile(profile.id)
    id = message.member_id
    if id == 0:
        raise InvalidArgument(f"{profile.name}: a member without member_id; give one from 1 on")
    if update_type == INSERT and id in memory.members:
        raise P4Error(Code.ALREADY_EXISTS, f"{profile.name}: there is a member {id}; MODIFY it")
    if update_type == DELETE:
        _delete_member(context, plan, profile, id)
        return
    if update_type == MODIFY:
        require_item(memory.members, id, profile, "member")
    if not message.HasField("action"):
        raise InvalidArgument(f"{profile.name}: member {id} without an action; give one")
    if memory.action_set_groups:
        raise InvalidArgument(
            f"{profile.name}: entries have action sets, so there can be no members; use either "
            "members or action sets"
        )
    action = actions.to_operation(
        message.action, _find_allowed_actions(context, profile), context.info, profile.name
    )
    if update_type == INSERT:
        number = _add_switch_member(context, plan, profile, action, id)
        context.memory.put(memory.members, id, Member((number,)))
        return
    for number in memory.members[id].numbers:
        plan.add("member_modify", profile=profile.name, member=number, **action)
        context.member_actions[profile.id, number] = action


def _delete_member(context: UpdateContext, plan: Plan, profile: Profile, id: int) -> None:
    """Plan to delete the switch's members for the client's member `id`.

    Raises:
        P4Error: There is no such member, or it is in a group.
    """
    memory = context.memory.get_profile(profile.id)
    member = require_item(memory.members, id, profile, "member")
    for group_id, group in memory.groups.items():
        if any(member_id == id for member_id, _ in group.weights):
            raise P4Error(
                Code.FAILED_PRECONDITION,
                f"{profile.name}: member {id} is in group {group_id}; remove it from there first",
            )
    for number in member.numbers:
        plan.add("member_delete", profile=profile.name, member=number)
        context.memory.free(memory.member_numbers, number)
    context.memory.drop(memory.members, id)


def _find_allowed_actions(context: UpdateContext, profile: Profile) -> Mapping[int, Action]:
    """Return the actions that members of an action profile may have, by id.

    Raises:
        P4Error: No table uses the action profile.
    """
    for table_id in profile.table_ids:
        if table_id in context.info.tables:
            return context.info.tables[table_id].entry_actions
    raise InvalidArgument(f"{profile.name}: no table of the P4Info uses this action profile")


def _add_switch_member(
    context: UpdateContext,
    plan: Plan,
    profile: Profile,
    action: Mapping[str, Any],
    id: int | None,
) -> int:
    """Plan to add a member to the switch, and return the number that the switch will give it.

    Args:
        context: The context of the Write.
        plan: The plan to extend.
        profile: The action profile.
        action: "action" and "data" of the member.
        id: The client's id of the new member; None if clients must not see the member.
    """
    number = context.memory.allocate(context.memory.get_profile(profile.id).member_numbers, id)
    plan.add("member_add", profile=profile.name, **action)
    plan.expect("member", number)
    context.member_actions[profile.id, number] = action
    return number


# Groups.


def plan_group(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.ActionProfileGroup
) -> None:
    """Plan to insert, modify or delete a group."""
    profile = find_by_id(context.info.profiles, message.action_profile_id, "action profile")
    if not profile.has_selector:
        raise InvalidArgument(
            f"{profile.name}: this action profile has no selector, so it has no groups"
        )
    memory = context.memory.get_profile(profile.id)
    id = message.group_id
    if id == 0:
        raise InvalidArgument(f"{profile.name}: a group without group_id; give one from 1 on")
    if update_type == DELETE:
        old = require_item(memory.groups, id, profile, "group")
        plan.add("group_delete", profile=profile.name, group=old.number)
        context.memory.free(memory.group_numbers, old.number)
        context.memory.drop(memory.groups, id)
        _delete_unneeded_members(context, plan, profile, old.weights)
        return
    if memory.action_set_groups:
        raise InvalidArgument(
            f"{profile.name}: entries have action sets, so there can be no groups; use either "
            "groups or action sets"
        )
    weights = _decode_group_weights(profile, memory, message)
    if update_type == INSERT:
        if id in memory.groups:
            raise P4Error(Code.ALREADY_EXISTS, f"{profile.name}: there is a group {id}; MODIFY it")
        limit = decode_max_size(message, profile)
        require_size(sum(weight for _, weight in weights), profile, limit)
        number = context.memory.allocate(memory.group_numbers, id)
        plan.add("group_create", profile=profile.name)
        plan.expect("group", number)
        _change_group(context, plan, profile, id, Group(number, message.max_size, ()), weights)
        return
    old = require_item(memory.groups, id, profile, "group")
    if message.max_size != old.max_size:
        raise InvalidArgument(
            f"{profile.name}: group {id} has a max_size of {old.max_size}, which MODIFY cannot "
            f"change to {message.max_size}"
        )
    require_size(sum(weight for _, weight in weights), profile, decode_max_size(message, profile))
    _change_group(context, plan, profile, id, old, weights)


def _decode_group_weights(
    profile: Profile, memory: ProfileMemory, message: p4r.ActionProfileGroup
) -> tuple[WeightedMember, ...]:
    """Return the members and weights of a group in a message.

    Raises:
        P4Error: A member does not exist, is listed twice, or has a wrong weight.
    """
    weights: dict[int, int] = {}
    for member in message.members:
        id = member.member_id
        require_item(memory.members, id, profile, "member")
        if id in weights:
            raise InvalidArgument(
                f"{profile.name}: member {id} is twice in group {message.group_id}; list it once, "
                "with a weight"
            )
        weights[id] = decode_weight(member, profile, f"member {id}")
    return tuple(weights.items())


def _change_group(
    context: UpdateContext,
    plan: Plan,
    profile: Profile,
    id: int,
    old: Group,
    weights: Sequence[WeightedMember],
) -> None:
    """Plan to replace the members and weights of a group.

    New members are added before old ones are removed, so that the group is not empty in between.

    Args:
        context: The context of the Write.
        plan: The plan to extend.
        profile: The action selector.
        id: The client's id of the group.
        old: The group before the change.
        weights: The new members of the group, and their weights.
    """
    memory = context.memory.get_profile(profile.id)
    old_weights, new_weights = dict(old.weights), dict(weights)
    for member_id, weight in new_weights.items():
        numbers = _require_numbers(context, plan, profile, member_id, weight)
        for number in numbers[old_weights.get(member_id, 0) : weight]:
            plan.add("group_add_member", profile=profile.name, group=old.number, member=number)
    for member_id, weight in old_weights.items():
        numbers = memory.members[member_id].numbers
        for number in numbers[new_weights.get(member_id, 0) : weight]:
            plan.add("group_remove_member", profile=profile.name, group=old.number, member=number)
    context.memory.put(memory.groups, id, Group(old.number, old.max_size, tuple(weights)))
    _delete_unneeded_members(context, plan, profile, old.weights)


def _require_numbers(
    context: UpdateContext, plan: Plan, profile: Profile, id: int, weight: int
) -> tuple[int, ...]:
    """Return the numbers of the switch's members for the client's member `id`.

    If there are fewer than `weight`, plan to add the missing ones, so that at least `weight`
    numbers are returned.
    """
    memory = context.memory.get_profile(profile.id)
    numbers = memory.members[id].numbers
    if len(numbers) < weight:
        action = _find_member_action(context, profile, numbers[0])
        added = [
            _add_switch_member(context, plan, profile, action, None)
            for _ in range(weight - len(numbers))
        ]
        numbers += tuple(added)
        context.memory.put(memory.members, id, Member(numbers))
    return numbers


def _find_member_action(context: UpdateContext, profile: Profile, number: int) -> Mapping[str, Any]:
    """Return "action" and "data" of the switch's member `number`, after the planned operations.

    Raises:
        P4Error: There is no such member.
    """
    planned = context.member_actions.get((profile.id, number))
    if planned is not None:
        return planned
    for member in context.switch.read_members(profile.name):
        if member["member"] == number:
            return {"action": member["action"], "data": member["data"]}
    raise P4Error(Code.ABORTED, f"{profile.name}: another controller has deleted a member")


def _delete_unneeded_members(
    context: UpdateContext, plan: Plan, profile: Profile, weights: Iterable[WeightedMember]
) -> None:
    """Plan to delete the switch's members that no group needs any more.

    For each client's member, at least one of the switch's members remains.

    Args:
        context: The context of the Write.
        plan: The plan to extend.
        profile: The action profile.
        weights: The members whose weight in a group may have decreased. The weights in this
            argument are not used.
    """
    memory = context.memory.get_profile(profile.id)
    for id, _ in weights:
        max_weight = max(
            (
                weight
                for group in memory.groups.values()
                for member_id, weight in group.weights
                if member_id == id
            ),
            default=1,
        )
        numbers = memory.members[id].numbers
        for number in numbers[max_weight:]:
            plan.add("member_delete", profile=profile.name, member=number)
            context.memory.free(memory.member_numbers, number)
        if len(numbers) > max_weight:
            context.memory.put(memory.members, id, Member(numbers[:max_weight]))


# Reading.


def adopt_members_and_groups(context: ReadContext, profile: Profile) -> None:
    """Give ids to the members and groups of an action profile that other controllers created."""
    memory = context.memory.get_profile(profile.id)
    for member in context.switch.read_members(profile.name):
        memory.adopt_member(member["member"])
    if profile.has_selector:
        for group in context.switch.read_groups(profile.name):
            weights = _count_weights(context, profile, group["members"])
            memory.adopt_group(group["group"], weights)


def _count_weights(
    context: ReadContext, profile: Profile, numbers: Iterable[int]
) -> dict[int, int]:
    """Return the weights of the members of a group, by the clients' ids of the members.

    Args:
        context: The context of the Read.
        profile: The action profile.
        numbers: The switch's numbers of the members of the group.
    """
    memory = context.memory.get_profile(profile.id)
    ids = {number: id for id, member in memory.members.items() for number in member.numbers}
    weights: dict[int, int] = {}
    for number in numbers:
        id = ids.get(number) or memory.adopt_member(number)
        weights[id] = weights.get(id, 0) + 1
    return weights


def read_members(context: ReadContext, request: p4r.ActionProfileMember) -> None:
    """Read one member, all members of an action profile, or all members of all action profiles.

    A member id or profile id of 0 stands for all. Members for action sets are left out.
    """
    profiles = context.select(context.info.profiles, request.action_profile_id, "action profile")
    for profile in profiles:
        memory = context.memory.get_profile(profile.id)
        actions_by_name = {
            action.name: action
            for table_id in profile.table_ids
            for action in context.info.tables[table_id].entry_actions.values()
        }
        for answer in context.switch.read_members(profile.name):
            id = memory.adopt_member(answer["member"])
            if id == 0 or request.member_id not in (0, id):
                continue
            message = context.responses.add_entity().action_profile_member
            message.action_profile_id = profile.id
            message.member_id = id
            action = actions_by_name[answer["action"]]
            actions.write_action(action, answer["data"], message.action)


def read_groups(context: ReadContext, request: p4r.ActionProfileGroup) -> None:
    """Read one group, all groups of an action selector, or all groups of all action selectors.

    A group id or profile id of 0 stands for all. Groups for action sets are left out.
    """
    profiles = context.select(context.info.profiles, request.action_profile_id, "action profile")
    for profile in profiles:
        if not profile.has_selector:
            continue
        memory = context.memory.get_profile(profile.id)
        for answer in context.switch.read_groups(profile.name):
            if answer["group"] in memory.action_set_groups:
                continue
            weights = _count_weights(context, profile, answer["members"])
            id = memory.adopt_group(answer["group"], weights)
            if request.group_id not in (0, id):
                continue
            message = context.responses.add_entity().action_profile_group
            message.action_profile_id = profile.id
            message.group_id = id
            message.max_size = memory.groups[id].max_size
            for member_id, weight in weights.items():
                member = message.members.add()
                member.member_id = member_id
                member.weight = 0 if profile.are_weights_disallowed else weight
