# SPDX-License-Identifier: Apache-2.0
"""Operations on registers, counters, meters and value sets of simple_switch.

Every function performs one operation; simple_switch.py maps the names of operations to functions.
The parameters of a function are the keys of the operation. The direct counter or meter of an entry
is named by `table` and `handle`, or by `table`, `match` and `priority`. An error of simple_switch,
such as an unknown name, is an exception of bmv2's client, which SimpleSwitch.perform() converts.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from nagi_p4 import simple_switch_answers as answers
from nagi_p4.operations import NOT_FOUND, Answer, Refused, parse_number
from nagi_p4.simple_switch_client import CONTEXT, Connection
from nagi_p4.simple_switch_pipeline import encode_number
from nagi_p4.simple_switch_tables import find_entry_handle


def read_register(connection: Connection, register: str, index: Optional[int] = None) -> Answer:
    """Return {"values": [...]}: the value of a register at `index`, or all its values."""
    if index is None:
        return {"values": connection.standard.bm_register_read_all(CONTEXT, register)}
    return {"values": [connection.standard.bm_register_read(CONTEXT, register, index)]}


def write_register(connection: Connection, register: str, index: int, value: Any) -> None:
    """Write the value of a register at `index`."""
    connection.standard.bm_register_write(CONTEXT, register, index, parse_number(value))


def reset_register(connection: Connection, register: str) -> None:
    """Set all values of a register to 0."""
    connection.standard.bm_register_reset(CONTEXT, register)


def read_counter(
    connection: Connection,
    counter: Optional[str] = None,
    index: Optional[int] = None,
    table: Optional[str] = None,
    handle: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
) -> Answer:
    """Return the counts of a counter, or, without `counter`, of an entry's direct counter.

    Returns:
        {"counts": [[packets, bytes], ...]} for a counter if `index` is None; {"packets": ...,
        "bytes": ...} for a counter at `index`, and for the direct counter of an entry.
    """
    if counter is not None and index is None:
        values = [
            connection.standard.bm_counter_read(CONTEXT, counter, number)
            for number in range(connection.pipeline.find_size("counter_arrays", counter))
        ]
        return {"counts": [[value.packets, value.bytes] for value in values]}
    if counter is not None:
        value = connection.standard.bm_counter_read(CONTEXT, counter, index)
    else:
        handle = find_entry_handle(connection, table or "", handle, match, priority)
        value = connection.standard.bm_mt_read_counter(CONTEXT, table, handle)
    return {"packets": value.packets, "bytes": value.bytes}


def write_counter(
    connection: Connection,
    packets: int,
    bytes: int,
    counter: Optional[str] = None,
    index: int = 0,
    table: Optional[str] = None,
    handle: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
) -> None:
    """Set the counts of a counter at `index`, or, without `counter`, of an entry's counter."""
    value = connection.modules["types"].BmCounterValue(bytes=bytes, packets=packets)
    if counter is not None:
        connection.standard.bm_counter_write(CONTEXT, counter, index, value)
    else:
        handle = find_entry_handle(connection, table or "", handle, match, priority)
        connection.standard.bm_mt_write_counter(CONTEXT, table, handle, value)


def reset_counter(connection: Connection, counter: str) -> None:
    """Set all values of a counter to 0."""
    connection.standard.bm_counter_reset_all(CONTEXT, counter)


def set_meter_rates(
    connection: Connection,
    rates: Sequence[Mapping[str, Any]],
    meter: Optional[str] = None,
    index: Optional[int] = None,
    table: Optional[str] = None,
    handle: Optional[int] = None,
    match: Optional[Sequence[Any]] = None,
    priority: int = 0,
) -> None:
    """Set the rates of a meter, or, without `meter`, of an entry's direct meter.

    If `index` is None, the rates of a meter are set at all indices.

    `rates` has the committed rate, then the peak rate. Each rate has "per_us", in packets or bytes
    per microsecond, and "burst". If `rates` is empty, the meter lets all packets pass.
    """
    make_config = connection.modules["types"].BmMeterRateConfig
    configs = [
        make_config(units_per_micros=rate["per_us"], burst_size=rate["burst"])
        for rate in rates or answers.NO_RATES
    ]
    if meter is None:
        handle = find_entry_handle(connection, table or "", handle, match, priority)
        connection.standard.bm_mt_set_meter_rates(CONTEXT, table, handle, configs)
    elif index is None:
        connection.standard.bm_meter_array_set_rates(CONTEXT, meter, configs)
    else:
        connection.standard.bm_meter_set_rates(CONTEXT, meter, index, configs)


def read_meter(connection: Connection, meter: str, index: Optional[int] = None) -> Answer:
    """Return {"rates": [...]} of a meter at `index`, or {"cells": [[...], ...]} of all indices."""
    read = connection.standard.bm_meter_get_rates
    if index is not None:
        return {"rates": answers.decode_rates(read(CONTEXT, meter, index))}
    size = connection.pipeline.find_size("meter_arrays", meter)
    return {"cells": [answers.decode_rates(read(CONTEXT, meter, number)) for number in range(size)]}


def add_to_value_set(connection: Connection, set: str, value: Any) -> None:
    """Add a value to a value set of the parser.

    Raises:
        Refused: There is no such value set, or `value` has more bits than the values of the set.
    """
    width = connection.pipeline.value_sets.get(set)
    if width is None:
        raise Refused(f"there is no value set {set}", NOT_FOUND)
    connection.standard.bm_parse_vset_add(CONTEXT, set, encode_number(value, width, set))


def clear_value_set(connection: Connection, set: str) -> None:
    """Remove all values of a value set."""
    connection.standard.bm_parse_vset_clear(CONTEXT, set)


def read_value_set(connection: Connection, set: str) -> Answer:
    """Return {"values": [...]} of a value set."""
    values = connection.standard.bm_parse_vset_get(CONTEXT, set)
    return {"values": [answers.decode_number(value) for value in values]}
