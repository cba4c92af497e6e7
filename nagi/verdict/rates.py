# SPDX-License-Identifier: Apache-2.0
"""Compare the rates of links, while packets wait, with the rates of the plan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from nagi_captures.identities import Nanoseconds
from nagi_contracts.errors import refuse
from nagi_contracts.plan import DirectionPlan

from nagi.records.packets import CHANNEL_LOSS, DELIVERED, HELD, Records, get_fates
from nagi.records.transmissions import RECEIVED, Transmissions

MIN_PERIOD_NS = 100_000_000  # shorter busy periods are too short to measure a rate
MIN_BACKLOG_NS = 500_000_000  # if the measured periods are shorter in total, there is no result


def measure_rate_error(
    replayed: Records, seen_ns: Nanoseconds, direction: DirectionPlan
) -> float | None:
    """Return the relative error of a direction's rate while packets wait, against the plan.

    The rate is measured between the first and the last packet seen in each busy period. Packets
    that were lost on the channel count, because they were transmitted.

    Args:
        replayed: The records of the direction's packets as the model replays them.
        seen_ns: When each packet was captured or sent after the link; 0 if it was not.
        direction: The plan of the direction.

    Returns:
        The error. None if the direction has no rate, if the rate or the delay changes, if no packet
        was transmitted, or if busy periods are too short.
    """
    rate = direction.rate_bps
    if rate is None or not _has_steady_times(direction):
        return None
    fate = get_fates(replayed)
    is_lost_after_queue = direction.loss.at == "egress"
    is_transmitted = (
        (fate == DELIVERED) | (fate == HELD) | (is_lost_after_queue & (fate == CHANNEL_LOSS))
    )
    transmitted, seen_ns = replayed[is_transmitted], seen_ns[is_transmitted]
    if not len(transmitted):
        return None
    bits = (transmitted["bytes"].astype(np.int64) + direction.overhead_bytes) * 8
    ends = transmitted["left_ns"] - np.where(
        get_fates(transmitted) == DELIVERED, direction.delay_ns, 0
    )
    starts = ends - bits * 10**9 // rate
    is_usable = (get_fates(transmitted) == DELIVERED) & (seen_ns > 0)
    return compare_rate(starts, ends, bits, is_usable, seen_ns, rate)


def measure_arq_rate_error(
    replayed: Records, seen_ns: Nanoseconds, direction: DirectionPlan, transmissions: Transmissions
) -> float | None:
    """Return the relative error of the rate of a direction with ARQ, as measure_rate_error() does.

    The bits of all transmissions count. Times are taken only from packets that ARQ did not hold
    back to keep the order, because only these packets leave when their transmission ends.

    Return None if the direction has no rate, if the rate or the delay changes, if there are no
    transmissions, or if busy periods are too short.

    Args:
        replayed: The records of the direction's packets as the model replays them.
        seen_ns: When each packet was captured or sent after the link; 0 if it was not.
        direction: The plan of the direction.
        transmissions: The transmissions of the direction.

    Raises:
        InputError: The packet of a transmission was not recorded.
    """
    rate = direction.rate_bps
    if rate is None or not _has_steady_times(direction):
        return None
    if not len(transmissions):
        return None
    index = find_packets(transmissions, replayed)
    packet, seen_ns = replayed[index], seen_ns[index]
    bits = (packet["bytes"].astype(np.int64) + direction.overhead_bytes) * 8
    was_not_held = packet["left_ns"] == transmissions["end_ns"] + direction.delay_ns
    is_usable = (
        (transmissions["outcome"] == RECEIVED) & was_not_held & (get_fates(packet) == DELIVERED)
    )
    return compare_rate(
        transmissions["start_ns"],
        transmissions["end_ns"],
        bits,
        is_usable & (seen_ns > 0),
        seen_ns,
        rate,
    )


def find_packets(transmissions: Transmissions, records: Records) -> npt.NDArray[np.int64]:
    """Return, for each transmission, the index of its packet in `records`.

    Transmissions and records are those of one direction.

    Raises:
        InputError: The packet of a transmission was not recorded.
    """
    order = np.argsort(records["index"], kind="stable")
    position = np.searchsorted(records["index"], transmissions["index"], sorter=order)
    is_in_range = position < len(order)
    index = (
        order[np.where(is_in_range, position, 0)]
        if len(order)
        else np.zeros(len(position), np.int64)
    )
    if not is_in_range.all() or (records["index"][index] != transmissions["index"]).any():
        raise refuse("the packets of some transmissions were not recorded", "run it again")
    return index.astype(np.int64)


def _has_steady_times(direction: DirectionPlan) -> bool:
    """Return whether a packet's delivery time and size determine the times of its transmission."""
    return (
        direction.has_steady_delay
        and direction.burst_bytes is None
        and direction.rate_adaptation is None
    )


def compare_rate(
    starts: Nanoseconds,
    ends: Nanoseconds,
    bits: npt.NDArray[np.int64],
    is_usable: npt.NDArray[np.bool_],
    seen_ns: Nanoseconds,
    rate: int,
) -> float | None:
    """Return the relative error of the observed rate of packets, against `rate`.

    All arrays have one element per transmission, in order of time. In a busy period, each
    transmission starts when the previous transmission ends.

    Args:
        starts: When each transmission should start, in ns.
        ends: When each transmission should end, in ns.
        bits: Length of each transmission.
        is_usable: Whether the end of each transmission was seen.
        seen_ns: When the end of each transmission was seen, if `is_usable`.
        rate: The planned rate in bit/s.

    Returns:
        The error, or None if busy periods are too short.
    """
    is_idle = starts[1:] - ends[:-1] > 1000  # more than rounding
    first = np.append(0, np.flatnonzero(is_idle) + 1)
    last = np.append(first[1:], len(bits)) - 1
    total_bits = np.cumsum(bits)
    measured_bits = measured_ns = 0
    for begin, end in zip(first, last, strict=True):
        if ends[end] - starts[begin] < MIN_PERIOD_NS:
            continue
        observed = begin + np.flatnonzero(is_usable[begin : end + 1])
        if len(observed) > 1:
            measured_bits += total_bits[observed[-1]] - total_bits[observed[0]]
            measured_ns += seen_ns[observed[-1]] - seen_ns[observed[0]]
    if measured_ns < MIN_BACKLOG_NS:
        return None
    return float(abs(measured_bits * 1e9 / measured_ns / rate - 1))
