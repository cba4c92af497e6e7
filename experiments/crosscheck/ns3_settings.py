# SPDX-License-Identifier: Apache-2.0
"""Convert the plan of a run to settings for ns-3, which simulate.cpp reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nagi_contracts.errors import refuse
from nagi_contracts.plan import DirectionPlan, FlowPlan, LinkDirection, RunPlan

SAMPLE_NS = 100_000_000  # between samples of the window
# The queue of a link for which the plan has no queue.
UNLIMITED_PACKETS = 1_000_000
# Linux adds at least this time to the smoothed RTT; ns-3 has a minimum of the whole timeout.
LINUX_MIN_RTO_MARGIN_NS = 200_000_000
LINUX_INITIAL_WINDOW = 10


@dataclass(frozen=True)
class Counterpart:
    """The ns-3 configuration that corresponds to one of nagi's schemes."""

    type: str  # of the congestion control
    sack: bool
    recovery: str = "ns3::TcpPrrRecovery"


# Scheme of nagi -> ns-3. Linux's recovery without SACK is that of RFC 6582 with PRR.
COUNTERPARTS = {
    "newreno": Counterpart("ns3::TcpNewReno", sack=False),
    "sack": Counterpart("ns3::TcpLinuxReno", sack=True),
    "cubic": Counterpart("ns3::TcpCubic", sack=True),
    "vegas": Counterpart("ns3::TcpVegas", sack=False, recovery="ns3::TcpClassicRecovery"),
    "vegas-linux": Counterpart("ns3::TcpVegas", sack=True),
    "westwood": Counterpart("ns3::TcpWestwoodPlus", sack=False, recovery="ns3::TcpClassicRecovery"),
    "westwood+": Counterpart("ns3::TcpWestwoodPlus", sack=True),
    "veno": Counterpart("ns3::TcpVeno", sack=True),
}


def settings_of(plan: RunPlan) -> dict[str, Any]:
    """Return the settings of simulate.cpp for a plan.

    Raises:
        InputError: ns-3 cannot simulate the plan.
    """
    if len(plan.flows) != 1 or plan.flows[0].traffic != "bulk":
        raise refuse("the cross-check is of one bulk flow", "give an experiment with one")
    (flow,) = plan.flows
    if flow.scheme not in COUNTERPARTS:
        known = ", ".join(COUNTERPARTS)
        raise refuse(f"ns-3 has nothing like {flow.scheme}", f"leave it out; there are: {known}")
    if any(hop.is_hop for hop in flow.path):
        raise refuse("the cross-check is over links, and the flow crosses a medium", "give links")
    if flow.max_window is not None:
        raise refuse("ns-3 has no cap on windows", "give an experiment without `max_window`")
    counterpart = COUNTERPARTS[flow.scheme]
    route = next(route for route in plan.node(flow.sender).routes if route.advmss is not None)
    receiver = plan.node(flow.receiver).routes
    return {
        "seed": plan.seed,
        "payload_bytes": flow.payload_bytes,
        "warmup_ns": round((plan.measure.start_s - flow.start_s) * 1e9),
        "duration_ns": round((flow.end_s - flow.start_s) * 1e9),
        "sample_ns": SAMPLE_NS,
        "hops": [
            {
                "there": _direction(plan, flow, hop),
                "back": _direction(plan, flow, hop.reversed()),
            }
            for hop in flow.path
        ],
        "tcp": {
            "type": counterpart.type,
            "recovery": counterpart.recovery,
            "sack": counterpart.sack,
            "min_rto_ns": LINUX_MIN_RTO_MARGIN_NS + _longest_rtt_ns(plan, flow),
            "initial_window": route.initcwnd or LINUX_INITIAL_WINDOW,
            "segments_an_ack": 1 if any(each.quickack for each in receiver) else 2,
            "buffer_bytes": _buffer_bytes(plan, flow),
        },
    }


def _direction(plan: RunPlan, flow: FlowPlan, hop: LinkDirection) -> dict[str, Any]:
    channel = plan.channel(hop)
    where = f"link {hop.link} ({hop.direction})"
    if channel.rate_bps is None or not channel.has_steady_delay:
        raise refuse(f"{where} has no constant rate and delay", "ns-3's links have")
    loss = channel.loss.loss_probability(flow.packet_bytes, channel.overhead_bytes)
    if loss is None and channel.loss.model != "none":
        raise refuse(f"{where}: ns-3 has no losses like {channel.loss.model}", "use bernoulli")
    return {
        "rate_bps": channel.rate_bps,
        "delay_ns": channel.delay_ns,
        "queue_packets": _queue_packets(channel, where),
        "loss_probability": loss or 0.0,
    }


def _queue_packets(channel: DirectionPlan, where: str) -> int:
    if channel.queue is None:
        return UNLIMITED_PACKETS
    if channel.queue.discipline != "drop_tail" or channel.queue.packets is None:
        raise refuse(f"{where}: ns-3 would have another queue", "use drop-tail, in packets")
    return channel.queue.packets


def _longest_rtt_ns(plan: RunPlan, flow: FlowPlan) -> int:
    """Return the RTT with a full queue at the bottleneck."""
    slowest = min((plan.channel(hop) for hop in flow.path), key=lambda each: each.rate_bps or 0)
    packets = slowest.queue.packets if slowest.queue is not None else None
    queued_bits = (packets or 0) * flow.packet_bytes * 8
    return round((flow.base_rtt_s + queued_bits / flow.bottleneck_bps) * 1e9)


def _buffer_bytes(plan: RunPlan, flow: FlowPlan) -> int:
    """Return the size of socket buffers: twice the packets on the path and in its queues.

    Such buffers limit nothing. Larger buffers make ns-3 slow.
    """
    channels = [plan.channel(hop) for hop in flow.path]
    queued = sum(each.queue.packets or 0 for each in channels if each.queue is not None)
    on_the_way = flow.bottleneck_bps * flow.base_rtt_s / 8 / flow.packet_bytes
    return 2 * flow.payload_bytes * math.ceil(queued + on_the_way)
