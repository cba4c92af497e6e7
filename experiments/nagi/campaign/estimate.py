# SPDX-License-Identifier: Apache-2.0
"""What a campaign will take of time and disk, before it is run.

Packets. A flow sends full-size packets from its start to the end of the traffic, at the least of
- its share of its bottleneck, which flows that cross it have equally;
- its share of each medium on its path, where of four hops in a row one is busy at a time, with
  undisturbed exchanges;
- a window a base RTT, of the cap on windows if there is one;
- what its application has for the network;
- with independent losses p on its path: sqrt(3/2) / sqrt(p) packets a base RTT (Mathis, Semke,
  Mahdavi, Ott, ACM CCR 27(3), 1997), half as much again, as schemes differ, and 1 / p packets
  before the first loss. Schemes that take no loss for congestion are faster than that.
Receivers acknowledge every packet, or with delayed ACKs every other.

Disk, from these assumptions:
- A captured packet takes 16 bytes of record header and what is captured of its frame: at most the
  snap length, 128 bytes; of an ACK 78 bytes, with timestamps and one SACK block.
- zstd brings captures of headers to a sixth (recorded ones came to 12 % to 17 %).
- nagi-link records 32 bytes a packet and link; as packets.parquet they are 17. On links that are
  radios or have ARQ the same again for transmissions, of which repeated ones are left out. On media
  it is one transmission a frame: RTS, CTS, DATA and ACK.
- A monitor's capture has 160 bytes of a DATA frame, and 52 of another.
- TCP_INFO takes 25 bytes a sample, everything else 70 kB a run.
- While runs are under way, raw records are there beside what is kept: in real time those of all
  runs that cells are given at once; in virtual time those of the runs that are going on and of as
  many that wait for their metrics.
What is kept is multiplied by what it came to before (pace.py).

Time: each run takes its timeline; runs side by side divide it. Setting up the lab (some 10 s) and
computing metrics are not in it. In virtual time a run takes 1.15 s, 0.25 s for every node, 5 ms for
every second of its timeline and 5.5 us for every packet on every link, certificate and metrics
included; a campaign takes 3 s and 0.13 s for every node beside its runs. That is of the processors
it was measured with (stars of 1 to 60 hosts); on others it is multiplied by their pace (pace.py).
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nagi_contracts.errors import refuse
from nagi_contracts.media import FRAMING_BYTES, MediumPlan
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Keep
from nagi_contracts.units import count_of, in_bytes

from nagi.campaign import pace
from nagi.campaign.runner import BATCH_S
from nagi.labs import virtual
from nagi.labs.lab import BETWEEN_RUNS_S
from nagi.plan.media import IN_TURN

ETHERNET_BYTES = 14
ACK_BYTES = 78 - ETHERNET_BYTES
PCAP_RECORD_BYTES = 16
COMPRESSED_SHARE = 0.15
RECORD_BYTES = 32
PARQUET_BYTES = 17
SAMPLE_BYTES = 25
OTHER_BYTES = 70_000
SCHEMES_DIFFER = 1.5
MONITORED_DATA_BYTES, MONITORED_BYTES = 160, 52
VIRTUAL_RUN_S, VIRTUAL_NODE_S, VIRTUAL_SECOND_S, VIRTUAL_CROSSING_S = 1.15, 0.25, 0.005, 5.5e-6
VIRTUAL_CAMPAIGN_S, VIRTUAL_NODE_SETUP_S = 3.0, 0.13
MORE_DISK = (
    "give another place with --out, run a part with --only, or keep less with `keep: {captures: "
    "none, packets: drop}` in the experiment"
)


@dataclass(frozen=True)
class RunSize:
    """What a run takes of disk, in bytes."""

    raw: int  # as recorded
    kept: int  # once `keep` has been applied


def estimate_size(plan: RunPlan, keep: Keep) -> RunSize:
    """What a run of `plan` takes."""
    packets = _count_packets_by_flow(plan)
    raw_captures = kept_captures = 0
    for capture in plan.captures:
        total, wanted = 0, False
        for flow in plan.flows:
            sends = (flow.sender, flow.path[0].link) == (capture.node, capture.link)
            receives = (flow.receiver, flow.path[-1].link) == (capture.node, capture.link)
            if sends or receives:
                frames = [
                    (1.0, flow.packet_bytes + ETHERNET_BYTES),
                    (_acks_per_packet(plan, flow), ACK_BYTES + ETHERNET_BYTES),
                ]
                each = sum(
                    count * (PCAP_RECORD_BYTES + min(capture.snap_bytes, size))
                    for count, size in frames
                )
                total += round(packets[flow.name] * each)
                wanted |= keep.captures == "both"
                wanted |= keep.captures == "sender" and sends
                wanted |= keep.captures == "receiver" and receives
        raw_captures += total
        if wanted:
            kept_captures += round(total * (COMPRESSED_SHARE if keep.compress == "zstd" else 1))
    crossings = _count_crossings(plan, packets) + _count_crossings(
        plan, packets, _list_recorded_links(plan)
    )
    crossings += sum(
        _count_frames(medium, plan) * _count_crossings(plan, packets, {medium.name})
        for medium in plan.media
    )
    raw_monitors = sum(_estimate_monitor_bytes(medium, plan, packets) for medium in plan.media)
    kept_monitors = round(raw_monitors * (COMPRESSED_SHARE if keep.compress == "zstd" else 1))
    other = OTHER_BYTES + sum(
        round((flow.end_s - flow.start_s) / plan.tcp_info_interval_s) * SAMPLE_BYTES
        for flow in plan.flows
    )
    table = crossings * PARQUET_BYTES
    return RunSize(
        raw=raw_captures + raw_monitors + crossings * RECORD_BYTES + table + other,
        kept=kept_captures + kept_monitors + (table if keep.packets == "keep" else 0) + other,
    )


@dataclass(frozen=True)
class Disk:
    """Bytes that a campaign keeps, and those that it has beside them while runs are under way."""

    kept: int = 0
    meanwhile: int = 0

    @property
    def peak(self) -> int:
        """The most bytes that are there at once."""
        return self.kept + self.meanwhile

    def describe(self) -> str:
        """Return a phrase to follow "disk: about"."""
        return f"{in_bytes(self.kept)}, at most {in_bytes(self.peak)} meanwhile"


def estimate_disk(
    plans: list[RunPlan], keep: Keep, jobs: int, lab: str, paces: pace.Paces | None = None
) -> Disk:
    """Return what `plans` take of disk, when run `jobs` side by side in a lab, as it is known by
    `paces` (None: as it is known now)."""
    if not plans:
        return Disk()
    paces = paces or pace.read_paces()
    ratio = paces.disk_ratio(plans[0])
    sizes = [estimate_size(plan, keep) for plan in plans]
    a_cell = 2
    if lab != virtual.NAME:
        a_cell = max(math.ceil(BATCH_S / estimate_seconds(plan)) for plan in plans)
    largest = sorted((size.raw for size in sizes), reverse=True)[: jobs * a_cell]
    return Disk(round(sum(size.kept for size in sizes) * ratio), round(sum(largest) * ratio))


def estimate_seconds(plan: RunPlan) -> float:
    """How long a cell is busy with a run."""
    return plan.timeline.end_s + BETWEEN_RUNS_S


def estimate_virtual_seconds(plan: RunPlan) -> float:
    """Return how long a run in virtual time takes by the clock on the wall."""
    crossings = _count_crossings(plan, _count_packets_by_flow(plan))
    return (
        VIRTUAL_RUN_S
        + VIRTUAL_NODE_S * len(plan.nodes)
        + VIRTUAL_SECOND_S * plan.timeline.end_s
        + VIRTUAL_CROSSING_S * crossings
    )


def make_time_estimator(lab: str, paces: pace.Paces | None = None) -> Callable[[RunPlan], float]:
    """How long a run takes in a lab, by the clock on the wall, at the pace of this machine (None:
    as it is known now)."""
    if lab != virtual.NAME:
        return estimate_seconds
    paces = paces or pace.read_paces()
    return lambda plan: estimate_virtual_seconds(plan) * paces.time_ratio(plan)


def estimate_time(
    plans: list[RunPlan], jobs: int, lab: str, paces: pace.Paces | None = None
) -> float:
    """Return the seconds that `plans` take in a lab, `jobs` side by side, as it is known by
    `paces` (None: as it is known now)."""
    if not plans:
        return 0.0
    paces = paces or pace.read_paces()
    seconds = list(map(make_time_estimator(lab, paces), plans))
    runs_s = max(sum(seconds) / jobs, *seconds)
    if lab != virtual.NAME:
        return runs_s
    nodes = max(len(plan.nodes) for plan in plans)
    around_s = VIRTUAL_CAMPAIGN_S + VIRTUAL_NODE_SETUP_S * nodes
    return runs_s + around_s * paces.time_ratio(plans[0])


def read_free_disk(out: Path) -> int:
    """Bytes free where `out` is, or would be made."""
    there = out.absolute()
    while not there.exists():
        there = there.parent
    return shutil.disk_usage(there).free


def require_disk(runs: int, needed: Disk, out: Path, free: int) -> None:
    """Raise InputError if `runs` need more than the bytes that are `free` where `out` is."""
    if needed.peak > free:
        raise refuse(
            f"{count_of(runs, 'run')} need about {in_bytes(needed.peak)} of disk, and "
            f"{in_bytes(free)} are free there",
            MORE_DISK,
            file=str(out),
        )


def _find_bottleneck(plan: RunPlan, flow: FlowPlan) -> tuple[str, str]:
    """The first hop of a flow's path with the smallest rate."""

    def rate(direction: LinkDirection) -> float:
        mean_rate_bps = plan.channel(direction).mean_rate_bps
        return math.inf if mean_rate_bps is None else mean_rate_bps

    direction = min(flow.path, key=rate)
    return direction.link, direction.direction


def _count_packets_by_flow(plan: RunPlan) -> dict[str, float]:
    """How many full-size packets each flow sends."""
    bottlenecks = {flow.name: _find_bottleneck(plan, flow) for flow in plan.flows}
    sharing = Counter(bottlenecks.values())
    return {
        flow.name: _count_packets(plan, flow, sharing[bottlenecks[flow.name]])
        for flow in plan.flows
    }


def _count_frames(medium: MediumPlan, plan: RunPlan) -> int:
    """Of an exchange of a full-size packet."""
    packet = max(flow.packet_bytes for flow in plan.flows)
    threshold = medium.rts_threshold_bytes
    return 4 if threshold is not None and packet + FRAMING_BYTES > threshold else 2


def _estimate_monitor_bytes(medium: MediumPlan, plan: RunPlan, packets: dict[str, float]) -> int:
    """Bytes of a monitor's capture."""
    if medium.monitor is None:
        return 0
    each = MONITORED_DATA_BYTES + (_count_frames(medium, plan) - 1) * MONITORED_BYTES
    return each * _count_crossings(plan, packets, {medium.name})


def _list_recorded_links(plan: RunPlan) -> set[str]:
    """Links whose transmissions are recorded."""
    return {link.name for link in plan.links if link.records_transmissions}


def _count_crossings(
    plan: RunPlan, packets: dict[str, float], links: set[str] | None = None
) -> int:
    """How many packets cross links (None: all), acknowledgements included, one counted on every
    link. `packets`: how many each flow sends."""
    return sum(
        round(packets[flow.name] * (1 + _acks_per_packet(plan, flow)))
        for flow in plan.flows
        for direction in flow.path
        if links is None or direction.link in links
    )


def _acks_per_packet(plan: RunPlan, flow: FlowPlan) -> float:
    """Acknowledgements of a packet."""
    if flow.application is not None and flow.application.is_udp:
        return 0.0
    routes = plan.node(flow.receiver).routes
    return 1.0 if any(route.quickack for route in routes) else 0.5


def _count_packets(plan: RunPlan, flow: FlowPlan, sharing: int) -> float:
    """How many full-size packets a flow sends."""
    seconds = flow.end_s - flow.start_s
    found = [flow.bottleneck_bps / sharing * seconds / (8 * flow.packet_bytes)]
    hops = Counter(hop.link for hop in flow.path if hop.is_hop)
    for name, count in hops.items():
        others = sum(any(hop.link == name for hop in each.path) for each in plan.flows)
        busy_ns = min(count, IN_TURN) * plan.medium(name).exchange_ns(flow.packet_bytes)
        found.append(seconds * 1e9 / busy_ns / others)
    if flow.application is not None:
        found.append(_count_offered_bytes(flow, seconds) / flow.payload_bytes)
        if flow.application.is_udp:
            return min(found)
    if flow.base_rtt_s == 0:
        return min(found)
    round_trips = seconds / flow.base_rtt_s
    if flow.max_window is not None:
        found.append(flow.max_window * round_trips)
    loss = _loss_probability(plan, flow)
    if loss > 0:
        window = SCHEMES_DIFFER * math.sqrt(1.5 / loss)
        found.append(1 / loss + window * round_trips)
    return min(found)


def _count_offered_bytes(flow: FlowPlan, seconds: float) -> float:
    """Of its application."""
    assert flow.application is not None
    return flow.application.offered_bytes(seconds, flow.packet_bytes - flow.payload_bytes)


def _loss_probability(plan: RunPlan, flow: FlowPlan) -> float:
    """Of a full-size packet on its way, as far as losses do not depend on each other."""
    kept = 1.0
    for hop in flow.path:
        channel = plan.channel(hop)
        found = channel.loss.loss_probability(flow.packet_bytes, channel.overhead_bytes)
        kept *= 1 - (found or 0.0)
    return 1 - kept
