# SPDX-License-Identifier: Apache-2.0
"""Operations on members and groups of action profiles.

Every function prepares one operation; switch.py maps the names of operations to functions. The
parameters of a function are the keys of the operation. The numbers of members and groups are ids
that this client assigns. A group can be changed only by the client that created it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finsy import p4entity
from nagi_p4.operations import NOT_FOUND, Answer, Refused

from nagi_p4runtime.client.context import ClientContext, Writes, build_action, require_object


def add_member(
    context: ClientContext, profile: str, action: str, data: Sequence[Any] = ()
) -> Writes:
    """Prepare to add a member. The answer has the member's number: {"member": ...}."""
    member = next(context.ids)
    return Writes(
        [+_make_member(context, profile, member, action, data)], lambda: {"member": member}
    )


def modify_member(
    context: ClientContext, profile: str, member: int, action: str, data: Sequence[Any] = ()
) -> Writes:
    """Prepare to change the action of a member."""
    return Writes([~_make_member(context, profile, member, action, data)])


def delete_member(context: ClientContext, profile: str, member: int) -> Writes:
    """Prepare to delete a member."""
    return Writes([-p4entity.P4ActionProfileMember(profile, member_id=member)])


def _make_member(
    context: ClientContext, profile: str, member: int, action: str, data: Sequence[Any]
) -> p4entity.P4ActionProfileMember:
    p4info = context.connection.p4info
    require_object(p4info.action_profiles, profile, "action profile")
    return p4entity.P4ActionProfileMember(
        profile, member_id=member, action=build_action(p4info.actions, action, data)
    )


def create_group(context: ClientContext, profile: str) -> Writes:
    """Prepare to create an empty group. The answer has the group's number: {"group": ...}."""
    schema = require_object(context.connection.p4info.action_profiles, profile, "action profile")
    group = next(context.ids)
    entity = p4entity.P4ActionProfileGroup(profile, group_id=group, max_size=schema.max_group_size)

    def finish() -> Answer:
        context.groups[profile, group] = []
        return {"group": group}

    return Writes([+entity], finish, is_prerequisite=True)


def delete_group(context: ClientContext, profile: str, group: int) -> Writes:
    """Prepare to delete a group."""
    _require_group(context, profile, group)

    def finish() -> Answer:
        del context.groups[profile, group]
        return {}

    entity = p4entity.P4ActionProfileGroup(profile, group_id=group)
    return Writes([-entity], finish, is_prerequisite=True)


def add_to_group(context: ClientContext, profile: str, group: int, member: int) -> Writes:
    """Prepare to add a member to a group."""
    members = _require_group(context, profile, group)
    return _change_group(context, profile, group, [*members, member])


def remove_from_group(context: ClientContext, profile: str, group: int, member: int) -> Writes:
    """Prepare to remove a member from a group."""
    members = _require_group(context, profile, group)
    if member not in members:
        raise Refused(f"group {group} has no member {member}", NOT_FOUND)
    return _change_group(context, profile, group, [other for other in members if other != member])


def _require_group(context: ClientContext, profile: str, group: int) -> list[int]:
    """Return the members of a group that this client created.

    Raises:
        Refused: There is no such group.
    """
    if (profile, group) not in context.groups:
        raise Refused(f"action profile {profile} has no group {group}", NOT_FOUND)
    return context.groups[profile, group]


def _change_group(context: ClientContext, profile: str, group: int, members: list[int]) -> Writes:
    """Prepare to replace the members of a group. Every member gets weight 1."""

    def finish() -> Answer:
        context.groups[profile, group] = members
        return {}

    weighted = [p4entity.P4Member(member, weight=1) for member in members]
    entity = p4entity.P4ActionProfileGroup(profile, group_id=group, members=weighted)
    return Writes([~entity], finish, is_prerequisite=True)
