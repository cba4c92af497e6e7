# SPDX-License-Identifier: Apache-2.0
"""Operations on tables.

Every function prepares one operation; switch.py maps the names of operations to functions. The
parameters of a function are the keys of the operation. An entry is named by `handle`, or by `match`
and `priority`.

In operations the smaller priority wins, in P4Runtime the larger one: p becomes MAX_PRIORITY - p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from finsy import p4entity
from finsy.p4schema import P4MatchField, P4MatchType, P4Table
from nagi_p4.operations import INVALID, NOT_FOUND, Answer, Refused, parse_number

from nagi_p4runtime.client.context import (
    ClientContext,
    Entry,
    Writes,
    build_action,
    require_object,
)
from nagi_p4runtime.keys import MAX_PRIORITY

_KINDS_WITH_PRIORITY = {P4MatchType.TERNARY, P4MatchType.RANGE, P4MatchType.OPTIONAL}


def add_entry(
    context: ClientContext,
    table: str,
    match: Sequence[Any],
    action: str | None = None,
    data: Sequence[Any] = (),
    member: int | None = None,
    group: int | None = None,
    priority: int | None = None,
    timeout_us: int = 0,
) -> Writes:
    """Prepare to add an entry. The answer has the entry's handle: {"handle": ...}.

    Give either `action` and `data`, or the number of a `member` or `group` of an action profile.
    `timeout_us` is the idle timeout; 0 for none.
    """
    entry = _make_entry(context, table, match, priority)
    handle = next(context.handles)
    entity = _to_entity(
        entry,
        action=build_action(_require_table(context, table).actions, action, data, member, group),
        idle_timeout_ns=timeout_us * 1000,
    )

    def finish() -> Answer:
        context.entries[handle] = entry
        return {"handle": handle}

    return Writes([+entity], finish)


def modify_entry(
    context: ClientContext,
    table: str,
    action: str | None = None,
    data: Sequence[Any] = (),
    member: int | None = None,
    group: int | None = None,
    handle: int | None = None,
    match: Sequence[Any] | None = None,
    priority: int | None = None,
    timeout_us: int = 0,
) -> Writes:
    """Prepare to change the action, member or group of an entry, and its idle timeout.

    Without `timeout_us`, the entry has no idle timeout afterwards.
    """
    entry = _find_entry(context, table, handle, match, priority)
    new_action = build_action(_require_table(context, table).actions, action, data, member, group)
    return Writes([~_to_entity(entry, action=new_action, idle_timeout_ns=timeout_us * 1000)])


def delete_entry(
    context: ClientContext,
    table: str,
    handle: int | None = None,
    match: Sequence[Any] | None = None,
    priority: int | None = None,
) -> Writes:
    """Prepare to delete the entry with `match` and `priority`, or, without `match`, `handle`."""
    entry = _find_entry(context, table, handle, match, priority)

    def finish() -> Answer:
        _forget_entries(context, lambda other: other == entry)
        return {}

    return Writes([-_to_entity(entry)], finish)


def clear_table(context: ClientContext, table: str) -> Writes:
    """Prepare to delete all entries of a table, except constant ones."""
    _require_table(context, table)
    entries = context.connection.read(p4entity.P4TableEntry(table))
    deletable = [entry for entry in entries if not entry.is_default_action and not entry.is_const]

    def finish() -> Answer:
        _forget_entries(context, lambda entry: entry.table == table)
        return {}

    return Writes([-entry for entry in deletable], finish, is_prerequisite=True)


def set_default(
    context: ClientContext,
    table: str,
    action: str | None = None,
    data: Sequence[Any] = (),
    member: int | None = None,
    group: int | None = None,
) -> Writes:
    """Prepare to set the default entry of a table.

    Without an action, member or group, the pipeline's own default entry is restored.
    """
    default = None
    if not (action is None and member is None and group is None):
        default = build_action(_require_table(context, table).actions, action, data, member, group)
    return Writes([~p4entity.P4TableEntry(table, action=default, is_default_action=True)])


def to_table_entry(
    context: ClientContext,
    table: str,
    handle: int | None,
    match: Sequence[Any] | None,
    priority: int | None,
) -> p4entity.P4TableEntry:
    """Return the entry with `match` and `priority`, or, without `match`, the entry with `handle`.

    Returns:
        An entity of finsy without an action. It is not read from the switch.

    Raises:
        Refused: There is no entry with this handle, or `match` does not fit the table.
    """
    return _to_entity(_find_entry(context, table, handle, match, priority))


def _to_entity(entry: Entry, **fields: Any) -> p4entity.P4TableEntry:
    return p4entity.P4TableEntry(entry.table, match=entry.match, priority=entry.priority, **fields)


def _find_entry(
    context: ClientContext,
    table: str,
    handle: int | None,
    match: Sequence[Any] | None,
    priority: int | None,
) -> Entry:
    """Return the Entry for `match` and `priority`, or, without `match`, the one with `handle`.

    Raises:
        Refused: There is no entry with this handle, or `match` does not fit the table.
    """
    if match is not None:
        return _make_entry(context, table, match, priority)
    if handle not in context.entries or context.entries[handle].table != table:
        raise Refused(f"table {table} has no entry with handle {handle}", NOT_FOUND)
    return context.entries[handle]


def _make_entry(
    context: ClientContext, table: str, match: Sequence[Any], priority: int | None
) -> Entry:
    """Make the Entry for a table, match and priority. It need not exist in the switch.

    Raises:
        Refused: There is no such table, or `match` does not fit it.
    """
    fields = list(_require_table(context, table).match_fields)
    if len(fields) != len(match):
        raise Refused(f"table {table} has {len(fields)} keys; {len(match)} are given", INVALID)
    values = {}
    for field, element in zip(fields, match, strict=True):
        value = _to_match_value(field, element)
        if value is not None:
            values[field.name] = value
    has_priorities = any(field.match_type in _KINDS_WITH_PRIORITY for field in fields)
    return Entry(
        table,
        p4entity.P4TableMatch(values),
        MAX_PRIORITY - (priority or 0) if has_priorities else 0,
    )


def _forget_entries(context: ClientContext, is_deleted: Callable[[Entry], bool]) -> None:
    context.entries = {
        handle: entry for handle, entry in context.entries.items() if not is_deleted(entry)
    }


def _require_table(context: ClientContext, table: str) -> P4Table:
    schema: P4Table = require_object(context.connection.p4info.tables, table, "table")
    return schema


def _to_match_value(field: P4MatchField, element: Any) -> Any:
    """Convert an element of an operation's "match" to a value for finsy.

    Return None, for any value, if the element is None.

    Raises:
        Refused: The element is None, but the field has match kind exact; or the element has no
            number where the match kind needs one.
    """
    kind = field.match_type
    if element is None:
        if kind == P4MatchType.EXACT:
            raise Refused(f"field {field.name} has match kind exact; give a value", INVALID)
        return None
    if kind == P4MatchType.LPM:
        if isinstance(element, dict):
            return (parse_number(element["value"]), int(element["prefix"]))
        value, slash, prefix = str(element).partition("/")
        return (
            parse_number(value if slash else element),
            int(prefix) if slash else field.bitwidth,
        )
    if kind == P4MatchType.TERNARY:
        all_ones = (1 << field.bitwidth) - 1
        if isinstance(element, dict):
            return (parse_number(element["value"]), parse_number(element["mask"]))
        return (parse_number(element), all_ones)
    if kind == P4MatchType.RANGE:
        return (parse_number(element["low"]), parse_number(element["high"]))
    return parse_number(element)
