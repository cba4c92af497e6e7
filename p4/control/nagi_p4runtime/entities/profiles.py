# SPDX-License-Identifier: Apache-2.0
"""Action profiles and selectors: members, groups, and one-shot action sets of table entries.

A group of a switch contains a member at most once. A member that has weight w in a group is
therefore w members of the switch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from nagi_p4runtime import actions
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.memory import Group, Member, OneShot, ProfileMemory
from nagi_p4runtime.p4info import Action, Profile, Table, find_by_id
from nagi_p4runtime.plan import DELETE, INSERT, MODIFY, Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

_MAX_MEMBERS = 1 << 16  # per group, the sum of its weights

WeightedMember = tuple[int, int]  # the client's id of a member, and its weight
Item = TypeVar("Item")


def require_item(by_id: Mapping[int, Item], id: int, profile: Profile, kind: str) -> Item:
    """Return the member or group with an id.

    Args:
        by_id: The members or groups of the action profile, by the clients' ids.
        id: The client's id.
        profile: The action profile.
        kind: "member" or "group".

    Raises:
        P4Error: There is none.
    """
    if id not in by_id:
        raise P4Error(Code.NOT_FOUND, f"{profile.name}: there is no {kind} {id}; insert it first")
    return by_id[id]


# One-shot action sets: members and a group that clients do not see.


def add_one_shot(
    context: UpdateContext,
    plan: Plan,
    table: Table,
    profile: Profile,
    action_set: p4r.ActionProfileActionSet,
) -> int:
    """Plan a group for the action set of an entry, and return the switch's number of the group.

    Raises:
        P4Error: The action set is wrong, or the action profile has no selector.
    """
    if not profile.has_selector:
        raise InvalidArgument(f"{profile.name}: it is no selector and takes no action sets")
    if action_set.action_selection_mode not in (
        p4r.ActionProfileActionSet.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR,
        p4r.ActionProfileActionSet.HASH,
    ):
        raise P4Error(
            Code.UNIMPLEMENTED, f"{profile.name}: v1model selects by hash; leave the mode out"
        )
    memory = context.memory.get_profile(profile.id)
    weights = [
        _decode_weight(message, profile, f"an action of {table.name}")
        for message in action_set.action_profile_actions
    ]
    _require_size(sum(weights), profile, profile.max_group_size)
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
    context.memory.put(memory.one_shots, group, OneShot(stored, tuple(members)))
    return group


def remove_one_shot(context: UpdateContext, plan: Plan, table: Table, group: int) -> None:
    """Plan to delete the group, and its members, of an entry's action set.

    Args:
        context: The context of the Write.
        plan: The plan.
        table: The table of the entry.
        group: The switch's number of the group.
    """
    profile = table.profile
    assert profile is not None
    memory = context.memory.get_profile(profile.id)
    plan.add("group_delete", profile=profile.name, group=group)
    context.memory.free(memory.group_numbers, group)
    for member in memory.one_shots[group].members:
        plan.add("member_delete", profile=profile.name, member=member)
        context.memory.free(memory.member_numbers, member)
    context.memory.drop(memory.one_shots, group)


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
    if memory.one_shots:
        raise InvalidArgument(f"{profile.name}: entries use it by action sets; it takes no members")
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
    memory = context.memory.get_profile(profile.id)
    member = require_item(memory.members, id, profile, "member")
    for group_id, group in memory.groups.items():
        if any(member_id == id for member_id, _ in group.weights):
            raise P4Error(
                Code.FAILED_PRECONDITION,
                f"{profile.name}: member {id} is in group {group_id}; take it out first",
            )
    for number in member.numbers:
        plan.add("member_delete", profile=profile.name, member=number)
        context.memory.free(memory.member_numbers, number)
    context.memory.drop(memory.members, id)


def _find_allowed_actions(context: UpdateContext, profile: Profile) -> Mapping[int, Action]:
    """Return the actions that members of an action profile may have, by id."""
    for table_id in profile.table_ids:
        if table_id in context.info.tables:
            return context.info.tables[table_id].entry_actions
    raise InvalidArgument(f"{profile.name}: no table of the P4Info uses it")


def _add_switch_member(
    context: UpdateContext,
    plan: Plan,
    profile: Profile,
    action: Mapping[str, Any],
    owner: int | None,
) -> int:
    """Plan to add a member to the switch, and return its number.

    Args:
        context: The context of the Write.
        plan: The plan.
        profile: The action profile.
        action: "action" and "data" of the member.
        owner: The client's id of the member; None if clients are not to see it.
    """
    number = context.memory.allocate(context.memory.get_profile(profile.id).member_numbers, owner)
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
        raise InvalidArgument(f"{profile.name}: it is no selector and has no groups")
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
    if memory.one_shots:
        raise InvalidArgument(f"{profile.name}: entries use it by action sets; it takes no groups")
    weights = _decode_group_weights(profile, memory, message)
    if update_type == INSERT:
        if id in memory.groups:
            raise P4Error(Code.ALREADY_EXISTS, f"{profile.name}: there is a group {id}; MODIFY it")
        limit = _decode_max_size(message, profile)
        _require_size(sum(weight for _, weight in weights), profile, limit)
        number = context.memory.allocate(memory.group_numbers, id)
        plan.add("group_create", profile=profile.name)
        plan.expect("group", number)
        _change_group(context, plan, profile, id, Group(number, message.max_size, ()), weights)
        return
    old = require_item(memory.groups, id, profile, "group")
    if message.max_size != old.max_size:
        raise InvalidArgument(
            f"{profile.name}: group {id} was made with a max_size of {old.max_size}; "
            "MODIFY cannot change it"
        )
    _require_size(sum(weight for _, weight in weights), profile, _decode_max_size(message, profile))
    _change_group(context, plan, profile, id, old, weights)


def _decode_group_weights(
    profile: Profile, memory: ProfileMemory, message: p4r.ActionProfileGroup
) -> tuple[WeightedMember, ...]:
    weights: dict[int, int] = {}
    for member in message.members:
        id = member.member_id
        require_item(memory.members, id, profile, "member")
        if id in weights:
            raise InvalidArgument(
                f"{profile.name}: member {id} is twice in group {message.group_id}; give it "
                "a weight"
            )
        weights[id] = _decode_weight(member, profile, f"member {id}")
    return tuple(weights.items())


def _change_group(
    context: UpdateContext,
    plan: Plan,
    profile: Profile,
    id: int,
    old: Group,
    weights: Sequence[WeightedMember],
) -> None:
    """Plan to give a group other members and weights.

    New members are added before others are removed, so that the group is never empty in between.
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
    """Return at least `weight` of the switch's members for a member, adding the missing ones."""
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
    """Return "action" and "data" of the switch's member with a number."""
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

    Args:
        context: The context of the Write.
        plan: The plan.
        profile: The action profile.
        weights: The members whose weight in a group has changed.
    """
    memory = context.memory.get_profile(profile.id)
    for id, _ in weights:
        needed = max(
            (
                weight
                for group in memory.groups.values()
                for member_id, weight in group.weights
                if member_id == id
            ),
            default=1,
        )
        numbers = memory.members[id].numbers
        for number in numbers[needed:]:
            plan.add("member_delete", profile=profile.name, member=number)
            context.memory.free(memory.member_numbers, number)
        if len(numbers) > needed:
            context.memory.put(memory.members, id, Member(numbers[:needed]))


def _decode_weight(message: Any, profile: Profile, name: str) -> int:
    """Return the weight of a member or action; `name` is for error messages."""
    if message.WhichOneof("watch_kind") is not None and (message.watch_port or message.watch):
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{profile.name}: {name} has a watch port, which is not supported; leave it out",
        )
    weight: int = message.weight
    if profile.are_weights_disallowed:
        if weight:
            raise InvalidArgument(f"{profile.name}: {name} has a weight; this selector has none")
        return 1
    if weight < 1:
        raise InvalidArgument(f"{profile.name}: {name} has a weight of {weight}; give 1 or more")
    return weight


def _decode_max_size(message: p4r.ActionProfileGroup, profile: Profile) -> int:
    size, limit = message.max_size, profile.max_group_size
    if size < 0 or (limit and not 0 < size <= limit):
        raise InvalidArgument(
            f"{profile.name}: group {message.group_id} with a max_size of {size}; give "
            + (f"1 to {limit}" if limit else "0 or more")
        )
    return size


def _require_size(size: int, profile: Profile, limit: int) -> None:
    """Raise P4Error if the sum of a group's weights exceeds the limit; 0 stands for no limit."""
    if size > (limit or _MAX_MEMBERS):
        raise P4Error(
            Code.RESOURCE_EXHAUSTED,
            f"{profile.name}: a group of {size}, weights counted; it may have "
            f"{limit or _MAX_MEMBERS}",
        )


# Reading.


def adopt_members_and_groups(context: ReadContext, profile: Profile) -> None:
    """Give ids to the members and groups that another controller has created."""
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
    """Return the weights of a group's members, by the clients' ids.

    Args:
        context: The context of the Read.
        profile: The action profile.
        numbers: The switch's members of the group.
    """
    memory = context.memory.get_profile(profile.id)
    ids = {number: id for id, member in memory.members.items() for number in member.numbers}
    weights: dict[int, int] = {}
    for number in numbers:
        id = ids.get(number) or memory.adopt_member(number)
        weights[id] = weights.get(id, 0) + 1
    return weights


def read_members(context: ReadContext, request: p4r.ActionProfileMember) -> None:
    """Read a member, all members of an action profile, or of all action profiles."""
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
    """Read a group, all groups of an action selector, or of all action selectors."""
    profiles = context.select(context.info.profiles, request.action_profile_id, "action profile")
    for profile in profiles:
        if not profile.has_selector:
            continue
        memory = context.memory.get_profile(profile.id)
        for answer in context.switch.read_groups(profile.name):
            if answer["group"] in memory.one_shots:
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
