# SPDX-License-Identifier: Apache-2.0
"""Operations on counters, registers, meters and value sets.

Functions that read return an answer; the others prepare an operation. switch.py maps the names of
operations to functions. The parameters of a function are the keys of the operation. The direct
counter or meter of an entry is named by `table` and `handle`, or by `table`, `match` and
`priority`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finsy import p4entity
from nagi_p4.operations import INVALID, NOT_FOUND, Answer, Refused, parse_number

from nagi_p4runtime.client.context import ClientContext, Writes, require_object
from nagi_p4runtime.client.tables import to_table_entry

_US_PER_S = 1_000_000


def read_counter(
    context: ClientContext,
    counter: str | None = None,
    index: int | None = None,
    table: str | None = None,
    handle: int | None = None,
    match: Sequence[Any] | None = None,
    priority: int | None = None,
) -> Answer:
    """Return the counts of a counter, or, if `table` is given, of an entry's direct counter.

    Returns:
        {"counts": [[packets, bytes], ...]} for a counter if `index` is None; {"packets": ...,
        "bytes": ...} for a counter at `index`, and for the direct counter of an entry.

    Raises:
        Refused: There is no such counter or entry.
    """
    if table is not None:
        entry = to_table_entry(context, table, handle, match, priority)
        entities = context.connection.read(p4entity.P4DirectCounterEntry(table_entry=entry))
    else:
        require_object(context.connection.p4info.counters, counter, "counter")
        entities = context.connection.read(p4entity.P4CounterEntry(str(counter), index=index))
    counts = [(entity.packet_count, entity.byte_count) for entity in entities]
    if table is None and index is None:
        return {"counts": [list(count) for count in counts]}
    if len(counts) != 1:
        raise Refused(
            f"{counter or table}: there is no counter with this index, or of this entry", NOT_FOUND
        )
    return {"packets": counts[0][0], "bytes": counts[0][1]}


def write_counter(
    context: ClientContext, counter: str, index: int, packets: int, bytes: int
) -> Writes:
    """Prepare to set the counts of a counter at `index`."""
    require_object(context.connection.p4info.counters, counter, "counter")
    data = p4entity.P4CounterData(packet_count=packets, byte_count=bytes)
    return Writes([~p4entity.P4CounterEntry(counter, index=index, data=data)])


def reset_counter(context: ClientContext, counter: str) -> Writes:
    """Prepare to set all values of a counter to 0."""
    size = require_object(context.connection.p4info.counters, counter, "counter").size
    zero = p4entity.P4CounterData(packet_count=0, byte_count=0)
    return Writes(
        [~p4entity.P4CounterEntry(counter, index=index, data=zero) for index in range(size)]
    )


def read_register(context: ClientContext, register: str, index: int | None = None) -> Answer:
    """Return {"values": [...]}: the value of a register at `index`, or all its values."""
    require_object(context.connection.p4info.registers, register, "register")
    entities = context.connection.read(p4entity.P4RegisterEntry(register, index=index))
    return {"values": [entity.data for entity in entities]}


def write_register(context: ClientContext, register: str, index: int, value: Any) -> Writes:
    """Prepare to write the value of a register at `index`."""
    require_object(context.connection.p4info.registers, register, "register")
    entry = p4entity.P4RegisterEntry(register, index=index, data=parse_number(value))
    return Writes([~entry])


def reset_register(context: ClientContext, register: str) -> Writes:
    """Prepare to set all values of a register to 0."""
    size = require_object(context.connection.p4info.registers, register, "register").size
    return Writes(
        [~p4entity.P4RegisterEntry(register, index=index, data=0) for index in range(size)]
    )


def set_meter_rates(
    context: ClientContext,
    rates: Sequence[Mapping[str, Any]],
    meter: str | None = None,
    index: int | None = None,
    table: str | None = None,
    handle: int | None = None,
    match: Sequence[Any] | None = None,
    priority: int | None = None,
) -> Writes:
    """Prepare to set the rates of a meter, or, if `table` is given, of an entry's direct meter.

    If `index` is None, the rates of a meter are set at all indices.

    `rates` has the committed rate, then the peak rate. Each rate has "per_us", in packets or bytes
    per microsecond, and "burst". If `rates` is empty, the meter lets all packets pass.
    """
    config = _make_meter_config(rates)
    if table is not None:
        entry = to_table_entry(context, table, handle, match, priority)
        return Writes([~p4entity.P4DirectMeterEntry(table_entry=entry, config=config)])
    size = require_object(context.connection.p4info.meters, meter, "meter").size
    indices = range(size) if index is None else [index]
    return Writes(
        [~p4entity.P4MeterEntry(str(meter), index=number, config=config) for number in indices]
    )


def _make_meter_config(rates: Sequence[Mapping[str, Any]]) -> p4entity.P4MeterConfig | None:
    """Convert the rates of an operation to a meter config; return None, no limit, without rates."""
    if not rates:
        return None
    if len(rates) != 2:
        raise Refused(f"{len(rates)} rates for a meter; give two rates, or none", INVALID)
    committed, peak = rates
    return p4entity.P4MeterConfig(
        cir=round(committed["per_us"] * _US_PER_S),
        cburst=int(committed["burst"]),
        pir=round(peak["per_us"] * _US_PER_S),
        pburst=int(peak["burst"]),
    )


def add_to_value_set(context: ClientContext, set: str, value: Any) -> Writes:
    """Prepare to add a value to a value set.

    Values that other clients have added are lost, because P4Runtime replaces all values at once.
    """
    return _change_value_set(context, set, [*context.value_sets.get(set, []), parse_number(value)])


def clear_value_set(context: ClientContext, set: str) -> Writes:
    """Prepare to remove all values of a value set."""
    return _change_value_set(context, set, [])


def _change_value_set(context: ClientContext, name: str, values: list[int]) -> Writes:
    """Prepare to replace the values of a value set."""
    require_object(context.connection.p4info.value_sets, name, "value set")

    def finish() -> Answer:
        context.value_sets[name] = values
        return {}

    members = [p4entity.P4ValueSetMember(value) for value in values]
    entity = p4entity.P4ValueSetEntry(name, members=members)
    return Writes([~entity], finish, is_prerequisite=True)
