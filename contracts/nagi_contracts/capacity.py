# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path during an interval, the denominator of AGI.

For a constant rate, the capacity is the rate. For a trace of rates, it is what the trace offers to
the packets that arrive at the receiver during the interval. These packets left the link earlier, by
the delay of the rest of the path, which may follow a trace as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from nagi_contracts.plan import DirectionPlan, FlowPlan, RunPlan


def compute_bottleneck_bps(plan: RunPlan, flow: FlowPlan, start_s: float, end_s: float) -> int:
    """Return the smallest rate on a flow's path in bit/s.

    A trace counts with its mean over the packets that can arrive at the receiver in the interval.

    Args:
        plan: The run.
        flow: A flow of the run.
        start_s: Start of the interval, in seconds since the run began.
        end_s: End of the interval.
    """
    start_ns, end_ns = round(start_s * 1e9), round(end_s * 1e9)
    path = [plan.channel(direction) for direction in flow.path]
    is_steady = all(channel.rate_trace is None and channel.delay_trace is None for channel in path)
    if end_ns <= start_ns or is_steady:
        return flow.bottleneck_bps
    offered = [count_offered_bits(path[index:], start_ns, end_ns) for index in range(len(path))]
    return min(round(bits * 10**9 / (end_ns - start_ns)) for bits in offered if bits is not None)


def count_offered_bits(
    path: Sequence[DirectionPlan], start_ns: int, end_ns: int
) -> Fraction | None:
    """Return the bits that the first direction of a path can send for a given time of arrival.

    Args:
        path: The directions from the one in question to the receiver. Nothing waits behind the
            first.
        start_ns: Start of the interval of arrivals at the end of the path.
        end_ns: End of the interval, excluded.

    Returns:
        The bits, or None if the first direction has no rate.
    """
    first = path[0]
    if first.rate_trace is None and first.rate_bps is None:
        return None
    if first.rate_bps is not None and all(channel.delay_trace is None for channel in path):
        return Fraction(first.rate_bps * (end_ns - start_ns), 10**9)
    windows = [(start_ns, end_ns)]
    for channel in reversed(path):
        windows = [
            departure for window in windows for departure in iterate_departures(channel, *window)
        ]
    if first.rate_trace is None:
        sending_ns = sum(end - begin for begin, end in windows)
        return Fraction((first.rate_bps or 0) * sending_ns, 10**9)
    return sum((first.rate_trace.bits(begin, end) for begin, end in windows), Fraction(0))


def max_payload(plan: RunPlan, flow: FlowPlan, start_ns: int, end_ns: int) -> int | None:
    """Return the largest payload in bytes that a flow's path can deliver in [start, end).

    It consists of the bits that a direction offers in the interval, the packets that may wait
    behind it at the start, the tokens that it may have saved, and the packet that it began earlier.

    Returns:
        The payload, or None if there is no such limit: jitter, reordering or ARQ may release
        several packets at once, or a queue is unlimited.
    """
    path = [plan.channel(direction) for direction in flow.path]
    if any(
        direction.is_hop or channel.jitter or channel.reordering or channel.arq
        for direction, channel in zip(flow.path, path, strict=True)
    ):
        return None
    payload = flow.full_payload(sends_datagrams=True)  # whether commands do is unknown
    limits = []
    waiting: float = 0  # bytes in the queues downstream
    for index in range(len(path) - 1, -1, -1):
        bits = count_offered_bits(path[index:], start_ns, end_ns)
        if bits is None:
            continue
        extra = waiting + (path[index].burst_bytes or 0) + flow.packet_bytes
        limits.append(float(bits / 8) + extra)
        queue = path[index].queue
        if queue is None:
            waiting = math.inf
        else:
            waiting += queue.bytes or (queue.packets or 0) * flow.packet_bytes
            waiting += flow.packet_bytes  # in transmission
    limit = min(limits, default=math.inf)
    return None if math.isinf(limit) else math.ceil(limit * payload / flow.packet_bytes)


def iterate_departures(
    channel: DirectionPlan, start_ns: int, end_ns: int
) -> Iterator[tuple[int, int]]:
    """Yield the intervals in which packets enter a delay that leave it in [start, end).

    If the direction keeps the packets' order, a packet waits for earlier packets after the delay
    has decreased.
    """
    if channel.delay_trace is None:
        enter_ns = max(0, start_ns - channel.delay_ns)
        until_ns = max(0, end_ns - channel.delay_ns)
        if enter_ns < until_ns:
            yield enter_ns, until_ns
        return
    latest_ns = 0  # arrival of the last packet sent so far
    for piece_ns, until_ns, delay_ns in channel.delay_trace.iterate_pieces(end_ns):
        free_ns = piece_ns  # from this instant on, no packet waits for others
        if channel.keep_order:
            free_ns = min(max(piece_ns, latest_ns - delay_ns), until_ns)
            if piece_ns < free_ns and start_ns <= latest_ns < end_ns:
                yield piece_ns, free_ns
            latest_ns = max(latest_ns, until_ns + delay_ns)
        begin, end = max(free_ns, start_ns - delay_ns), min(until_ns, end_ns - delay_ns)
        if begin < end:
            yield begin, end
