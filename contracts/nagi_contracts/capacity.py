# SPDX-License-Identifier: Apache-2.0
"""What a flow's path can carry during an interval: the objective of AGI.

Of a rate that does not change that is the rate. Of a trace of rates it is what the trace offers to
packets that arrive at the receiver during the interval: they left the link earlier, by the delay
behind it, which may be a trace, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from nagi_contracts.plan import DirectionPlan, FlowPlan, RunPlan


def bottleneck_bps(plan: RunPlan, flow: FlowPlan, start_s: float, end_s: float) -> int:
    """Return the smallest rate on a flow's path in bit/s, of traces the mean over what can arrive
    at the receiver from `start_s` until `end_s`, in seconds of the run."""
    start_ns, end_ns = round(start_s * 1e9), round(end_s * 1e9)
    path = [plan.channel(direction) for direction in flow.path]
    is_steady = all(channel.rate_trace is None and channel.delay_trace is None for channel in path)
    if end_ns <= start_ns or is_steady:
        return flow.bottleneck_bps
    offered = [offered_bits(path[index:], start_ns, end_ns) for index in range(len(path))]
    return min(round(bits * 10**9 / (end_ns - start_ns)) for bits in offered if bits is not None)


def offered_bits(path: Sequence[DirectionPlan], start_ns: int, end_ns: int) -> Fraction | None:
    """Return how many bits the first direction of `path` can send of what arrives at the end of the
    path in [start, end), if nothing waits on the way; None if it has no rate."""
    first = path[0]
    if first.rate_trace is None and first.rate_bps is None:
        return None
    if first.rate_bps is not None and all(channel.delay_trace is None for channel in path):
        return Fraction(first.rate_bps * (end_ns - start_ns), 10**9)
    windows = [(start_ns, end_ns)]
    for channel in reversed(path):
        windows = [each for window in windows for each in departures(channel, *window)]
    if first.rate_trace is None:
        sending_ns = sum(end - begin for begin, end in windows)
        return Fraction((first.rate_bps or 0) * sending_ns, 10**9)
    return sum((first.rate_trace.bits(begin, end) for begin, end in windows), Fraction(0))


def most_payload(plan: RunPlan, flow: FlowPlan, start_ns: int, end_ns: int) -> int | None:
    """Return the most payload in bytes that a flow's path can deliver in [start, end): what a
    direction offers then, what may wait behind it at the start, the tokens it may have saved, and
    the packet it has begun before. None where jitter, reordering or ARQ release several packets at
    once, and where queues have no end."""
    path = [plan.channel(direction) for direction in flow.path]
    if any(
        direction.is_hop or channel.jitter or channel.reordering or channel.arq
        for direction, channel in zip(flow.path, path, strict=True)
    ):
        return None
    payload = flow.full_payload(sends_datagrams=True)  # nobody knows of commands
    found = []
    waiting: float = 0  # bytes, in the queues downstream
    for index in range(len(path) - 1, -1, -1):
        bits = offered_bits(path[index:], start_ns, end_ns)
        if bits is None:
            continue
        extra = waiting + (path[index].burst_bytes or 0) + flow.packet_bytes
        found.append(float(bits / 8) + extra)
        queue = path[index].queue
        if queue is None:
            waiting = math.inf
        else:
            waiting += queue.bytes or (queue.packets or 0) * flow.packet_bytes
            waiting += flow.packet_bytes  # in transmission
    least = min(found, default=math.inf)
    return None if math.isinf(least) else math.ceil(least * payload / flow.packet_bytes)


def departures(channel: DirectionPlan, start_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """Yield the intervals in which packets enter a direction's delay that leave it in [start, end).
    Where order is kept, a packet waits for those before it once the delay has become smaller."""
    if channel.delay_trace is None:
        begin, end = (max(0, each - channel.delay_ns) for each in (start_ns, end_ns))
        if begin < end:
            yield begin, end
        return
    latest_ns = 0  # when the last packet sent so far arrives
    for at_ns, until_ns, delay_ns in channel.delay_trace.pieces(end_ns):
        free_ns = at_ns  # from when on no packet waits for others
        if channel.keep_order:
            free_ns = min(max(at_ns, latest_ns - delay_ns), until_ns)
            if at_ns < free_ns and start_ns <= latest_ns < end_ns:
                yield at_ns, free_ns
            latest_ns = max(latest_ns, until_ns + delay_ns)
        begin, end = max(free_ns, start_ns - delay_ns), min(until_ns, end_ns - delay_ns)
        if begin < end:
            yield begin, end
