# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of counter arrays, and of direct counters of table entries."""

from __future__ import annotations

from nagi_p4runtime import keys
from nagi_p4runtime.entities.entries import decode_direct_key, read_direct_entries
from nagi_p4runtime.entities.values import (
    decode_counts,
    find_index,
    list_indices,
    require_modify,
)
from nagi_p4runtime.errors import InvalidArgument
from nagi_p4runtime.p4info import find_by_id
from nagi_p4runtime.plan import Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext


def plan_counter(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.CounterEntry
) -> None:
    """Plan to write one cell of a counter, or all cells if the message has no index.

    Without data there is nothing to write.
    """
    counter = find_by_id(context.info.counters, message.counter_id, "counter")
    require_modify(update_type, counter.name)
    if not message.HasField("data"):
        return
    counts = decode_counts(message.data, counter.name)
    for index in list_indices(message, counter):
        plan.add("counter_write", counter=counter.name, index=index, **counts)


def plan_direct_counter(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.DirectCounterEntry
) -> None:
    """Plan to write the direct counter of an entry. Without data there is nothing to write."""
    table = find_by_id(context.info.tables, message.table_entry.table_id, "table")
    require_modify(update_type, table.name)
    if not table.has_counter:
        raise InvalidArgument(f"{table.name}: this table has no direct counter")
    key = decode_direct_key(table, message.table_entry)
    if message.HasField("data"):
        plan.add(
            "counter_write",
            table=table.name,
            **keys.to_operation(key, table),
            **decode_counts(message.data, table.name),
        )


def read_counters(context: ReadContext, request: p4r.CounterEntry) -> None:
    """Read one cell of a counter, all its cells, or all counters.

    A request without an index asks for all cells; a counter id of 0 stands for all counters.
    """
    for counter in context.select(context.info.counters, request.counter_id, "counter"):
        index = find_index(request, counter)
        if index is None:
            counts = context.switch.read_counters(counter.name)
        else:
            counts = [context.switch.read_counter(counter.name, index)]
        for cell, (packets, octets) in enumerate(counts, index or 0):
            message = context.responses.add_entity().counter_entry
            message.counter_id = counter.id
            message.index.index = cell
            message.data.packet_count = packets
            message.data.byte_count = octets


def read_direct_counters(context: ReadContext, request: p4r.DirectCounterEntry) -> None:
    """Read the direct counter of an entry, of all entries of a table, or of all tables.

    read_direct_entries() says which requests stand for all.
    """
    tables = [table for table in context.info.tables.values() if table.has_counter]
    for table, entry, key, const_entries in read_direct_entries(
        context, request.table_entry, tables
    ):
        message = context.responses.add_entity().direct_counter_entry
        message.table_entry.table_id = table.id
        keys.write_key(key, table, message.table_entry, const_entries)
        message.data.packet_count = entry["packets"]
        message.data.byte_count = entry["bytes"]
