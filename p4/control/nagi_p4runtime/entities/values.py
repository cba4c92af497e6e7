# SPDX-License-Identifier: Apache-2.0
"""Conversions and checks that several entities share: indices, counts, rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nagi_p4runtime.errors import Code, InvalidArgument, P4Error
from nagi_p4runtime.p4info import Array
from nagi_p4runtime.plan import MODIFY, UPDATE_TYPES
from nagi_p4runtime.protos import p4r


def require_modify(update_type: int, name: str) -> None:
    """Raise P4Error if an update of an entity that always exists is no MODIFY.

    Args:
        update_type: INSERT, MODIFY or DELETE.
        name: How the error message names the entity.
    """
    if update_type != MODIFY:
        raise InvalidArgument(f"{name}: {UPDATE_TYPES[update_type]}; it can be modified only")


def list_indices(message: Any, array: Array) -> Iterable[int]:
    """Return the index of an entity as a list, or all indices of the array if it gives none.

    Raises:
        P4Error: The array has no such index.
    """
    index = find_index(message, array)
    return range(array.size) if index is None else (index,)


def find_index(message: Any, array: Array) -> int | None:
    """Return the index of an entity, or None if it gives none.

    Raises:
        P4Error: The array has no such index.
    """
    if not message.HasField("index"):
        return None
    index: int = message.index.index
    if index < 0:
        raise InvalidArgument(f"{array.name}: index {index}; give 0 or more")
    if index >= array.size:
        raise P4Error(Code.OUT_OF_RANGE, f"{array.name}: index {index}; it has {array.size} cells")
    return index


def decode_counts(data: p4r.CounterData, name: str) -> dict[str, int]:
    """Return "packets" and "bytes" of an operation for a counter's data.

    Args:
        data: The data.
        name: How error messages name the counter or table.

    Raises:
        P4Error: A count is negative.
    """
    if data.packet_count < 0 or data.byte_count < 0:
        raise InvalidArgument(f"{name}: a count below 0; give 0 or more")
    return {"packets": data.packet_count, "bytes": data.byte_count}


def decode_rates(config: p4r.MeterConfig, name: str) -> list[dict[str, Any]]:
    """Return the "rates" of an operation, which are per microsecond, for a meter's config.

    Args:
        config: The config. Its rates are per second.
        name: How error messages name the meter or table.

    Raises:
        P4Error: v1model's meters do not support the config.
    """
    if min(config.cir, config.cburst, config.pir, config.pburst) < 0:
        raise InvalidArgument(f"{name}: a rate or burst below 0; give 0 or more")
    if config.eburst:
        raise P4Error(
            Code.UNIMPLEMENTED, f"{name}: eburst; v1model's meters have two rates, leave it out"
        )
    if config.pir < config.cir:
        raise InvalidArgument(
            f"{name}: pir is {config.pir}, below cir, {config.cir}; give cir or more"
        )
    return [
        {"per_us": config.cir / 1e6, "burst": config.cburst},
        {"per_us": config.pir / 1e6, "burst": config.pburst},
    ]


def write_rates(rates: Sequence[dict[str, Any]], config: p4r.MeterConfig) -> None:
    """Write the rates that a switch returned, which are per microsecond, into a meter's config."""
    committed, peak = rates[0], rates[-1]
    config.cir, config.cburst = round(committed["per_us"] * 1e6), committed["burst"]
    config.pir, config.pburst = round(peak["per_us"] * 1e6), peak["burst"]


def make_color_counts_error(name: str) -> P4Error:
    """Make the error for writing a meter's counters, which v1model does not have.

    Args:
        name: How the error message names the meter or table.
    """
    return P4Error(
        Code.UNIMPLEMENTED, f"{name}: meters do not count by color; leave the counter data out"
    )
