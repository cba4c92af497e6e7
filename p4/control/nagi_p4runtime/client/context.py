# SPDX-License-Identifier: Apache-2.0
"""The context of operations: the connection, and data that P4Runtime leaves to the client."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from finsy import p4entity
from nagi_p4.operations import INVALID, NOT_FOUND, Answer, Refused, parse_number

from nagi_p4runtime.client.connection import Connection, Update


@dataclass(frozen=True)
class Entry:
    """The table, match and priority by which P4Runtime names an entry."""

    table: str
    match: p4entity.P4TableMatch
    priority: int


@dataclass(frozen=True)
class Writes:
    """The updates that perform an operation.

    Attributes:
        updates: The updates.
        finish: Called once they are written; returns the operation's answer without "ok".
        is_prerequisite: Whether they must be written before the next operation is prepared.
    """

    updates: list[Update]
    finish: Callable[[], Answer] = dict
    is_prerequisite: bool = False


class ClientContext:
    """A connection, and data that P4Runtime leaves to the client.

    Attributes:
        connection: The connection.
        entries: Entries by handle. P4Runtime has no handles: they are this client's.
        handles: The handles of entries to come.
        ids: The ids of members and groups to come.
        groups: The members of each group, by action profile and group.
        value_sets: The values of each value set.
        digests: Digests that have arrived and that nobody has read.
        is_subscribed: Whether digests are being received.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.entries: dict[int, Entry] = {}
        self.handles = itertools.count()
        self.ids = itertools.count(1)
        self.groups: dict[tuple[str, int], list[int]] = {}
        self.value_sets: dict[str, list[int]] = {}
        self.digests: list[dict[str, Any]] = []
        self.is_subscribed = False


def require_object(objects: Any, name: str | None, kind: str) -> Any:
    """Return an object of the P4Info by its name.

    Args:
        objects: The objects of its kind, in finsy's schema.
        name: The name.
        kind: How the error message names the kind, such as "counter".

    Raises:
        Refused: There is none.
    """
    item = objects.get(name)
    if item is None:
        raise Refused(f"there is no {kind} {name}", NOT_FOUND)
    return item


def build_action(
    actions: Any,
    action: str | None,
    data: Sequence[Any],
    member: int | None = None,
    group: int | None = None,
) -> Any:
    """Build finsy's action for an entry or member.

    Args:
        actions: The actions of a table or of the pipeline, in finsy's schema.
        action: Name of the action; None if a member or a group is given.
        data: Its data, one value per parameter.
        member: A member of the table's action profile, or None.
        group: A group of the table's action selector, or None.

    Raises:
        Refused: There is no such action, or it has other parameters.
    """
    if member is not None:
        return p4entity.P4IndirectAction(member_id=member)
    if group is not None:
        return p4entity.P4IndirectAction(group_id=group)
    schema = actions.get(action)
    if action is None or schema is None:
        raise Refused(f"there is no action {action}", NOT_FOUND)
    names = [parameter.name for parameter in schema.params]
    if len(names) != len(data):
        raise Refused(
            f"action {action} has {len(names)} parameters; {len(data)} are given", INVALID
        )
    arguments = {name: parse_number(value) for name, value in zip(names, data, strict=True)}
    return p4entity.P4TableAction(action, **arguments)
