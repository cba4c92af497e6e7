# SPDX-License-Identifier: Apache-2.0
"""What a page shows of one run: each flow over time, from the files of its directory.

Times are seconds since the traffic began, by the emulator's clock. What a run has not is said under
`missing`, by the panel it would be in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nagi_captures import tracing
from nagi_captures.capture import Scan, scan
from nagi_captures.clocks import clock_offset_ns
from nagi_captures.flow_rows import matches_flow
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import HostClock, Manifest, Verdict

from nagi_reports import analysis, series
from nagi_reports.explorer import losses
from nagi_reports.explorer.tracks import Floats, Track, choose_part_edges
from nagi_reports.parquet import read_parquet

MAX_FLOWS = 8  # of a run
_WINDOWS = 100  # of goodput, over the whole run, about
_KINDS = {
    tracing.FRESH: "segment",
    tracing.RETRANSMISSION: "retransmission",
    tracing.OUT_OF_ORDER: "out of order",
    tracing.PROBE: "probe",
}
_STATES = {2: "CWR", 3: "recovery", 4: "timeout"}  # of TCP_INFO; open and disorder are no reaction
_NOT_KEPT = "The capture at the flow's {end} is not there (the experiment's `keep`)."


@dataclass(frozen=True)
class FlowTracks:
    """A flow over time."""

    plan: FlowPlan
    tracks: list[Track]
    states: list[tuple[float, float, str]]  # from, to, of _STATES
    events: list[dict[str, Any]]  # what the scheme told, oldest first
    missing: dict[str, str]  # panel -> why there is nothing in it
    notes: list[str]

    @property
    def packets(self) -> list[Track]:
        """Those that are also written in parts."""
        return [track for track in self.tracks if not track.whole]

    @property
    def last_s(self) -> float:
        """When the last thing happened."""
        times = [track.time_s[-1] for track in self.tracks if track.name != "goodput"]
        return float(max(times, default=0.0))

    def edges(self, end_s: float) -> list[float]:
        return choose_part_edges(self.packets, 0.0, end_s)

    def data(self, end_s: float) -> dict[str, Any]:
        """For run.js."""
        flow = self.plan
        return {
            "name": flow.name,
            "scheme": flow.scheme,
            "ends": f"{flow.sender} to {flow.receiver}",
            "base_rtt_ms": flow.base_rtt_s * 1e3,
            "bottleneck_mbps": flow.bottleneck_bps / 1e6,
            "tracks": {
                track.name: (track if track.whole else track.overview(0.0, end_s)).packed()
                for track in self.tracks
            },
            "in_parts": [track.name for track in self.packets],
            "edges": self.edges(end_s),
            "states": self.states,
            "events": self.events,
            "missing": self.missing,
            "notes": self.notes,
        }


@dataclass
class RunFiles:
    """What a run left. Raises InputError where a file is damaged."""

    directory: Path
    scans: dict[tuple[Path, int | None], Scan] = field(default_factory=dict)
    queues: dict[str, tuple[series.RecordedQueue | None, str]] = field(default_factory=dict)

    @cached_property
    def plan(self) -> RunPlan:
        return RunPlan.read(self.directory / "plan.json")

    @cached_property
    def manifest(self) -> Manifest | None:
        path = self.directory / "manifest.json"
        return Manifest.read(path) if path.exists() else None

    @cached_property
    def verdict(self) -> Verdict:
        return Verdict.read(self.directory / "verdict.json")

    @cached_property
    def recorded(self) -> analysis.RecordedRun | None:
        """None if the run did not come to its end, or not all of its captures are there."""
        if self.verdict.status == "failed" or self.manifest is None:
            return None
        return (
            analysis.RecordedRun.read(self.directory)
            if analysis.can_analyse(self.directory)
            else None
        )

    @cached_property
    def drops(self) -> pd.DataFrame | None:
        if not (self.directory / "drops.pcapng").exists():
            return None
        return analysis.read_all_drops(self.directory, self.plan)

    @property
    def captured_s(self) -> float:
        """When the captures end."""
        timeline = self.plan.timeline
        return timeline.capture_end_s - timeline.traffic_s

    def end_s(self, flows: list[FlowTracks]) -> float:
        """Up to when there is something to show."""
        timeline = self.plan.timeline
        traffic_s = timeline.traffic_end_s - timeline.traffic_s
        last_s = max((flow.last_s for flow in flows), default=0.0)
        return min(max(traffic_s, last_s + 0.01 * traffic_s), self.captured_s)

    def capture(self, at: tuple[str, str]) -> Path | None:
        """The capture at a node and link."""
        for each in self.plan.captures:
            if (each.node, each.link) == at:
                return analysis.find_capture(self.directory, each.file)
        return None

    def scanned(self, path: Path, interval_ns: int | None = None, start_ns: int = 0) -> Scan:
        """A capture's connections. Each is read once."""
        key = (path, interval_ns)
        if key not in self.scans:
            begin = None if interval_ns is None else start_ns
            self.scans[key] = scan(path, interval_ns=interval_ns, start_ns=begin)
        return self.scans[key]

    def queue(self, direction: LinkDirection) -> tuple[series.RecordedQueue | None, str]:
        name = series.name_queue(direction)
        if name not in self.queues:
            self.queues[name] = series.read_queue(self.directory, self.plan, direction)
        return self.queues[name]

    def clock(self, node: str) -> HostClock | None:
        """A host's; None: it is the emulator's, or not known."""
        return self.verdict.clocks.get(node)

    def since_traffic(self, node: str, time_ns: Any) -> Floats:
        """Instants of a host's capture."""
        assert self.manifest is not None
        since = np.asarray(time_ns, np.int64) - analysis.to_epoch_ns(self.manifest, 0)
        true_ns = since - clock_offset_ns(self.clock(node), since)
        return np.asarray(true_ns / 1e9 - self.plan.timeline.traffic_s, np.float64)

    def sampled_s(self, node: str, t_s: Any) -> Floats:
        """Instants of a host's samples, which are seconds since the run began."""
        seconds = np.asarray(t_s, np.float64)
        ahead = clock_offset_ns(self.clock(node), (seconds * 1e9).astype(np.int64))
        return np.asarray(seconds - ahead / 1e9 - self.plan.timeline.traffic_s, np.float64)


def read_flows(run: RunFiles) -> list[FlowTracks]:
    """The flows of a run over time, cross traffic last; at most MAX_FLOWS."""
    flows = sorted(run.plan.flows, key=lambda flow: flow.background)
    return [_flow(run, flow) for flow in flows[:MAX_FLOWS]]


def _flow(run: RunFiles, flow: FlowPlan) -> FlowTracks:
    missing: dict[str, str] = {}
    notes: list[str] = []
    tracks = _of_socket(run, flow, missing)
    tracks += _of_queue(run, flow, missing, notes)
    tracks += _of_goodput(run, flow, missing)
    lost = _losses(run, flow, missing, notes)
    tracks += _of_packets(run, flow, lost, missing, notes)
    if lost is not None:
        begin_s = run.plan.timeline.traffic_s
        for cause, outcome, rows in lost.groups():
            at_s = rows["t_s"].to_numpy(np.float64) - begin_s
            name = f"loss: {cause}: {outcome}"
            tracks.append(Track.of(name, at_s, rows["payload"], whole=True))
    clocks = run.verdict.clocks
    for node in dict.fromkeys((flow.sender, flow.receiver)):
        if node in clocks and clocks[node] is None:
            notes.append(f"The clock of {node} is not known: what it recorded has its own times.")
    for at in (analysis.locate_sender_capture(flow), analysis.locate_receiver_capture(flow)):
        found = [each for (path, _), each in run.scans.items() if path == run.capture(at)]
        if found and found[0].damage:
            notes.append(found[0].damage.replace(f"{run.directory}/", ""))
    return FlowTracks(flow, tracks, _states(run, flow), _events(run, flow), missing, notes)


def _of_socket(run: RunFiles, flow: FlowPlan, missing: dict[str, str]) -> list[Track]:
    """Window, threshold and smoothed RTT."""
    path = run.directory / "tcp_info.parquet"
    samples = series.read_samples(path, flow)
    # The kernel's TCP_INFINITE_SSTHRESH: there has been no loss yet.
    threshold = samples["snd_ssthresh"].where(samples["snd_ssthresh"] < 2**31 - 1)
    rtt = samples["rtt"].where(samples["rtt"] > 0)  # 0: there is no sample of it yet
    columns = {"cwnd": samples["snd_cwnd"], "ssthresh": threshold, "smoothed RTT": rtt}
    found = []
    for name, values in columns.items():
        known = values.notna().to_numpy()
        if known.any():
            at_s = run.sampled_s(flow.sender, samples["t_s"][known])
            scale = 1e3 if name == "smoothed RTT" else 1.0
            found.append(Track.of(name, at_s, values[known], scale=scale, whole=True))
    if not any(track.name == "cwnd" for track in found):
        why = "no tcp_info.parquet" if not path.exists() else "no samples of a TCP socket"
        missing["window"] = f"The run has {why} of this flow."
    return found


def _of_queue(
    run: RunFiles, flow: FlowPlan, missing: dict[str, str], notes: list[str]
) -> list[Track]:
    direction = series.find_bottleneck(run.plan, flow)
    queue, why = run.queue(direction)
    where = series.name_queue(direction)
    if queue is None:
        path = run.directory / "packets.parquet"
        kept = "" if path.exists() or why != "not recorded" else " (no packets.parquet)"
        missing["queue"] = f"Queue at {where}: {why}{kept}."
        return []
    sampled = ", samples of packets that leave it" if queue.sampled else ""
    limit = f", limit {queue.limit_packets} packets" if queue.limit_packets else ""
    notes.append(f"Queue at {where}, of all flows{limit}{sampled}.")
    return [Track.of("queue", queue.time_s, queue.waiting, steps=not queue.sampled)]


def _of_goodput(run: RunFiles, flow: FlowPlan, missing: dict[str, str]) -> list[Track]:
    """Bytes that reach the receiver for the first time, in equal windows from the traffic's
    begin."""
    path = run.capture(analysis.locate_receiver_capture(flow))
    if path is None or run.manifest is None:
        missing["goodput"] = _NOT_KEPT.format(end="receiver")
        return []
    timeline = run.plan.timeline
    traffic_s = timeline.traffic_end_s - timeline.traffic_s
    width_s = _nice(max(traffic_s / _WINDOWS, run.captured_s / (100 * _WINDOWS), 1e-6))
    width_ns = round(width_s * 1e9)
    start_ns = analysis.to_epoch_ns(run.manifest, timeline.traffic_s, run.clock(flow.receiver))
    found = run.scanned(path, width_ns, start_ns)
    rows = found.flows.index[matches_flow(found.flows, flow)]
    windows = found.series
    assert windows is not None
    mine = windows[windows["flow"].isin(rows)]
    index = ((mine["start_ns"] - start_ns) // width_ns).to_numpy(np.int64)
    count = max(math.ceil(run.captured_s / width_s - 1e-9), 1)
    inside = (index >= 0) & (index < count)
    received = np.bincount(
        index[inside], mine["first_time_bytes"].to_numpy(np.float64)[inside], count
    )
    if not received.any():
        missing["goodput"] = "Nothing of this flow reached its receiver's capture."
        return []
    rate = received * 8 / width_s / 1e3
    return [
        Track.of(
            "goodput",
            np.arange(count, dtype=np.float64) * width_s,
            rate,
            scale=1e3,  # kb/s
            steps=True,
            whole=True,
        )
    ]


def _losses(
    run: RunFiles, flow: FlowPlan, missing: dict[str, str], notes: list[str]
) -> losses.Losses | None:
    if run.drops is None or run.manifest is None:
        missing["losses"] = "The run has no log of drops (drops.pcapng)."
        return None
    began_ns = analysis.to_epoch_ns(run.manifest, 0)
    found = losses.read_flow_losses(flow, run.drops, began_ns, run.recorded)
    if found.table.empty:
        missing["losses"] = (
            "No segment of this flow was lost on a link."
            if _is_tcp(run, flow)
            else "Losses are told of TCP segments only, and this flow has none."
        )
    elif found.how:
        notes.append(found.how)
    return found


def _is_tcp(run: RunFiles, flow: FlowPlan) -> bool:
    """Whether a flow has TCP connections, by the sender's capture, or without by its sockets."""
    path = run.capture(analysis.locate_sender_capture(flow))
    if path is not None:
        flows = run.scanned(path).flows
        return bool((matches_flow(flows, flow) & (flows["protocol"] == "tcp")).any())
    return not series.read_samples(run.directory / "tcp_info.parquet", flow).empty


def _of_packets(
    run: RunFiles,
    flow: FlowPlan,
    lost: losses.Losses | None,
    missing: dict[str, str],
    notes: list[str],
) -> list[Track]:
    """The time-sequence graph and RTT samples, of the sender's capture."""
    path = run.capture(analysis.locate_sender_capture(flow))
    if path is None or run.manifest is None:
        missing["sequence"] = _NOT_KEPT.format(end="sender")
        missing["rtt"] = missing["sequence"]
        return []
    flows = run.scanned(path).flows
    rows = flows[
        matches_flow(flows, flow) & (flows["protocol"] == "tcp") & (flows["data_packets"] > 0)
    ]
    if rows.empty:
        missing["sequence"] = "The sender's capture has no TCP connection with data of this flow."
        missing["rtt"] = missing["sequence"]
        return []
    if len(rows) > 1:
        notes.append(
            f"The time-sequence graph and RTT are of the connection with the most data; the flow "
            f"has {len(rows)}."
        )
    row = rows.sort_values("first_time_bytes", ascending=False, kind="stable").iloc[0]
    connection, direction = int(row["connection"]), int(row["direction"])
    found = tracing.trace(path, connection, direction)
    node = flow.sender
    at_s = run.since_traffic(node, found.segments["time_ns"])
    begin, end = found.segments["begin"], found.segments["end"]
    tracks = []
    for kind, name in _KINDS.items():
        mine = found.segments["kind"] == kind
        if mine.any():
            tracks.append(Track.of(name, at_s[mine], begin[mine], end[mine], scale=1e6))
    answers = found.acknowledgements
    if len(answers["time_ns"]):
        answered_s = run.since_traffic(node, answers["time_ns"])
        for name, column in (("acknowledged", "number"), ("advertised window", "window_end")):
            tracks.append(Track.of(name, answered_s, answers[column], scale=1e6, steps=True))
        again = answers["duplicate"] == 1
        if again.any():
            numbers = answers["number"][again]
            tracks.append(Track.of("duplicate ACK", answered_s[again], numbers, scale=1e6))
    if len(found.sacks["time_ns"]):
        sacked_s = run.since_traffic(node, found.sacks["time_ns"])
        tracks.append(
            Track.of("SACK block", sacked_s, found.sacks["begin"], found.sacks["end"], scale=1e6)
        )
    samples = found.rtt()
    if len(samples["time_ns"]):
        sampled_s = run.since_traffic(node, samples["time_ns"])
        tracks.append(Track.of("RTT", sampled_s, samples["rtt_ns"] / 1e3, scale=1e3))
    else:
        missing["rtt"] = "The sender's capture has no RTT sample of this flow."
    if lost is not None and len(rows) == 1:
        first = losses.find_first_sequence(path, connection, direction, lost.table)
        if first is not None:
            tracks.append(_lost_numbers(run, lost.table, first, at_s, begin))
    return tracks


def _lost_numbers(
    run: RunFiles, lost: pd.DataFrame, first: int, sent_s: Floats, sent: Any
) -> Track:
    """Lost segments by their numbers in the time-sequence graph."""
    lost_s = lost["t_s"].to_numpy(np.float64) - run.plan.timeline.traffic_s
    order = np.argsort(sent_s, kind="stable")
    last = np.maximum(np.searchsorted(sent_s[order], lost_s, side="right") - 1, 0)
    near = np.asarray(sent, np.int64)[order][last]
    wrapped = (lost["sequence"].to_numpy(np.int64) - first - near + 2**31) % 2**32 - 2**31
    begin = near + wrapped
    end = begin + lost["payload"].to_numpy(np.int64)
    return Track.of("lost", lost_s, begin, end, scale=1e6, whole=True)


def _states(run: RunFiles, flow: FlowPlan) -> list[tuple[float, float, str]]:
    """The times in which samples of a bulk flow's socket saw it in a state that is a reaction."""
    path = run.directory / "tcp_info.parquet"
    if flow.traffic != "bulk" or not path.exists():
        return []
    table = read_parquet(path, columns=["t_s", "flow", "ca_state"])
    mine = table[(table["flow"] == flow.name) & table["ca_state"].notna()].sort_values("t_s")
    if mine.empty:
        return []
    at_s = run.sampled_s(flow.sender, mine["t_s"])
    state = mine["ca_state"].to_numpy(np.int64)
    starts = np.flatnonzero(np.append(True, state[1:] != state[:-1]))
    ends = np.append(starts[1:], len(state) - 1)
    return [
        (round(float(at_s[begin]), 6), round(float(at_s[end]), 6), _STATES[int(state[begin])])
        for begin, end in zip(starts, ends, strict=True)
        if int(state[begin]) in _STATES
    ]


def _events(run: RunFiles, flow: FlowPlan) -> list[dict[str, Any]]:
    """What a scheme of ours told, without samples."""
    path = run.directory / "scheme_events.parquet"
    if not path.exists():
        return []
    table = read_parquet(path)
    chosen = (table["flow"] == flow.name) & ~table["event"].isin(["sample", "started"])
    mine = table[chosen].sort_values("t_s", kind="stable")
    at_s = run.sampled_s(flow.sender, mine["t_s"])
    return [
        {
            "t_s": round(float(t_s), 6),
            "event": row["event"],
            "verdict": row["verdict"] if isinstance(row["verdict"], str) else None,
            "cwnd": [int(row["cwnd_before"]), int(row["cwnd"])],
        }
        for t_s, row in zip(at_s, mine.to_dict("records"), strict=True)
    ]


def _nice(seconds: float) -> float:
    """1, 2 or 5 times a power of ten, at least `seconds`."""
    power = 10.0 ** math.floor(math.log10(seconds))
    return next(
        round(step * power, 9) for step in (1, 2, 5, 10) if step * power >= seconds * (1 - 1e-9)
    )
