# SPDX-License-Identifier: Apache-2.0
"""The capacity of a flow's path during an interval, which is the denominator of AGI.

The capacity of a link with a constant rate is this rate. The capacity of a link with a rate trace
is the mean of the trace over the time in which the link sends those packets that arrive at the
receiver during the interval. This time is earlier than the interval, by the delay from the link to
the receiver, which may change as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from nagi_contracts.plan import DirectionPlan, FlowPlan, RunPlan


def compute_bottleneck_bps(plan: RunPlan, flow: FlowPlan, start_s: float, end_s: float) -> int:
    """Return the smallest rate on a flow's path during an interval, in bit/s.

    A rate trace counts with its mean over the time in which the link sends the packets that arrive
    in the interval. If the interval is empty, or no direction of the path has a trace, return the
    flow's `bottleneck_bps`, the smallest mean rate on the path.

    Args:
        plan: The plan of the run.
        flow: A flow of the run.
        start_s: Start of the interval at the receiver, in seconds since the run began.
        end_s: End of the interval, in seconds since the run began.
    """
    start_ns, end_ns = round(start_s * 1e9), round(end_s * 1e9)
    path = [plan.channel(direction) for direction in flow.path]
    is_steady = all(channel.rate_trace is None and channel.delay_trace is None for channel in path)
    if end_ns <= start_ns or is_steady:
        return flow.bottleneck_bps
    bit_counts = [count_offered_bits(path[index:], start_ns, end_ns) for index in range(len(path))]
    return min(round(bits * 10**9 / (end_ns - start_ns)) for bits in bit_counts if bits is not None)


def count_offered_bits(
    path: Sequence[DirectionPlan], start_ns: int, end_ns: int
) -> Fraction | None:
    """Return the bits that a direction can send so that they reach the receiver in an interval.

    Args:
        path: The direction that sends, and all following directions up to the receiver. Packets are
            assumed not to wait in the queues of the following directions.
        start_ns: Start of the interval, by arrival at the receiver.
        end_ns: End of the interval, excluded.

    Returns:
        The number of bits, or None if the rate of the first direction is unlimited.
    """
    first = path[0]
    if first.rate_trace is None and first.rate_bps is None:
        return None
    if first.rate_bps is not None and all(channel.delay_trace is None for channel in path):
        return Fraction(first.rate_bps * (end_ns - start_ns), 10**9)
    # From the interval at the receiver back to the intervals in which the first direction sends.
    intervals = [(start_ns, end_ns)]
    for channel in reversed(path):
        intervals = [
            sending_interval
            for interval in intervals
            for sending_interval in iterate_sending_intervals(channel, *interval)
        ]
    if first.rate_trace is None:
        sending_ns = sum(end - begin for begin, end in intervals)
        return Fraction((first.rate_bps or 0) * sending_ns, 10**9)
    return sum((first.rate_trace.bits(begin, end) for begin, end in intervals), Fraction(0))


def max_payload(plan: RunPlan, flow: FlowPlan, start_ns: int, end_ns: int) -> int | None:
    """Return the largest payload in bytes that a flow's path can deliver in [start_ns, end_ns).

    Each direction of the path sets a limit, and the smallest limit counts. The limit is the sum of
    the bits that the direction can send so that they arrive in the interval, the packets that may
    wait in later queues at the start, the direction's full token bucket, and the packet that is in
    transmission at the start.

    Returns:
        The payload, or None if there is no limit, because the path has a medium, because jitter,
        reordering or ARQ may release several packets at once, or because a queue is unlimited.
    """
    path = [plan.channel(direction) for direction in flow.path]
    if any(
        direction.is_hop or channel.jitter or channel.reordering or channel.arq
        for direction, channel in zip(flow.path, path, strict=True)
    ):
        return None
    # A command may send datagrams, which hold more payload than segments.
    payload = flow.full_payload(sends_datagrams=True)
    limits = []
    waiting_bytes: float = 0  # in the queues of the later directions of the path
    for index in range(len(path) - 1, -1, -1):
        bits = count_offered_bits(path[index:], start_ns, end_ns)
        if bits is None:
            continue
        extra_bytes = waiting_bytes + (path[index].burst_bytes or 0) + flow.packet_bytes
        limits.append(float(bits / 8) + extra_bytes)
        queue = path[index].queue
        if queue is None:
            waiting_bytes = math.inf
        else:
            waiting_bytes += queue.bytes or (queue.packets or 0) * flow.packet_bytes
            waiting_bytes += flow.packet_bytes  # in transmission
    limit = min(limits, default=math.inf)
    return None if math.isinf(limit) else math.ceil(limit * payload / flow.packet_bytes)


def iterate_sending_intervals(
    channel: DirectionPlan, start_ns: int, end_ns: int
) -> Iterator[tuple[int, int]]:
    """Yield the intervals in which a direction sends the packets that arrive in [start_ns, end_ns).

    If the direction keeps the order of packets, packets that are sent after a decrease of the delay
    do not overtake earlier packets, but arrive together with them.

    Args:
        channel: The plan of the direction.
        start_ns: Start of the interval, in ns since the run began.
        end_ns: End of the interval, excluded.
    """
    if channel.delay_trace is None:
        enter_ns = max(0, start_ns - channel.delay_ns)
        until_ns = max(0, end_ns - channel.delay_ns)
        if enter_ns < until_ns:
            yield enter_ns, until_ns
        return
    latest_ns = 0  # latest arrival of a packet sent so far
    for piece_ns, until_ns, delay_ns in channel.delay_trace.iterate_pieces(end_ns):
        free_ns = piece_ns  # packets sent from this instant on do not wait for earlier packets
        if channel.keep_order:
            free_ns = min(max(piece_ns, latest_ns - delay_ns), until_ns)
            if piece_ns < free_ns and start_ns <= latest_ns < end_ns:
                yield piece_ns, free_ns
            latest_ns = max(latest_ns, until_ns + delay_ns)
        begin, end = max(free_ns, start_ns - delay_ns), min(until_ns, end_ns - delay_ns)
        if begin < end:
            yield begin, end
