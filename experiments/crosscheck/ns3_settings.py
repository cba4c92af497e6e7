# SPDX-License-Identifier: Apache-2.0
"""Convert the plan of a run to settings for ns-3, which simulate.cpp reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nagi_contracts.errors import refuse
from nagi_contracts.plan import DirectionPlan, FlowPlan, LinkDirection, RunPlan

SAMPLE_NS = 100_000_000  # interval of samples of the window
# The queue of a link for which the plan has no queue.
UNLIMITED_PACKETS = 1_000_000
# In Linux, the retransmission timeout is at least the smoothed RTT plus this time. In ns-3, the
# minimum does not depend on the RTT.
LINUX_MIN_RTO_MARGIN_NS = 200_000_000
LINUX_INITIAL_WINDOW = 10


@dataclass(frozen=True)
class Counterpart:
    """The ns-3 configuration that corresponds to one of nagi's schemes."""

    type: str  # class of the congestion control in ns-3
    sack: bool
    recovery: str = "ns3::TcpPrrRecovery"


# Scheme of nagi -> configuration of ns-3. Without SACK, Linux recovers by RFC 6582 with PRR.
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


def make_ns3_settings(plan: RunPlan) -> dict[str, Any]:
    """Return the settings of simulate.cpp for a plan.

    Raises:
        InputError: ns-3 cannot simulate the plan.
    """
    if len(plan.flows) != 1 or plan.flows[0].traffic != "bulk":
        raise refuse(
            "the cross-check needs exactly one flow, with bulk traffic",
            "give an experiment with such a flow",
        )
    (flow,) = plan.flows
    if flow.scheme not in COUNTERPARTS:
        schemes = ", ".join(COUNTERPARTS)
        raise refuse(
            f"ns-3 has no counterpart of {flow.scheme}", f"leave it out; ns-3 has: {schemes}"
        )
    if any(hop.is_hop for hop in flow.path):
        raise refuse(
            "the flow crosses a shared medium, which the cross-check does not simulate",
            "give an experiment with links only",
        )
    if flow.max_window is not None:
        raise refuse("ns-3 has no cap on windows", "give an experiment without `max_window`")
    counterpart = COUNTERPARTS[flow.scheme]
    route = next(route for route in plan.node(flow.sender).routes if route.advmss is not None)
    receiver_routes = plan.node(flow.receiver).routes
    return {
        "seed": plan.seed,
        "payload_bytes": flow.payload_bytes,
        "warmup_ns": round((plan.measure.start_s - flow.start_s) * 1e9),
        "duration_ns": round((flow.end_s - flow.start_s) * 1e9),
        "sample_ns": SAMPLE_NS,
        "hops": [
            {
                "there": _make_direction_settings(plan, flow, hop),
                "back": _make_direction_settings(plan, flow, hop.reversed()),
            }
            for hop in flow.path
        ],
        "tcp": {
            "type": counterpart.type,
            "recovery": counterpart.recovery,
            "sack": counterpart.sack,
            "min_rto_ns": LINUX_MIN_RTO_MARGIN_NS + _compute_longest_rtt_ns(plan, flow),
            "initial_window": route.initcwnd or LINUX_INITIAL_WINDOW,
            "segments_an_ack": 1 if any(route.quickack for route in receiver_routes) else 2,
            "buffer_bytes": _compute_buffer_bytes(plan, flow),
        },
    }


def _make_direction_settings(plan: RunPlan, flow: FlowPlan, hop: LinkDirection) -> dict[str, Any]:
    """Return the settings of simulate.cpp for a direction of a link.

    Raises:
        InputError: ns-3 cannot simulate the direction.
    """
    channel = plan.channel(hop)
    where = f"link {hop.link} ({hop.direction})"
    if channel.rate_bps is None or not channel.has_steady_delay:
        raise refuse(
            f"{where} has no constant rate and delay",
            "give an experiment with constant rates and delays",
        )
    loss = channel.loss.loss_probability(flow.packet_bytes, channel.overhead_bytes)
    if loss is None and channel.loss.model != "none":
        raise refuse(f"{where}: ns-3 has no loss model {channel.loss.model}", "use bernoulli")
    return {
        "rate_bps": channel.rate_bps,
        "delay_ns": channel.delay_ns,
        "queue_packets": _find_queue_limit(channel, where),
        "loss_probability": loss or 0.0,
    }


def _find_queue_limit(channel: DirectionPlan, where: str) -> int:
    """Return the limit of a queue in packets, or UNLIMITED_PACKETS if the plan has no queue.

    Raises:
        InputError: The queue is not drop-tail with a limit in packets.
    """
    if channel.queue is None:
        return UNLIMITED_PACKETS
    if channel.queue.discipline != "drop_tail" or channel.queue.packets is None:
        raise refuse(
            f"{where}: ns-3's queue is drop-tail with a limit in packets", "use such a queue"
        )
    return channel.queue.packets


def _compute_longest_rtt_ns(plan: RunPlan, flow: FlowPlan) -> int:
    """Return the RTT with a full queue at the bottleneck; queues without a limit count as empty."""
    channels = [plan.channel(hop) for hop in flow.path]
    slowest = min(channels, key=lambda channel: channel.rate_bps or 0)
    packets = slowest.queue.packets if slowest.queue is not None else None
    queued_bits = (packets or 0) * flow.packet_bytes * 8
    return round((flow.base_rtt_s + queued_bits / flow.bottleneck_bps) * 1e9)


def _compute_buffer_bytes(plan: RunPlan, flow: FlowPlan) -> int:
    """Return the size of socket buffers: twice the packets on the path and in full queues.

    Such buffers do not limit TCP. Larger buffers make ns-3 slow.
    """
    channels = [plan.channel(hop) for hop in flow.path]
    queued_packets = sum(channel.queue.packets or 0 for channel in channels if channel.queue)
    bdp_packets = flow.bottleneck_bps * flow.base_rtt_s / 8 / flow.packet_bytes
    return 2 * flow.payload_bytes * math.ceil(queued_packets + bdp_packets)
