# SPDX-License-Identifier: Apache-2.0
"""Estimates time and disk of a campaign before it begins.

Packets. A flow sends full-size packets from its start to the end of the traffic. Their number is
the minimum of:

- an equal share of the rate of its bottleneck, among all flows with this bottleneck;
- an equal share of each medium on its path, without collisions; of four consecutive hops, only one
  is busy at a time;
- one window per base RTT, if the window has a maximum;
- the data that its application sends;
- with independent losses of probability p on its path: 1 / p packets before the first loss, then
  1.5 * sqrt(3/2) / sqrt(p) packets per base RTT (Mathis, Semke, Mahdavi, Ott, ACM CCR 27(3), 1997;
  the factor 1.5 is for faster schemes). Schemes that do not respond to loss are still faster.

Receivers acknowledge every packet, or every second packet with delayed ACKs.

Disk. The estimate has these assumptions:

- A captured packet takes 16 bytes of record header and the captured part of its frame: at most the
  snap length, 128 bytes. An ACK has 78 bytes, with timestamps and one SACK block.
- zstd compresses captures of headers to 15 % (12 % to 17 % were measured).
- nagi-link records 32 bytes per packet and link, which take 17 bytes in packets.parquet. Links that
  are radios or have ARQ record the same number of bytes for transmissions, in addition; repetitions
  are neglected. Media record one transmission per frame: RTS, CTS, DATA and ACK.
- A monitor captures 160 bytes of a DATA frame, and 52 bytes of any other frame.
- TCP_INFO takes 25 bytes per sample, and all other files 70 kB per run.
- During a campaign, raw records exist in addition to the kept files. In real time, these are the
  records of all runs in a batch. In virtual time, these are the records of the current runs, and of
  the same number of runs that wait for their metrics.

The kept bytes are multiplied by the ratio of actual to estimated bytes of earlier campaigns
(pace.py).

Time. In real time, a run takes its timeline, and the sum over all runs is divided by the number of
parallel runs. In the netns lab, the time to set up the lab (about 10 s) and to compute metrics is
not included. In the physical lab, each shape (nodes and links) takes 6 s and 0.5 s per host, each
batch 5 s and 0.2 s per host, and each run 0.4 s for its certificate and metrics, in addition. These
numbers were measured with four hosts in a local network.

In virtual time, a run takes 1.15 s, plus 0.25 s per node, 5 ms per second of its timeline and
5.5 us per packet and link. This includes certificate and metrics. A campaign takes 3 s and 0.13 s
per node in addition to its runs. These numbers were measured with stars of 1 to 60 hosts on one
machine, and are multiplied by the ratio of actual to estimated time of earlier campaigns (pace.py).
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nagi_contracts.errors import refuse
from nagi_contracts.media import FRAMING_BYTES, MediumPlan
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Keep
from nagi_contracts.units import format_bytes, format_count

from nagi.campaign import pace
from nagi.campaign.batches import BATCH_S
from nagi.labs.lab import BETWEEN_RUNS_S
from nagi.labs.names import PHYSICAL, VIRTUAL
from nagi.labs.shape import Shape
from nagi.plan.flow_paths import MAX_HOPS_IN_TURN

ETHERNET_BYTES = 14
ACK_BYTES = 78 - ETHERNET_BYTES
PCAP_RECORD_BYTES = 16
COMPRESSED_SHARE = 0.15
RECORD_BYTES = 32
PARQUET_BYTES = 17
SAMPLE_BYTES = 25
OTHER_BYTES = 70_000
SCHEME_FACTOR = 1.5
MONITORED_DATA_BYTES, MONITORED_BYTES = 160, 52
VIRTUAL_RUN_S, VIRTUAL_NODE_S, VIRTUAL_SECOND_S, VIRTUAL_CROSSING_S = 1.15, 0.25, 0.005, 5.5e-6
PHYSICAL_LAB_S, PHYSICAL_LAB_HOST_S = 6.0, 0.5
PHYSICAL_BATCH_S, PHYSICAL_BATCH_HOST_S, PHYSICAL_RUN_S = 5.0, 0.2, 0.4
VIRTUAL_CAMPAIGN_S, VIRTUAL_NODE_SETUP_S = 3.0, 0.13
MORE_DISK = (
    "give a directory on another disk with --out, execute fewer runs with --only, or keep fewer "
    "files with `keep: {captures: none, packets: drop}` in the experiment"
)


_Estimate = TypeVar("_Estimate")


@dataclass(frozen=True)
class RunSize:
    """The disk space of a run, in bytes."""

    raw: int  # as recorded
    kept: int  # after `keep` has removed and compressed files


def estimate_size(plan: RunPlan, keep: Keep) -> RunSize:
    """Return the estimated disk space of a run of `plan`, without the corrections of pace.py."""
    packets_by_flow = _count_packets_by_flow(plan)
    raw_captures = kept_captures = 0
    for capture in plan.captures:
        capture_bytes, is_kept = 0, False
        for flow in plan.flows:
            sends = (flow.sender, flow.path[0].link) == (capture.node, capture.link)
            receives = (flow.receiver, flow.path[-1].link) == (capture.node, capture.link)
            if sends or receives:
                frames = [
                    (1.0, flow.packet_bytes + ETHERNET_BYTES),
                    (_count_acks_per_packet(plan, flow), ACK_BYTES + ETHERNET_BYTES),
                ]
                bytes_per_packet = sum(
                    count * (PCAP_RECORD_BYTES + min(capture.snap_bytes, size))
                    for count, size in frames
                )
                capture_bytes += round(packets_by_flow[flow.name] * bytes_per_packet)
                is_kept |= keep.captures == "both"
                is_kept |= keep.captures == "sender" and sends
                is_kept |= keep.captures == "receiver" and receives
        raw_captures += capture_bytes
        if is_kept:
            kept_captures += round(
                capture_bytes * (COMPRESSED_SHARE if keep.compress == "zstd" else 1)
            )
    crossings = _count_crossings(plan, packets_by_flow) + _count_crossings(
        plan, packets_by_flow, _list_recorded_links(plan)
    )
    crossings += sum(
        _count_frames(medium, plan) * _count_crossings(plan, packets_by_flow, {medium.name})
        for medium in plan.media
    )
    raw_monitors = sum(
        _estimate_monitor_bytes(medium, plan, packets_by_flow) for medium in plan.media
    )
    kept_monitors = round(raw_monitors * (COMPRESSED_SHARE if keep.compress == "zstd" else 1))
    other_bytes = OTHER_BYTES + sum(
        round((flow.end_s - flow.start_s) / plan.tcp_info_interval_s) * SAMPLE_BYTES
        for flow in plan.flows
    )
    table_bytes = crossings * PARQUET_BYTES
    return RunSize(
        raw=raw_captures + raw_monitors + crossings * RECORD_BYTES + table_bytes + other_bytes,
        kept=kept_captures
        + kept_monitors
        + (table_bytes if keep.packets == "keep" else 0)
        + other_bytes,
    )


@dataclass(frozen=True)
class Disk:
    """The disk space of a campaign, in bytes.

    `kept` remains after the campaign. `meanwhile` is needed in addition while runs are executed.
    """

    kept: int = 0
    meanwhile: int = 0

    @property
    def peak(self) -> int:
        """The maximum number of bytes during the campaign."""
        return self.kept + self.meanwhile

    def describe(self) -> str:
        """Return a phrase that follows "disk: about" in messages."""
        return f"{format_bytes(self.kept)}, at most {format_bytes(self.peak)} during the campaign"


def estimate_disk(
    plans: list[RunPlan], keep: Keep, jobs: int, lab: str, paces: pace.Paces | None = None
) -> Disk:
    """Return the estimated disk space of a campaign.

    Args:
        plans: The plans of the campaign; without plans, the result is 0.
        keep: The files that are kept after each run.
        jobs: The number of parallel runs.
        lab: The name of the lab.
        paces: Corrections from earlier campaigns (pace.py); None reads those of this machine.
    """
    if not plans:
        return Disk()
    paces = paces or pace.read_paces()
    ratio = paces.find_disk_ratio(plans[0])
    sizes = _map_points(lambda plan: estimate_size(plan, keep), plans)
    runs_per_cell = 2
    if lab != VIRTUAL:
        runs_per_cell = max(math.ceil(BATCH_S / estimate_seconds(plan)) for plan in plans)
    largest = sorted((size.raw for size in sizes), reverse=True)[: jobs * runs_per_cell]
    return Disk(round(sum(size.kept for size in sizes) * ratio), round(sum(largest) * ratio))


def estimate_seconds(plan: RunPlan) -> float:
    """Return how long a run in real time occupies a cell, in seconds."""
    return plan.timeline.end_s + BETWEEN_RUNS_S


def estimate_virtual_seconds(plan: RunPlan) -> float:
    """Return the estimated wall time of a run in virtual time, in seconds.

    The corrections of pace.py are not included.
    """
    crossings = _count_crossings(plan, _count_packets_by_flow(plan))
    return (
        VIRTUAL_RUN_S
        + VIRTUAL_NODE_S * len(plan.nodes)
        + VIRTUAL_SECOND_S * plan.timeline.end_s
        + VIRTUAL_CROSSING_S * crossings
    )


def make_time_estimator(lab: str, paces: pace.Paces | None = None) -> Callable[[RunPlan], float]:
    """Return a function that estimates the wall time of a run in a lab, in seconds.

    Args:
        lab: The name of the lab.
        paces: Corrections from earlier campaigns (pace.py); None reads those of this machine.
    """
    if lab != VIRTUAL:
        return estimate_seconds
    paces = paces or pace.read_paces()
    return lambda plan: estimate_virtual_seconds(plan) * paces.find_time_ratio(plan)


def estimate_time(
    plans: list[RunPlan], jobs: int, lab: str, paces: pace.Paces | None = None
) -> float:
    """Return the estimated wall time of a campaign, in seconds; 0 without plans.

    Args:
        plans: The plans of the campaign.
        jobs: The number of parallel runs.
        lab: The name of the lab.
        paces: Corrections from earlier campaigns (pace.py); None reads those of this machine.
    """
    if not plans:
        return 0.0
    paces = paces or pace.read_paces()
    seconds = _map_points(make_time_estimator(lab, paces), plans)
    runs_s = max(sum(seconds) / jobs, *seconds)
    if lab == PHYSICAL:
        batches = math.ceil(round(runs_s / max(BATCH_S, *seconds), 6))
        return runs_s + _estimate_orchestration(plans, jobs, batches)
    if lab != VIRTUAL:
        return runs_s
    nodes = max(len(plan.nodes) for plan in plans)
    setup_s = VIRTUAL_CAMPAIGN_S + VIRTUAL_NODE_SETUP_S * nodes
    return runs_s + setup_s * paces.find_time_ratio(plans[0])


def _estimate_orchestration(plans: list[RunPlan], jobs: int, batches: int) -> float:
    """Return the time in seconds that Ansible needs for a campaign in the physical lab.

    `batches` is the number of batches if all plans had the same shape.
    """
    shapes = set(_map_points(Shape.from_plan, plans))
    hosts = jobs * max(len(shape.nodes) + 1 for shape in shapes)  # and an emulator per cell
    labs_s = len(shapes) * (PHYSICAL_LAB_S + PHYSICAL_LAB_HOST_S * hosts)
    batches_s = max(len(shapes), batches) * (PHYSICAL_BATCH_S + PHYSICAL_BATCH_HOST_S * hosts)
    return labs_s + batches_s + PHYSICAL_RUN_S * len(plans)


def _map_points(
    estimate: Callable[[RunPlan], _Estimate], plans: Iterable[RunPlan]
) -> list[_Estimate]:
    """Return the estimate of each plan. Repeats of a point have the same estimate.

    The estimate of a plan without `point_id` is always computed.
    """
    estimates: dict[str, _Estimate] = {}
    values = []
    for plan in plans:
        if not plan.point_id or plan.point_id not in estimates:
            estimates[plan.point_id] = estimate(plan)
        values.append(estimates[plan.point_id])
    return values


def read_free_disk(out: Path) -> int:
    """Return the free bytes of the file system of `out`. The directory need not exist yet."""
    existing = out.absolute()
    while not existing.exists():
        existing = existing.parent
    return shutil.disk_usage(existing).free


def require_disk(run_count: int, needed: Disk, out: Path, free: int) -> None:
    """Raise InputError if a campaign needs more disk space than is free.

    Args:
        run_count: The number of runs, for the message.
        needed: The disk space of the campaign.
        out: The directory of the campaign, for the message.
        free: The free bytes of its file system.
    """
    if needed.peak > free:
        raise refuse(
            f"{format_count(run_count, 'run')} need about {format_bytes(needed.peak)} of disk, and "
            f"{format_bytes(free)} are free there",
            MORE_DISK,
            file=str(out),
        )


def _find_bottleneck(plan: RunPlan, flow: FlowPlan) -> tuple[str, str]:
    """Return link and direction of the first hop with the minimum rate on a flow's path."""

    def read_rate(direction: LinkDirection) -> float:
        mean_rate_bps = plan.channel(direction).mean_rate_bps
        return math.inf if mean_rate_bps is None else mean_rate_bps

    direction = min(flow.path, key=read_rate)
    return direction.link, direction.direction


def _count_packets_by_flow(plan: RunPlan) -> dict[str, float]:
    """Return the number of full-size packets that each flow sends."""
    bottlenecks = {flow.name: _find_bottleneck(plan, flow) for flow in plan.flows}
    flow_counts = Counter(bottlenecks.values())
    return {
        flow.name: _count_packets(plan, flow, flow_counts[bottlenecks[flow.name]])
        for flow in plan.flows
    }


def _count_frames(medium: MediumPlan, plan: RunPlan) -> int:
    """Return the number of frames by which stations exchange a full-size packet, ACK included."""
    packet_bytes = max(flow.packet_bytes for flow in plan.flows)
    threshold = medium.rts_threshold_bytes
    return 4 if threshold is not None and packet_bytes + FRAMING_BYTES > threshold else 2


def _estimate_monitor_bytes(
    medium: MediumPlan, plan: RunPlan, packets_by_flow: dict[str, float]
) -> int:
    """Return the size of a medium's monitor capture in bytes; 0 without a monitor."""
    if medium.monitor is None:
        return 0
    bytes_per_packet = MONITORED_DATA_BYTES + (_count_frames(medium, plan) - 1) * MONITORED_BYTES
    return bytes_per_packet * _count_crossings(plan, packets_by_flow, {medium.name})


def _list_recorded_links(plan: RunPlan) -> set[str]:
    """Return the names of the links whose transmissions are recorded. Media are left out."""
    return {link.name for link in plan.links if link.records_transmissions}


def _count_crossings(
    plan: RunPlan, packets_by_flow: dict[str, float], links: set[str] | None = None
) -> int:
    """Return how many packets and ACKs cross links. A packet counts once per link on its path.

    Args:
        plan: The plan of the run.
        packets_by_flow: Flow -> the number of packets that the flow sends.
        links: The names of the links and media that count; None for all.
    """
    return sum(
        round(packets_by_flow[flow.name] * (1 + _count_acks_per_packet(plan, flow)))
        for flow in plan.flows
        for direction in flow.path
        if links is None or direction.link in links
    )


def _count_acks_per_packet(plan: RunPlan, flow: FlowPlan) -> float:
    """Return the number of ACKs that the receiver sends per packet."""
    if flow.application is not None and flow.application.is_udp:
        return 0.0
    routes = plan.node(flow.receiver).routes
    return 1.0 if any(route.quickack for route in routes) else 0.5


def _count_packets(plan: RunPlan, flow: FlowPlan, flows_at_bottleneck: int) -> float:
    """Return the number of full-size packets that a flow sends.

    Args:
        plan: The plan of the run.
        flow: The flow.
        flows_at_bottleneck: The number of flows that have the same bottleneck, `flow` included.
    """
    seconds = flow.end_s - flow.start_s
    rate_bps = flow.bottleneck_bps / flows_at_bottleneck
    limits = [rate_bps * seconds / (8 * flow.packet_bytes)]
    hops = Counter(hop.link for hop in flow.path if hop.is_hop)
    for name, count in hops.items():
        flows_on_medium = sum(any(hop.link == name for hop in other.path) for other in plan.flows)
        busy_ns = min(count, MAX_HOPS_IN_TURN) * plan.medium(name).exchange_ns(flow.packet_bytes)
        limits.append(seconds * 1e9 / busy_ns / flows_on_medium)
    if flow.application is not None:
        limits.append(_count_offered_bytes(flow, seconds) / flow.payload_bytes)
        if flow.application.is_udp:
            return min(limits)
    if flow.base_rtt_s == 0:
        return min(limits)
    round_trips = seconds / flow.base_rtt_s
    if flow.max_window is not None:
        limits.append(flow.max_window * round_trips)
    loss = _compute_loss_probability(plan, flow)
    if loss > 0:
        window = SCHEME_FACTOR * math.sqrt(1.5 / loss)
        limits.append(1 / loss + window * round_trips)
    return min(limits)


def _count_offered_bytes(flow: FlowPlan, seconds: float) -> float:
    """Return the number of bytes that a flow's application sends in `seconds`."""
    assert flow.application is not None
    return flow.application.offered_bytes(seconds, flow.packet_bytes - flow.payload_bytes)


def _compute_loss_probability(plan: RunPlan, flow: FlowPlan) -> float:
    """Return the probability that a full-size packet is lost on its path.

    Losses that depend on each other are neglected.
    """
    delivery_probability = 1.0
    for hop in flow.path:
        channel = plan.channel(hop)
        loss_probability = channel.loss.loss_probability(flow.packet_bytes, channel.overhead_bytes)
        delivery_probability *= 1 - (loss_probability or 0.0)
    return 1 - delivery_probability
