# SPDX-License-Identifier: Apache-2.0
"""The context of operations: the connection, and data that P4Runtime servers do not store."""

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
    priority: int  # as in P4Runtime, where the larger priority wins; 0 in tables without priorities


@dataclass(frozen=True)
class Writes:
    """The updates that perform an operation.

    Attributes:
        updates: The updates.
        finish: A function to call once the updates are written. It returns the answer to the
            operation without "ok".
        is_prerequisite: Whether the updates must be written before the next operation is prepared.
    """

    updates: list[Update]
    finish: Callable[[], Answer] = dict
    is_prerequisite: bool = False


class ClientContext:
    """A connection, and data that P4Runtime servers do not store.

    Attributes:
        connection: The connection.
        entries: Entries that this client added, by handle. P4Runtime has no handles, so this client
            assigns them.
        handles: An iterator over unused handles.
        ids: An iterator over unused ids of members and groups.
        groups: Members of each group that this client created, by action profile and group.
        value_sets: Values of each value set that this client changed, by name.
        digests: Digests that have arrived and that were not yet returned.
        is_subscribed: Whether this client has subscribed to digests.
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
    """Return the object of the P4Info that is called `name`.

    Args:
        objects: All objects of one kind, in finsy's schema.
        name: Name of the object.
        kind: Name of the kind for the error message, such as "counter".

    Raises:
        Refused: There is no such object.
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
    """Build the finsy object for the action, member or group of an entry.

    Args:
        actions: The actions of a table or of the pipeline, in finsy's schema.
        action: Name of the action; None if a member or a group is given.
        data: Data of the action, one value per parameter.
        member: A member of the table's action profile, or None.
        group: A group of the table's action selector, or None.

    Raises:
        Refused: There is no such action, or it has another number of parameters.
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
