# SPDX-License-Identifier: Apache-2.0
"""Conversions and checks of indices, counts and rates, which several entities need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import Array
from nagi_p4runtime.plan import MODIFY, UPDATE_TYPES
from nagi_p4runtime.protos import p4r


def require_modify(update_type: int, name: str) -> None:
    """Raise P4Error if an update is not MODIFY.

    This is for entities that always exist, such as the cells of a register.

    Args:
        update_type: INSERT, MODIFY or DELETE.
        name: Name of the entity, for the error message.
    """
    if update_type != MODIFY:
        raise InvalidArgument(f"{name}: {UPDATE_TYPES[update_type]} is not possible; use MODIFY")


def list_indices(message: Any, array: Array) -> Iterable[int]:
    """Return the indices to which a message applies.

    They are the index in the message, or all indices of the array if the message has no index.

    Raises:
        P4Error: The array has no such index.
    """
    index = find_index(message, array)
    return range(array.size) if index is None else (index,)


def find_index(message: Any, array: Array) -> int | None:
    """Return the index in a message, or None if the message has no index.

    Raises:
        P4Error: The array has no such index.
    """
    if not message.HasField("index"):
        return None
    index: int = message.index.index
    if index < 0:
        raise InvalidArgument(f"{array.name}: index {index}; give 0 or more")
    if index >= array.size:
        raise P4Error(
            Code.OUT_OF_RANGE, f"{array.name}: index {index}; give one below {array.size}"
        )
    return index


def decode_counts(data: p4r.CounterData, name: str) -> dict[str, int]:
    """Convert the data of a counter to a dict with "packets" and "bytes" of an operation.

    Args:
        data: The data.
        name: Name of the counter or table, for error messages.

    Raises:
        P4Error: A count is negative.
    """
    if data.packet_count < 0 or data.byte_count < 0:
        raise InvalidArgument(f"{name}: a count below 0; give 0 or more")
    return {"packets": data.packet_count, "bytes": data.byte_count}


def decode_rates(config: p4r.MeterConfig, name: str) -> list[dict[str, Any]]:
    """Convert the config of a meter to "rates" of an operation.

    Args:
        config: The config, with rates per second.
        name: Name of the meter or table, for error messages.

    Returns:
        The committed rate and the peak rate, per microsecond, as dicts with "per_us" and "burst".

    Raises:
        P4Error: v1model's meters do not support the config.
    """
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0:
        raise InvalidArgument(f"{name}: a rate or burst below 0; give 0 or more")
    if config.eburst:
        raise P4Error(
            Code.UNIMPLEMENTED,
            f"{name}: eburst; leave it out, because v1model's meters have only cir and pir",
        )
    if config.pir < config.cir:
        raise InvalidArgument(
            f"{name}: pir {config.pir} is below cir {config.cir}; give a pir of cir or more"
        )
    return [
        {"per_us": config.cir / 1e6, "burst": config.cburst},
        {"per_us": config.pir / 1e6, "burst": config.pburst},
    ]


def write_rates(rates: Sequence[dict[str, Any]], config: p4r.MeterConfig) -> None:
    """Write the rates of a meter into its config.

    Args:
        rates: The rates, per microsecond, in the form of Switch.read_meter(); at least one.
        config: The message to fill, with rates per second.
    """
    committed, peak = rates[0], rates[-1]
    config.cir, config.cburst = round(committed["per_us"] * 1e6), committed["burst"]
    config.pir, config.pburst = round(peak["per_us"] * 1e6), peak["burst"]


def make_color_counts_error(name: str) -> P4Error:
    """Make the error for counts per color, which v1model's meters do not have.

    Args:
        name: Name of the meter or table, for the error message.
    """
    return P4Error(
        Code.UNIMPLEMENTED, f"{name}: meters do not count by color; leave the counter data out"
    )
