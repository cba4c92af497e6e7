# SPDX-License-Identifier: Apache-2.0
"""Reads entries of tables from a switch, also for direct counters and meters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nagi_p4.operations import NOT_FOUND, Refused
from nagi_p4.switch import Switch

from nagi_p4runtime import keys
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.keys import Key
from nagi_p4runtime.p4info import Table
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext

# Entries per operation. The limit is small because packets wait while the switch reads entries.
_PAGE = 250


def count_const_entries(switch: Switch, table: Table) -> int:
    """Return the number of constant entries that the P4 program declares, for keys.write_key().

    The number is the largest priority, because the switch numbers constant entries from 1. Return 0
    for tables that have no constant entries or no priorities.
    """
    if not (table.is_const and table.has_priorities):
        return 0
    priorities = [
        entry.get("priority", 0) for page in switch.read_entries(table.name) for entry in page
    ]
    return max(priorities, default=0)


def find_entry(switch: Switch, table: Table, key: Key) -> dict[str, Any] | None:
    """Read the entry that has `key`, in the form of Switch.read_entries(); None without entry."""
    try:
        for page in switch.read_entries(table.name, **keys.to_operation(key, table)):
            for entry in page:
                return entry
    except Refused as refused:
        if refused.code != NOT_FOUND:
            raise
    return None


def read_pages(
    switch: Switch, table: Table, request: p4r.TableEntry
) -> Iterable[Sequence[dict[str, Any]]]:
    """Read the entries of a table that have the key of a request; all if the request has no key.

    If the request has no priority, entries of all priorities are included.

    Returns:
        Lists of entries, of limited length, in the form of Switch.read_entries().
    """
    if request.match and not (table.has_priorities and request.priority == 0):
        key = keys.decode_key(table, request)
        if table.is_const and key.priority is not None:
            count = count_const_entries(switch, table)
            key = Key(key.values, count + 1 - request.priority)
        entry = find_entry(switch, table, key)
        return [] if entry is None else [[entry]]
    pages = switch.read_entries(table.name, page=_PAGE)
    if not request.match:
        return pages
    values = keys.decode_values(table.name, table.fields, request.match)
    return (
        [entry for entry in page if keys.parse_answer_key(table, entry).values == values]
        for page in pages
    )


class DirectEntry(NamedTuple):
    """An entry of a table with a direct counter or meter."""

    table: Table
    entry: dict[str, Any]  # in the form of Switch.read_entries()
    key: Key
    const_entries: int  # see count_const_entries()


def read_direct_entries(
    context: ReadContext, request: p4r.TableEntry, tables: Sequence[Table]
) -> Iterator[DirectEntry]:
    """Yield the entries whose direct counters (or direct meters) a request asks for.

    Args:
        context: The context of the Read.
        request: The table entry in the request. Table id 0 stands for all tables in `tables`, and
            an entry without a key for all entries of the table.
        tables: The tables that have a direct counter, or a direct meter.

    Raises:
        P4Error: The table is not in `tables`, or there is no entry with the key.
    """
    selected = context.select(context.info.tables, request.table_id, "table")
    if request.table_id and any(table not in tables for table in selected):
        raise InvalidArgument(
            f"{selected[0].name}: this table has no direct counter or meter of this kind"
        )
    tables = [table for table in tables if table in selected]
    if request.is_default_action:
        raise P4Error(
            Code.UNIMPLEMENTED, "default entries have neither counter nor meter in v1model"
        )
    for table in tables:
        const_entries = count_const_entries(context.switch, table)
        is_empty = True
        for page in read_pages(context.switch, table, request):
            for entry in page:
                is_empty = False
                yield DirectEntry(table, entry, keys.parse_answer_key(table, entry), const_entries)
        if request.match and is_empty:
            raise P4Error(Code.NOT_FOUND, f"{table.name}: there is no such entry")


def decode_direct_key(table: Table, entry: p4r.TableEntry) -> Key:
    """Decode the key of the entry whose direct counter or meter an update changes.

    Raises:
        P4Error: `entry` is a default entry, or its key does not follow the specification.
    """
    if entry.is_default_action:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{table.name}: the default entry has neither counter nor meter in v1model",
        )
    return keys.decode_key(table, entry)
