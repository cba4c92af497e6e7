# SPDX-License-Identifier: Apache-2.0
"""The metrics, each with its definition, unit and source.

Achievement metrics: Lee, Bae, Koo, Chung, "Measuring Achievement of TCP Schemes over Heterogeneous
Wireless Networks", 2008, section 3. Goodput: RFC 2647 section 3.17 and the paper's introduction.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right, insort

import numpy as np

from nagi_reports.capture import Column, Packets


def data_packets(packets: Packets, sender: str, receiver: str, port: int) -> Packets:
    """The packets of a flow that carry payload, from `sender` to `port` of `receiver`.

    If there were several connections, those of the one with most payload.
    """
    mine = (
        (packets.source == int(ipaddress.IPv4Address(sender)))
        & (packets.destination == int(ipaddress.IPv4Address(receiver)))
        & (packets.destination_port == port)
        & (packets.payload > 0)
    )
    found = packets.where(mine)
    ports, index = np.unique(found.source_port, return_inverse=True)
    if len(ports) > 1:
        most = np.argmax(np.bincount(index, weights=found.payload))
        found = found.where(found.source_port == ports[most])
    return found


def unwrapped(sequence: Column) -> Column:
    """Sequence numbers without the wrap at 2^32, counted from the first packet's.

    Right as long as neighbouring packets are less than 2^31 bytes apart (RFC 9293 section 3.4).
    """
    if len(sequence) == 0:
        return sequence
    steps = np.diff(sequence)
    steps = (steps + 2**31) % 2**32 - 2**31
    return np.concatenate(([0], np.cumsum(steps)))


def first_time_bytes(sequence: Column, payload: Column) -> Column:
    """For each packet, how many of its payload bytes were in no packet before it.

    `sequence` as from unwrapped().
    """
    ends = sequence + payload
    highest_before = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]))
    new = np.where(sequence >= highest_before, payload, 0)
    # The others reach below the highest byte seen: retransmissions, reordering. What they bring
    # is what falls into holes; the holes are kept as disjoint, sorted intervals. What lies before
    # the first packet is one, too.
    holes: list[tuple[int, int]] = [(-(2**62), 0)]
    for index in np.flatnonzero((sequence != highest_before) & (np.arange(len(ends)) > 0)):
        start, end, highest = int(sequence[index]), int(ends[index]), int(highest_before[index])
        if start > highest:
            insort(holes, (highest, start))
            continue
        new[index] = max(0, end - highest) + _fill(holes, start, min(end, highest))
    return new


def _fill(holes: list[tuple[int, int]], start: int, end: int) -> int:
    """Takes [start, end) out of `holes`; returns how much of it was in them."""
    filled = 0
    at = max(0, bisect_right(holes, (start,)) - 1)
    while at < len(holes) and holes[at][0] < end:
        low, high = holes[at]
        if high <= start:
            at += 1
            continue
        filled += min(high, end) - max(low, start)
        rest = [(low, start)] if low < start else []
        rest += [(end, high)] if high > end else []
        holes[at : at + 1] = rest
        at += len(rest)
    return filled


def goodput_bps(received: Packets, start_ns: int, end_ns: int) -> float:
    """Goodput g in bit/s: payload bytes delivered to the receiver for the first time during
    [start, end), x 8, divided by the interval.

    `received`: the flow's data packets in the receiver's capture, whole (what came before `start`
    tells what is new after it).
    """
    new = first_time_bytes(unwrapped(received.sequence), received.payload)
    inside = (received.time_ns >= start_ns) & (received.time_ns < end_ns)
    return float(new[inside].sum()) * 8e9 / (end_ns - start_ns)


def retransmitted_segments(sent: Packets) -> int:
    """How many data segments carried bytes that had been sent before (RFC 4898,
    tcpEStatsPerfSegsRetrans). `sent`: the flow's data packets in the sender's capture."""
    sequence = unwrapped(sent.sequence)
    new = first_time_bytes(sequence, sent.payload)
    return int(np.count_nonzero(new < sent.payload))


def agi(goodput: float, bottleneck: float) -> float:
    """Achieved goodput index a = g / b (the paper's equation 1). Both in bit/s.

    b is the smallest configured rate on the flow's path.
    """
    return goodput / bottleneck


def agi_ceiling(payload_bytes: int, packet_bytes: int) -> float:
    """The largest AGI that headers permit: payload / IP bytes of a full-size segment."""
    return payload_bytes / packet_bytes
