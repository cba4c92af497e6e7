# SPDX-License-Identifier: Apache-2.0
"""What happened over time in a run: window and round-trip time of the sender, the bottleneck's
queue.

Times are seconds since the run's traffic began, so that runs and flows can be laid over each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.drops import CHANNEL_LOSSES, QUEUE_DROPS, interface_of, read_drops
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Manifest
from nagi_contracts.switches import drops_file

from nagi_reports.parquet import read_parquet

Floats = npt.NDArray[np.float64]

_STEPS = 600  # no figure shows more over its width


@dataclass(frozen=True)
class Curve:
    """Values over time, and, where many were condensed into one, the least and the most of them."""

    time_s: Floats
    value: Floats
    minimum: Floats
    maximum: Floats


@dataclass(frozen=True)
class Queue:
    """What waited at the bottleneck, in packets, and when packets were dropped there."""

    waiting: Curve
    limit_packets: int | None
    overflow_s: Floats
    loss_s: Floats


@dataclass(frozen=True)
class RecordedQueue:
    """The same with every change: `waiting` packets from each `time_s` on; where it is sampled, at
    each `time_s`."""

    time_s: Floats
    waiting: Floats
    sampled: bool
    limit_packets: int | None
    overflow_s: Floats
    loss_s: Floats

    def condensed(self, end_s: float) -> Queue:
        """As it can be drawn over [0, end_s]."""
        if self.sampled:  # nothing is known between samples
            waiting = condensed(self.time_s, self.waiting)
        else:
            waiting = condensed_steps(self.time_s, self.waiting, end_s)
        return Queue(waiting, self.limit_packets, self.overflow_s, self.loss_s)


@dataclass(frozen=True)
class Verdicts:
    """When a scheme of ours took a loss for congestion, for the channel's, or did not decide."""

    congestion_s: Floats
    channel_s: Floats
    undecided_s: Floats


@dataclass(frozen=True)
class RunSeries:
    """One flow of one run over time; None where the run has no record of it."""

    run_id: str
    flow: str
    bottleneck: str  # where the queue is
    end_s: float
    cwnd: Curve | None  # packets
    ssthresh: Curve | None  # packets
    rtt_ms: Curve | None  # the sender's smoothed RTT
    base_rtt_ms: float
    verdicts: Verdicts | None  # None: the kernel's own scheme, which tells nothing
    queue: Queue | None
    why_no_queue: str

    @property
    def recorded(self) -> bool:
        """Whether there is anything to show."""
        return any(each is not None for each in (self.cwnd, self.rtt_ms, self.queue))


def read_series(run: Path, number: int = 0) -> RunSeries:
    """A flow of a run over time, by its place in the plan. Raises InputError if the run has no
    readable plan."""
    plan = RunPlan.read(run / "plan.json")
    flow = plan.flows[number]
    direction = bottleneck(plan, flow)
    begin_s = plan.timeline.traffic_s
    window = read_samples(run / "tcp_info.parquet", flow)
    ssthresh = window.copy()
    # The kernel's TCP_INFINITE_SSTHRESH: there has been no loss yet.
    ssthresh["snd_ssthresh"] = ssthresh["snd_ssthresh"].where(ssthresh["snd_ssthresh"] < 2**31 - 1)
    queue, why = read_queue(run, plan, direction)
    return RunSeries(
        run_id=plan.run_id,
        flow=flow.name,
        bottleneck=queue_name(direction),
        end_s=flow.end_s - begin_s,
        cwnd=_curve(window, "snd_cwnd", begin_s),
        ssthresh=_curve(ssthresh, "snd_ssthresh", begin_s),
        rtt_ms=_curve(window.assign(rtt=window["rtt"] / 1e3), "rtt", begin_s),
        base_rtt_ms=flow.base_rtt_s * 1e3,
        verdicts=_verdicts(run / "scheme_events.parquet", flow, begin_s),
        queue=None if queue is None else queue.condensed(flow.end_s - begin_s),
        why_no_queue=why,
    )


def read_queue(
    run: Path, plan: RunPlan, direction: LinkDirection
) -> tuple[RecordedQueue | None, str]:
    """What waited for a direction of a link, or at a hop's sender; or why that is not known. Raises
    InputError if a file is damaged."""
    if plan.switch_share(direction) is None:
        return _queue(run / "packets.parquet", plan, direction)
    return _queue_of_switch(run, plan, direction)


def bottleneck(plan: RunPlan, flow: FlowPlan) -> LinkDirection:
    """The hop of a flow's path with the smallest rate; the first of several."""
    limited = [
        direction for direction in flow.path if plan.channel(direction).mean_rate_bps is not None
    ]
    return min(
        limited or flow.path[:1], key=lambda direction: plan.channel(direction).mean_rate_bps or 0
    )


def queue_name(direction: LinkDirection) -> str:
    """Whose queue a flow's packets wait in: that of a direction of a link, or of a station."""
    return f"{direction.link} {direction.sender or direction.direction}"


def read_samples(path: Path, flow: FlowPlan) -> pd.DataFrame:
    """A flow's window, threshold and RTT by samples of its sender's socket: t_s (since the run
    began), snd_cwnd, snd_ssthresh, rtt (us); empty without the file."""
    columns = ["t_s", "flow", "snd_cwnd", "snd_ssthresh", "rtt"]
    if not path.exists():
        return pd.DataFrame(columns=columns)
    table = read_parquet(path, columns=columns)
    mine = table[table["flow"] == flow.name]
    if flow.traffic == "bulk":
        return mine.sort_values("t_s")
    # The windows of all connections together, and their mean RTT.
    groups = mine.groupby("t_s")
    windows = groups[["snd_cwnd", "snd_ssthresh"]].sum(min_count=1)
    return windows.assign(rtt=groups["rtt"].mean()).reset_index()


def _curve(samples: pd.DataFrame, column: str, begin_s: float) -> Curve | None:
    known = samples[samples[column].notna()]
    if known.empty:
        return None
    time = known["t_s"].to_numpy(np.float64) - begin_s
    return condensed(time, known[column].to_numpy(np.float64))


def _verdicts(path: Path, flow: FlowPlan, begin_s: float) -> Verdicts | None:
    if not path.exists():
        return None
    table = read_parquet(path, columns=["t_s", "flow", "event", "verdict"])
    mine = table[table["flow"] == flow.name]
    if mine.empty:
        return None
    losses = mine[mine["event"].isin(["three_duplicates", "timeout"])]

    def times(verdict: str) -> Floats:
        said = losses.loc[losses["verdict"] == verdict, "t_s"]
        return said.to_numpy(np.float64) - begin_s

    return Verdicts(times("congestion"), times("channel"), times("undecided"))


def _queue(path: Path, plan: RunPlan, direction: LinkDirection) -> tuple[RecordedQueue | None, str]:
    """The queue of the emulator."""
    settings = plan.channel(direction)
    if settings.mean_rate_bps is None:
        return None, "the path has no rate limit"
    if not settings.has_steady_delay:
        # When a packet left the queue then does not follow from when it arrived at the far end.
        return None, "not known under a delay that varies"
    if not path.exists():
        return None, "not recorded"
    columns = ["link", "direction", "arrived_ns", "left_ns", "fate", "is_copy"]
    columns += ["sender"] if direction.is_hop else []
    table = read_parquet(path, columns=columns)
    mine = (table["link"] == direction.link) & (table["direction"] == direction.direction)
    if direction.is_hop:
        mine &= table["sender"] == direction.sender
    table = table[mine & ~table["is_copy"]]
    if table.empty:
        return None, "not recorded"
    begin = plan.timeline.traffic_s * 1e9
    overflow = table["fate"].isin(QUEUE_DROPS)
    loss = table["fate"].isin(CHANNEL_LOSSES)
    entered = table["fate"].isin(["delivered", "AQM drop", "given up"])
    if settings.loss.at == "egress":
        entered |= loss
    arrived, waiting = backlog(
        table.loc[entered, "arrived_ns"].to_numpy(np.int64),
        # Losses on the channel are recorded at the end of transmission, without the delay.
        (table["left_ns"] - settings.delay_ns * (table["fate"] == "delivered"))[entered].to_numpy(
            np.int64
        ),
    )
    limit = settings.queue.packets if settings.queue is not None else None
    return RecordedQueue(
        time_s=(arrived.astype(np.float64) - begin) / 1e9,
        waiting=waiting.astype(np.float64),
        sampled=False,
        limit_packets=limit,
        overflow_s=(table.loc[overflow, "left_ns"].to_numpy(np.float64) - begin) / 1e9,
        loss_s=(table.loc[loss, "left_ns"].to_numpy(np.float64) - begin) / 1e9,
    ), ""


def _queue_of_switch(
    run: Path, plan: RunPlan, direction: LinkDirection
) -> tuple[RecordedQueue | None, str]:
    """The same of a switch's port: what its samples say, which are of packets that leave."""
    port = plan.port(direction)
    assert port is not None and port.imposes is not None
    if port.imposes.rate_bps is None:
        return None, "the path has no rate limit"
    path = run / "queue_samples.parquet"
    if not path.exists():
        return None, "not recorded"
    table = read_parquet(path)
    table = table[(table["link"] == direction.link) & (table["direction"] == direction.direction)]
    if table.empty:
        return None, "the switch told nothing of it"
    begin_s = plan.timeline.traffic_s
    overflow, loss = _dropped_at(run, plan, direction)
    limit = port.imposes.queue.packets if port.imposes.queue is not None else None
    return RecordedQueue(
        time_s=table["t_s"].to_numpy(np.float64) - begin_s,
        waiting=table["depth_at_dequeue"].to_numpy(np.float64),
        sampled=True,
        limit_packets=limit,
        overflow_s=overflow,
        loss_s=loss,
    ), ""


def _dropped_at(run: Path, plan: RunPlan, direction: LinkDirection) -> tuple[Floats, Floats]:
    """When TCP segments found a switch's queue full, and when its loss model took some; none where
    the switch keeps no log."""
    node = plan.node(plan.sender_of(direction))
    assert node.switch is not None
    log, manifest = run / drops_file(node.name), run / "manifest.json"
    if not log.exists() or not manifest.exists():
        return np.zeros(0), np.zeros(0)
    links = [port.link for port in node.switch.ports]
    drops = read_drops(log, of_switch=True)
    mine = drops[drops["interface"] == interface_of(links.index(direction.link))]
    begin_s = Manifest.read(manifest).began_realtime_s + plan.timeline.traffic_s
    at_s = (mine["time_ns"] - round(begin_s * 1e9)).to_numpy(np.float64) / 1e9
    overflow = mine["cause"].isin(QUEUE_DROPS).to_numpy()
    return at_s[overflow], at_s[~overflow]


def backlog(
    arrived_ns: npt.NDArray[np.int64], sent_ns: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The packets waiting in a queue, after each instant at which that changed: (instants,
    packets).

    `arrived_ns`: when packets entered the queue; `sent_ns`: when each one's transmission ended.
    They leave in the order in which they came; a packet in transmission waits no more. Packets that
    had not left when the record ended are not among them.
    """
    order = np.lexsort((sent_ns, arrived_ns))
    arrived, sent = arrived_ns[order], sent_ns[order]
    previous = np.concatenate((arrived[:1], sent[:-1]))
    started = np.maximum(arrived, previous)
    times = np.concatenate((arrived, started))
    steps = np.concatenate((np.ones(len(arrived), np.int64), -np.ones(len(arrived), np.int64)))
    order = np.argsort(times, kind="stable")
    times, waiting = times[order], np.cumsum(steps[order])
    last = np.concatenate((times[1:] != times[:-1], [True]))[: len(times)]
    return times[last], waiting[last]


def condensed(time: Floats, value: Floats) -> Curve:
    """Samples as they can be drawn: not more than some hundred, each with the mean, the least and
    the most of those it stands for."""
    if len(time) <= _STEPS:
        return Curve(time, value, value, value)
    edges = np.linspace(time[0], time[-1], _STEPS + 1)
    starts = np.unique(np.searchsorted(time, edges[:-1]))
    counts = np.diff(np.append(starts, len(time)))
    return Curve(
        time[starts],
        np.add.reduceat(value, starts) / counts,
        np.minimum.reduceat(value, starts),
        np.maximum.reduceat(value, starts),
    )


def condensed_steps(time: Floats, value: Floats, end_s: float) -> Curve:
    """A step function, `value` from each `time` on and 0 before, as it can be drawn over [0,
    end_s]: in equal spans, each with its mean over time, least and most."""
    edges = np.linspace(0, end_s, _STEPS + 1)
    # With a step at each edge, every span begins with the value that holds there.
    before = np.searchsorted(time, edges, side="right") - 1
    at_edges = np.where(before >= 0, value[np.maximum(before, 0)], 0.0)
    times = np.concatenate((time, edges))
    order = np.argsort(times, kind="stable")
    times, values = times[order], np.concatenate((value, at_edges))[order]
    inside = (times >= 0) & (times <= end_s)
    times, values = times[inside], values[inside]
    starts = np.searchsorted(times, edges[:-1], side="right") - 1
    area = np.append(values[:-1] * np.diff(times), 0.0)
    return Curve(
        edges[:-1],
        np.add.reduceat(area, starts) / np.diff(edges),
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
    )
