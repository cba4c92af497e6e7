# SPDX-License-Identifier: Apache-2.0
"""The data of one run for the page: each flow over time, from the files of the run directory.

Times are seconds since the traffic began, by the emulator's clock. Functions add the reasons why
panels are empty to their argument `missing` (panel -> sentence), and sentences on the data to their
argument `notes`.
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
from nagi_reports.explorer import losses, reactions
from nagi_reports.explorer.tracks import Floats, Track, choose_part_edges

MAX_FLOWS = 8  # number of flows of a run that the page shows
_WINDOWS = 100  # approximate number of windows of goodput over the traffic's duration
_KINDS = {
    tracing.FRESH: "segment",
    tracing.RETRANSMISSION: "retransmission",
    tracing.OUT_OF_ORDER: "out of order",
    tracing.PROBE: "probe",
}
_NOT_KEPT = "The capture at the flow's {end} was not kept (see `keep` of the experiment)."


@dataclass(frozen=True)
class FlowTracks:
    """The tracks, states and events of a flow over time, with notes on them."""

    plan: FlowPlan
    tracks: list[Track]
    states: list[tuple[float, float, str]]  # begin, end, and name of a state of the sender
    events: list[dict[str, Any]]  # events that the scheme reported, in order of time
    missing: dict[str, str]  # empty panel -> sentence with the reason
    notes: list[str]  # sentences on the data

    @property
    def packets(self) -> list[Track]:
        """The tracks of packets, which are also written in parts."""
        return [track for track in self.tracks if not track.whole]

    @property
    def last_s(self) -> float:
        """Time of the last row of all tracks except goodput; 0 without such tracks."""
        times = [track.time_s[-1] for track in self.tracks if track.name != "goodput"]
        return float(max(times, default=0.0))

    def choose_edges(self, end_s: float) -> list[float]:
        """Return the times at which parts begin, and the end of the last part."""
        return choose_part_edges(self.packets, 0.0, end_s)

    def to_data(self, end_s: float) -> dict[str, Any]:
        """Return the data that run.js draws: {"tracks": {NAME: TRACK}, "events": [...], ...}."""
        flow = self.plan
        return {
            "name": flow.name,
            "scheme": flow.scheme,
            "ends": f"{flow.sender} to {flow.receiver}",
            "base_rtt_ms": flow.base_rtt_s * 1e3,
            "bottleneck_mbps": flow.bottleneck_bps / 1e6,
            "tracks": {
                track.name: (track if track.whole else track.condense(0.0, end_s)).pack()
                for track in self.tracks
            },
            "in_parts": [track.name for track in self.packets],
            "edges": self.choose_edges(end_s),
            "states": self.states,
            "events": self.events,
            "missing": self.missing,
            "notes": self.notes,
        }


@dataclass
class RunFiles:
    """The files of a run, which are read when they are needed.

    Methods and properties raise InputError if a file is missing or damaged.
    """

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
        """The records of the run; None if the run failed, or not all of its captures were kept."""
        if self.verdict.status == "failed" or self.manifest is None:
            return None
        return (
            analysis.RecordedRun.read(self.directory)
            if analysis.can_analyse(self.directory)
            else None
        )

    @cached_property
    def drops(self) -> pd.DataFrame | None:
        """The drops of emulator and switches; None without the emulator's log."""
        if not (self.directory / "drops.pcapng").exists():
            return None
        return analysis.read_all_drops(self.directory, self.plan)

    @property
    def captured_s(self) -> float:
        """End of the captures, in s since the traffic began."""
        timeline = self.plan.timeline
        return timeline.capture_end_s - timeline.traffic_s

    def find_end_s(self, flows: list[FlowTracks]) -> float:
        """Return the end of the shown time, in s since the traffic began.

        This is the end of the traffic, or 1 % of its duration after the last row of the tracks if
        that is later, but never after the end of the captures.
        """
        timeline = self.plan.timeline
        traffic_s = timeline.traffic_end_s - timeline.traffic_s
        last_s = max((flow.last_s for flow in flows), default=0.0)
        return min(max(traffic_s, last_s + 0.01 * traffic_s), self.captured_s)

    def find_capture(self, location: tuple[str, str]) -> Path | None:
        """Return the path of the capture at a node and link, or None if it was not kept."""
        for capture in self.plan.captures:
            if (capture.node, capture.link) == location:
                return analysis.find_capture(self.directory, capture.file)
        return None

    def scan_capture(self, path: Path, interval_ns: int | None = None, start_ns: int = 0) -> Scan:
        """Return a scan of a capture, which is kept for further calls with the same `interval_ns`.

        Args:
            path: The capture.
            interval_ns: Length of intervals in which to count; None means no intervals.
            start_ns: Start of the first interval; the same in all calls.
        """
        key = (path, interval_ns)
        if key not in self.scans:
            begin = None if interval_ns is None else start_ns
            self.scans[key] = scan(path, interval_ns=interval_ns, start_ns=begin)
        return self.scans[key]

    def read_queue(self, direction: LinkDirection) -> tuple[series.RecordedQueue | None, str]:
        """Return a queue and an empty text, or None and the reason why it is not known.

        series.read_queue() reads the queue; the result is kept for further calls.
        """
        name = series.name_queue(direction)
        if name not in self.queues:
            self.queues[name] = series.read_queue(self.directory, self.plan, direction)
        return self.queues[name]

    def find_clock(self, node: str) -> HostClock | None:
        """Return the clock of a host; None if it is unknown, or is the emulator's clock."""
        return self.verdict.clocks.get(node)

    def to_traffic_s(self, node: str, time_ns: Any) -> Floats:
        """Return times of a capture in s since the traffic began, by the emulator's clock.

        Args:
            node: The host of the capture.
            time_ns: Times in ns since the Unix epoch, by the host's clock.
        """
        assert self.manifest is not None
        since_begin_ns = np.asarray(time_ns, np.int64) - analysis.to_epoch_ns(self.manifest, 0)
        true_ns = since_begin_ns - clock_offset_ns(self.find_clock(node), since_begin_ns)
        return np.asarray(true_ns / 1e9 - self.plan.timeline.traffic_s, np.float64)

    def samples_to_traffic_s(self, node: str, t_s: Any) -> Floats:
        """Return times of samples in s since the traffic began, by the emulator's clock.

        Args:
            node: The host of the samples.
            t_s: Times in s since the run began, by the host's clock.
        """
        seconds = np.asarray(t_s, np.float64)
        offset_ns = clock_offset_ns(self.find_clock(node), (seconds * 1e9).astype(np.int64))
        return np.asarray(seconds - offset_ns / 1e9 - self.plan.timeline.traffic_s, np.float64)


def read_flows(run: RunFiles) -> list[FlowTracks]:
    """Return up to MAX_FLOWS flows of a run over time, background traffic last."""
    flows = sorted(run.plan.flows, key=lambda flow: flow.background)
    return [_read_flow(run, flow) for flow in flows[:MAX_FLOWS]]


def _read_flow(run: RunFiles, flow: FlowPlan) -> FlowTracks:
    """Return a flow over time, with notes and the reasons for empty panels."""
    missing: dict[str, str] = {}
    notes: list[str] = []
    tracks = _make_window_tracks(run, flow, missing)
    tracks += _make_queue_tracks(run, flow, missing, notes)
    tracks += _make_goodput_tracks(run, flow, missing)
    flow_losses = _read_losses(run, flow, missing, notes)
    tracks += _make_packet_tracks(run, flow, flow_losses, missing, notes)
    if flow_losses is not None:
        begin_s = run.plan.timeline.traffic_s
        for cause, outcome, rows in flow_losses.group():
            at_s = rows["t_s"].to_numpy(np.float64) - begin_s
            name = f"loss: {cause}: {outcome}"
            tracks.append(Track.from_rows(name, at_s, rows["payload"], whole=True))
    clocks = run.verdict.clocks
    for node in dict.fromkeys((flow.sender, flow.receiver)):
        if node in clocks and clocks[node] is None:
            notes.append(
                f"The clock of {node} is not known, so times of its records are by this clock."
            )
    for location in (analysis.locate_sender_capture(flow), analysis.locate_receiver_capture(flow)):
        scans = [
            scan for (path, _), scan in run.scans.items() if path == run.find_capture(location)
        ]
        if scans and scans[0].damage:
            notes.append(scans[0].damage.replace(f"{run.directory}/", ""))
    states, events = reactions.read_states(run, flow), reactions.read_events(run, flow)
    return FlowTracks(flow, tracks, states, events, missing, notes)


def _make_window_tracks(run: RunFiles, flow: FlowPlan, missing: dict[str, str]) -> list[Track]:
    """Return the tracks of congestion window, threshold and smoothed RTT.

    Without samples of the window, add the reason to `missing`.
    """
    path = run.directory / "tcp_info.parquet"
    samples = series.read_samples(path, flow)
    # Before the first loss, the kernel reports TCP_INFINITE_SSTHRESH.
    threshold = samples["snd_ssthresh"].where(samples["snd_ssthresh"] < 2**31 - 1)
    rtt = samples["rtt"].where(samples["rtt"] > 0)  # 0 before the first sample
    columns = {"cwnd": samples["snd_cwnd"], "ssthresh": threshold, "smoothed RTT": rtt}
    tracks = []
    for name, values in columns.items():
        has_value = values.notna().to_numpy()
        if has_value.any():
            sampled_s = run.samples_to_traffic_s(flow.sender, samples["t_s"][has_value])
            scale = 1e3 if name == "smoothed RTT" else 1.0
            tracks.append(
                Track.from_rows(name, sampled_s, values[has_value], scale=scale, whole=True)
            )
    if not any(track.name == "cwnd" for track in tracks):
        reason = "no tcp_info.parquet" if not path.exists() else "no samples of a TCP socket"
        missing["window"] = f"The run has {reason} of this flow."
    return tracks


def _make_queue_tracks(
    run: RunFiles, flow: FlowPlan, missing: dict[str, str], notes: list[str]
) -> list[Track]:
    """Return the track of the queue at the bottleneck, and describe the queue in `notes`.

    If the queue is not known, return no track and add the reason to `missing`.
    """
    direction = series.find_bottleneck(run.plan, flow)
    queue, reason = run.read_queue(direction)
    name = series.name_queue(direction)
    if queue is None:
        path = run.directory / "packets.parquet"
        hint = "" if path.exists() or reason != "not recorded" else " (no packets.parquet)"
        missing["queue"] = f"Queue at {name}: {reason}{hint}."
        return []
    sampled = ", sampled when packets leave it" if queue.sampled else ""
    limit = f", limit {queue.limit_packets} packets" if queue.limit_packets else ""
    notes.append(f"Queue at {name}, of all flows{limit}{sampled}.")
    return [Track.from_rows("queue", queue.time_s, queue.waiting, steps=not queue.sampled)]


def _make_goodput_tracks(run: RunFiles, flow: FlowPlan, missing: dict[str, str]) -> list[Track]:
    """Return the track of goodput, in equal windows.

    If the goodput is not known, add the reason to `missing`.
    """
    path = run.find_capture(analysis.locate_receiver_capture(flow))
    if path is None or run.manifest is None:
        missing["goodput"] = _NOT_KEPT.format(end="receiver")
        return []
    timeline = run.plan.timeline
    traffic_s = timeline.traffic_end_s - timeline.traffic_s
    width_s = _round_up(max(traffic_s / _WINDOWS, run.captured_s / (100 * _WINDOWS), 1e-6))
    width_ns = round(width_s * 1e9)
    start_ns = analysis.to_epoch_ns(run.manifest, timeline.traffic_s, run.find_clock(flow.receiver))
    scan_of_receiver = run.scan_capture(path, width_ns, start_ns)
    rows = scan_of_receiver.flows.index[matches_flow(scan_of_receiver.flows, flow)]
    windows = scan_of_receiver.series
    assert windows is not None
    intervals = windows[windows["flow"].isin(rows)]
    index = ((intervals["start_ns"] - start_ns) // width_ns).to_numpy(np.int64)
    count = max(math.ceil(run.captured_s / width_s - 1e-9), 1)
    is_inside = (index >= 0) & (index < count)
    received_bytes = np.bincount(
        index[is_inside], intervals["first_time_bytes"].to_numpy(np.float64)[is_inside], count
    )
    if not received_bytes.any():
        missing["goodput"] = "The capture at the receiver has no payload of this flow."
        return []
    rate = received_bytes * 8 / width_s / 1e3
    return [
        Track.from_rows(
            "goodput",
            np.arange(count, dtype=np.float64) * width_s,
            rate,
            scale=1e3,  # kb/s
            steps=True,
            whole=True,
        )
    ]


def _read_losses(
    run: RunFiles, flow: FlowPlan, missing: dict[str, str], notes: list[str]
) -> losses.Losses | None:
    """Return the losses of a flow, or None without a drop log.

    If no losses are known, add the reason to `missing`.
    """
    if run.drops is None or run.manifest is None:
        missing["losses"] = "The run has no log of drops (drops.pcapng)."
        return None
    began_ns = analysis.to_epoch_ns(run.manifest, 0)
    flow_losses = losses.read_flow_losses(flow, run.drops, began_ns, run.recorded)
    if flow_losses.table.empty:
        missing["losses"] = (
            "No segment of this flow was lost on a link."
            if _is_tcp(run, flow)
            else "Only losses of TCP segments are recorded, and this flow has no TCP segments."
        )
    elif flow_losses.source:
        notes.append(flow_losses.source)
    return flow_losses


def _is_tcp(run: RunFiles, flow: FlowPlan) -> bool:
    """Return whether a flow has TCP connections, by its sender's capture.

    Without the capture, return whether there are samples of TCP_INFO.
    """
    path = run.find_capture(analysis.locate_sender_capture(flow))
    if path is not None:
        flows = run.scan_capture(path).flows
        return bool((matches_flow(flows, flow) & (flows["protocol"] == "tcp")).any())
    return not series.read_samples(run.directory / "tcp_info.parquet", flow).empty


def _make_packet_tracks(
    run: RunFiles,
    flow: FlowPlan,
    flow_losses: losses.Losses | None,
    missing: dict[str, str],
    notes: list[str],
) -> list[Track]:
    """Return the tracks of the time-sequence graph and of RTT samples, from the sender's capture.

    If the flow has several connections, the tracks are of the connection with the most data. For
    empty panels, add the reasons to `missing`.
    """
    path = run.find_capture(analysis.locate_sender_capture(flow))
    if path is None or run.manifest is None:
        missing["sequence"] = _NOT_KEPT.format(end="sender")
        missing["rtt"] = missing["sequence"]
        return []
    flows = run.scan_capture(path).flows
    rows = flows[
        matches_flow(flows, flow) & (flows["protocol"] == "tcp") & (flows["data_packets"] > 0)
    ]
    if rows.empty:
        missing["sequence"] = "The sender's capture has no TCP connection with data of this flow."
        missing["rtt"] = missing["sequence"]
        return []
    if len(rows) > 1:
        notes.append(
            f"The time-sequence graph and RTT show the connection with the most data, of "
            f"{len(rows)} connections of the flow."
        )
    row = rows.sort_values("first_time_bytes", ascending=False, kind="stable").iloc[0]
    connection, direction = int(row["connection"]), int(row["direction"])
    trace = tracing.trace(path, connection, direction)
    node = flow.sender
    sent_s = run.to_traffic_s(node, trace.segments["time_ns"])
    begin, end = trace.segments["begin"], trace.segments["end"]
    tracks = []
    for kind, name in _KINDS.items():
        is_kind = trace.segments["kind"] == kind
        if is_kind.any():
            tracks.append(
                Track.from_rows(name, sent_s[is_kind], begin[is_kind], end[is_kind], scale=1e6)
            )
    acknowledgements = trace.acknowledgements
    if len(acknowledgements["time_ns"]):
        answered_s = run.to_traffic_s(node, acknowledgements["time_ns"])
        for name, column in (("acknowledged", "number"), ("advertised window", "window_end")):
            tracks.append(
                Track.from_rows(name, answered_s, acknowledgements[column], scale=1e6, steps=True)
            )
        is_duplicate = acknowledgements["duplicate"] == 1
        if is_duplicate.any():
            numbers = acknowledgements["number"][is_duplicate]
            tracks.append(
                Track.from_rows("duplicate ACK", answered_s[is_duplicate], numbers, scale=1e6)
            )
    if len(trace.sacks["time_ns"]):
        sacked_s = run.to_traffic_s(node, trace.sacks["time_ns"])
        tracks.append(
            Track.from_rows(
                "SACK block", sacked_s, trace.sacks["begin"], trace.sacks["end"], scale=1e6
            )
        )
    samples = trace.select_rtt()
    if len(samples["time_ns"]):
        sampled_s = run.to_traffic_s(node, samples["time_ns"])
        tracks.append(Track.from_rows("RTT", sampled_s, samples["rtt_ns"] / 1e3, scale=1e3))
    else:
        missing["rtt"] = "The sender's capture has no RTT sample of this flow."
    if flow_losses is not None and len(rows) == 1:
        table = flow_losses.table
        first_sequence = losses.find_first_sequence(path, connection, direction, table)
        if first_sequence is not None:
            tracks.append(_make_lost_track(run, table, first_sequence, sent_s, begin))
    return tracks


def _make_lost_track(
    run: RunFiles, segments: pd.DataFrame, first_sequence: int, sent_s: Floats, sent_sequence: Any
) -> Track:
    """Return the track of lost segments, at their sequence numbers in the time-sequence graph.

    Args:
        run: The files of the run.
        segments: The lost segments.
        first_sequence: First sequence number of the connection, as on the wire.
        sent_s: Time of each segment in the capture.
        sent_sequence: First sequence number of each segment in the capture, without wraps.
    """
    lost_s = segments["t_s"].to_numpy(np.float64) - run.plan.timeline.traffic_s
    order = np.argsort(sent_s, kind="stable")
    index_before = np.maximum(np.searchsorted(sent_s[order], lost_s, side="right") - 1, 0)
    sent_before = np.asarray(sent_sequence, np.int64)[order][index_before]
    distance = (
        segments["sequence"].to_numpy(np.int64) - first_sequence - sent_before + 2**31
    ) % 2**32 - 2**31
    begin = sent_before + distance
    end = begin + segments["payload"].to_numpy(np.int64)
    return Track.from_rows("lost", lost_s, begin, end, scale=1e6, whole=True)


def _round_up(seconds: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is not less than `seconds`."""
    power = 10.0 ** math.floor(math.log10(seconds))
    return next(
        round(step * power, 9) for step in (1, 2, 5, 10) if step * power >= seconds * (1 - 1e-9)
    )
