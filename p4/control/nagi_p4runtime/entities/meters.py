# SPDX-License-Identifier: Apache-2.0
"""Updates and Reads of meter arrays, and of direct meters of table entries."""

from __future__ import annotations

from typing import Any

from nagi_p4runtime import keys
from nagi_p4runtime.entities.entries import decode_direct_key, read_direct_entries
from nagi_p4runtime.entities.values import (
    decode_rates,
    find_index,
    list_indices,
    make_color_counts_error,
    require_modify,
    write_rates,
)
from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import find_by_id
from nagi_p4runtime.plan import Plan, UpdateContext
from nagi_p4runtime.protos import p4r
from nagi_p4runtime.responses import ReadContext


def plan_meter(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.MeterEntry
) -> None:
    """Plan to set the rates of one cell of a meter, or of all cells if the message has no index.

    Without a config, the rates are removed.
    """
    meter = find_by_id(context.info.meters, message.meter_id, "meter")
    require_modify(update_type, meter.name)
    if message.HasField("counter_data"):
        raise make_color_counts_error(meter.name)
    rates = decode_rates(message.config, meter.name) if message.HasField("config") else []
    if message.HasField("index"):
        (index,) = list_indices(message, meter)
        plan.add("meter_rates", meter=meter.name, index=index, rates=rates)
    else:
        plan.add("meter_rates", meter=meter.name, rates=rates)


def plan_direct_meter(
    context: UpdateContext, plan: Plan, update_type: int, message: p4r.DirectMeterEntry
) -> None:
    """Plan to set the rates of an entry's direct meter, or to remove them without a config."""
    table = find_by_id(context.info.tables, message.table_entry.table_id, "table")
    require_modify(update_type, table.name)
    if not table.has_meter:
        raise InvalidArgument(f"{table.name}: this table has no direct meter")
    if message.HasField("counter_data"):
        raise make_color_counts_error(table.name)
    key = decode_direct_key(table, message.table_entry)
    rates = decode_rates(message.config, table.name) if message.HasField("config") else []
    plan.add("meter_rates", table=table.name, **keys.to_operation(key, table), rates=rates)


def read_meters(context: ReadContext, request: p4r.MeterEntry) -> None:
    """Read the rates of one cell of a meter, of all its cells, or of all meters.

    A request without an index asks for all cells; a meter id of 0 stands for all meters.
    """
    _refuse_color_counts(request)
    for meter in context.select(context.info.meters, request.meter_id, "meter"):
        index = find_index(request, meter)
        if index is None:
            cells = context.switch.read_meters(meter.name)
        else:
            cells = [context.switch.read_meter(meter.name, index)]
        for cell, rates in enumerate(cells, index or 0):
            message = context.responses.add_entity().meter_entry
            message.meter_id = meter.id
            message.index.index = cell
            if rates:
                write_rates(rates, message.config)


def read_direct_meters(context: ReadContext, request: p4r.DirectMeterEntry) -> None:
    """Read the rates of an entry's direct meter, of all entries of a table, or of all tables.

    read_direct_entries() says which requests stand for all.
    """
    _refuse_color_counts(request)
    tables = [table for table in context.info.tables.values() if table.has_meter]
    for table, entry, key, const_entries in read_direct_entries(
        context, request.table_entry, tables
    ):
        message = context.responses.add_entity().direct_meter_entry
        message.table_entry.table_id = table.id
        keys.write_key(key, table, message.table_entry, const_entries)
        if entry["rates"]:
            write_rates(entry["rates"], message.config)


def _refuse_color_counts(request: Any) -> None:
    if request.HasField("counter_data"):
        raise P4Error(Code.UNIMPLEMENTED, "meters do not count by color; leave counter_data out")
