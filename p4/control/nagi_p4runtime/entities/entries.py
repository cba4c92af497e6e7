# SPDX-License-Identifier: Apache-2.0
"""Reading the entries of a table from a switch, for tables and their direct counters and meters."""

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

# Entries per operation. While the switch reads them, its packets wait.
_PAGE = 250


def count_const_entries(switch: Switch, table: Table) -> int:
    """Return how many entries the P4 program fixes in a table with priorities, else 0.

    keys.write_key() needs it.
    """
    if not (table.is_const and table.has_priorities):
        return 0
    priorities = [
        entry.get("priority", 0) for page in switch.read_entries(table.name) for entry in page
    ]
    return max(priorities, default=0)


def find_entry(switch: Switch, table: Table, key: Key) -> dict[str, Any] | None:
    """Return the switch's entry with a key, or None if there is none."""
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
    """Return the entries of a table that match the key of a request, or all if it has none.

    Entries come in lists of limited length. If the request has no priority, entries of any priority
    match.
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
    entry: dict[str, Any]  # as the switch returned it
    key: Key
    const_entries: int  # how many entries the P4 program fixes in the table


def read_direct_entries(
    context: ReadContext, request: p4r.TableEntry, tables: Sequence[Table]
) -> Iterator[DirectEntry]:
    """Yield the entries that a request for direct counters or meters asks for.

    Args:
        context: The context of the Read.
        request: The table entry of the request; its table id 0 stands for all tables.
        tables: The tables that have such a direct counter or meter.

    Raises:
        P4Error: The table has no such counter or meter, or there is no entry with the key.
    """
    selected = context.select(context.info.tables, request.table_id, "table")
    if request.table_id and any(table not in tables for table in selected):
        raise InvalidArgument(f"{selected[0].name}: it has no such direct counter or meter")
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
        P4Error: It is the default entry, or the key is not as P4Runtime requires.
    """
    if entry.is_default_action:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{table.name}: the default entry has neither counter nor meter in v1model",
        )
    return keys.decode_key(table, entry)
