# SPDX-License-Identifier: Apache-2.0
"""A flow over time: congestion window and RTT of its sender, and the queue at its bottleneck.

Times are seconds since the run's traffic began, so that runs and flows can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_captures.drops import CHANNEL_LOSSES, QUEUE_DROPS, egress_interface, read_drops
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Manifest
from nagi_contracts.switches import drops_file

from nagi_reports.parquet import read_parquet

Floats = npt.NDArray[np.float64]

_STEPS = 600  # maximum number of points of a curve, as a figure cannot show more


@dataclass(frozen=True)
class Curve:
    """A curve over time. Each point is the mean of samples, with their minimum and maximum."""

    time_s: Floats
    value: Floats
    minimum: Floats
    maximum: Floats


@dataclass(frozen=True)
class Queue:
    """Packets waiting at the bottleneck, and times of drops, condensed for a figure."""

    waiting: Curve  # number of packets
    limit_packets: int | None  # None if the queue has no limit in packets
    overflow_s: Floats  # times of drops by the queue
    loss_s: Floats  # times of losses on the channel


@dataclass(frozen=True)
class RecordedQueue:
    """Packets waiting at the bottleneck, and times of drops, as recorded.

    From `time_s` on, `waiting` packets wait until the next `time_s`. If the queue was sampled,
    `waiting` packets wait at `time_s`, and their number between samples is not known.
    """

    time_s: Floats
    waiting: Floats
    sampled: bool
    limit_packets: int | None  # None if the queue has no limit in packets
    overflow_s: Floats  # times of drops by the queue
    loss_s: Floats  # times of losses on the channel

    def condense(self, end_s: float) -> Queue:
        """Return the queue as a curve of at most _STEPS points; drops are kept.

        A queue that was not sampled is returned over [0, end_s].
        """
        if self.sampled:  # the queue is not known between samples
            waiting = condense(self.time_s, self.waiting)
        else:
            waiting = condense_steps(self.time_s, self.waiting, end_s)
        return Queue(waiting, self.limit_packets, self.overflow_s, self.loss_s)


@dataclass(frozen=True)
class Verdicts:
    """Times at which a scheme of nagi classified a loss, by classification."""

    congestion_s: Floats
    channel_s: Floats
    undecided_s: Floats


@dataclass(frozen=True)
class RunSeries:
    """One flow of one run over time. Curves that the run did not record are None."""

    run_id: str
    flow: str
    bottleneck: str  # name of the queue at the bottleneck
    end_s: float  # end of the flow
    cwnd: Curve | None  # packets
    ssthresh: Curve | None  # packets
    rtt_ms: Curve | None  # the sender's smoothed RTT
    base_rtt_ms: float
    verdicts: Verdicts | None  # None for schemes of the kernel, which report no events
    queue: Queue | None
    no_queue_reason: str  # why `queue` is None; empty if there is a queue

    @property
    def has_curves(self) -> bool:
        """True if there is a curve to show."""
        return any(curve is not None for curve in (self.cwnd, self.rtt_ms, self.queue))


def read_series(run: Path, number: int = 0) -> RunSeries:
    """Read one flow of a run over time.

    Args:
        run: The run directory.
        number: The flow's position in the plan.

    Raises:
        InputError: The run has no readable plan, or a file is damaged.
    """
    plan = RunPlan.read(run / "plan.json")
    flow = plan.flows[number]
    direction = find_bottleneck(plan, flow)
    begin_s = plan.timeline.traffic_s
    window = read_samples(run / "tcp_info.parquet", flow)
    ssthresh = window.copy()
    # Before the first loss, the kernel reports TCP_INFINITE_SSTHRESH.
    ssthresh["snd_ssthresh"] = ssthresh["snd_ssthresh"].where(ssthresh["snd_ssthresh"] < 2**31 - 1)
    queue, reason = read_queue(run, plan, direction)
    return RunSeries(
        run_id=plan.run_id,
        flow=flow.name,
        bottleneck=name_queue(direction),
        end_s=flow.end_s - begin_s,
        cwnd=_make_curve(window, "snd_cwnd", begin_s),
        ssthresh=_make_curve(ssthresh, "snd_ssthresh", begin_s),
        rtt_ms=_make_curve(window.assign(rtt=window["rtt"] / 1e3), "rtt", begin_s),
        base_rtt_ms=flow.base_rtt_s * 1e3,
        verdicts=_read_verdicts(run / "scheme_events.parquet", flow, begin_s),
        queue=None if queue is None else queue.condense(flow.end_s - begin_s),
        no_queue_reason=reason,
    )


def read_queue(
    run: Path, plan: RunPlan, direction: LinkDirection
) -> tuple[RecordedQueue | None, str]:
    """Read the queue of a direction of a link, or of the station that sends over a hop.

    Returns:
        The queue and an empty text; or None and the reason why the queue is not known.

    Raises:
        InputError: A file is damaged.
    """
    if plan.switch_settings(direction) is None:
        return _read_emulator_queue(run / "packets.parquet", plan, direction)
    return _read_switch_queue(run, plan, direction)


def find_bottleneck(plan: RunPlan, flow: FlowPlan) -> LinkDirection:
    """Return the hop of a flow's path with the smallest rate.

    Return the first such hop if several have this rate, or the first hop if no hop has a rate.
    """
    limited = [
        direction for direction in flow.path if plan.channel(direction).mean_rate_bps is not None
    ]
    return min(
        limited or flow.path[:1], key=lambda direction: plan.channel(direction).mean_rate_bps or 0
    )


def name_queue(direction: LinkDirection) -> str:
    """Return the name of a queue: the link, and the direction or the sending station."""
    return f"{direction.link} {direction.sender or direction.direction}"


def read_samples(path: Path, flow: FlowPlan) -> pd.DataFrame:
    """Read the samples of TCP_INFO of a flow's sender, summed over the flow's connections.

    Args:
        path: The file tcp_info.parquet.
        flow: The flow.

    Returns:
        A table with t_s (since the run began), snd_cwnd, snd_ssthresh and rtt (us, the mean over
        connections). Rows are sorted by t_s. The table is empty if the file does not exist.
    """
    columns = ["t_s", "flow", "snd_cwnd", "snd_ssthresh", "rtt"]
    if not path.exists():
        return pd.DataFrame(columns=columns)
    table = read_parquet(path, columns=columns)
    samples = table[table["flow"] == flow.name]
    if flow.traffic == "bulk":
        return samples.sort_values("t_s")
    groups = samples.groupby("t_s")
    windows = groups[["snd_cwnd", "snd_ssthresh"]].sum(min_count=1)
    return windows.assign(rtt=groups["rtt"].mean()).reset_index()


def _make_curve(samples: pd.DataFrame, column: str, begin_s: float) -> Curve | None:
    samples_with_value = samples[samples[column].notna()]
    if samples_with_value.empty:
        return None
    time = samples_with_value["t_s"].to_numpy(np.float64) - begin_s
    return condense(time, samples_with_value[column].to_numpy(np.float64))


def _read_verdicts(path: Path, flow: FlowPlan, begin_s: float) -> Verdicts | None:
    """Return when a scheme classified losses of a flow; None if the scheme reported no events.

    Only losses shown by three duplicate ACKs or a timeout count.
    """
    if not path.exists():
        return None
    table = read_parquet(path, columns=["t_s", "flow", "event", "verdict"])
    flow_events = table[table["flow"] == flow.name]
    if flow_events.empty:
        return None
    loss_events = flow_events[flow_events["event"].isin(["three_duplicates", "timeout"])]

    def select_times(verdict: str) -> Floats:
        times_s = loss_events.loc[loss_events["verdict"] == verdict, "t_s"]
        return times_s.to_numpy(np.float64) - begin_s

    return Verdicts(select_times("congestion"), select_times("channel"), select_times("undecided"))


def _read_emulator_queue(
    path: Path, plan: RunPlan, direction: LinkDirection
) -> tuple[RecordedQueue | None, str]:
    """Read a queue of the emulator; if it is not known, return None and the reason."""
    channel = plan.channel(direction)
    if channel.mean_rate_bps is None:
        return None, "the path has no rate limit"
    if not channel.has_steady_delay:
        # The time at which a packet left the queue is its arrival minus the delay.
        return None, "not known with a delay that varies"
    if not path.exists():
        return None, "not recorded"
    columns = ["link", "direction", "arrived_ns", "left_ns", "fate", "is_copy"]
    columns += ["sender"] if direction.is_hop else []
    table = read_parquet(path, columns=columns)
    is_selected = (table["link"] == direction.link) & (table["direction"] == direction.direction)
    if direction.is_hop:
        is_selected &= table["sender"] == direction.sender
    table = table[is_selected & ~table["is_copy"]]
    if table.empty:
        return None, "not recorded"
    begin = plan.timeline.traffic_s * 1e9
    is_overflow = table["fate"].isin(QUEUE_DROPS)
    is_loss = table["fate"].isin(CHANNEL_LOSSES)
    entered_queue = table["fate"].isin(["delivered", "AQM drop", "given up"])
    if channel.loss.at == "egress":
        entered_queue |= is_loss
    arrived, waiting = compute_backlog(
        table.loc[entered_queue, "arrived_ns"].to_numpy(np.int64),
        # Losses on the channel are recorded at the end of transmission, without the delay.
        (table["left_ns"] - channel.delay_ns * (table["fate"] == "delivered"))[
            entered_queue
        ].to_numpy(np.int64),
    )
    limit = channel.queue.packets if channel.queue is not None else None
    return RecordedQueue(
        time_s=(arrived.astype(np.float64) - begin) / 1e9,
        waiting=waiting.astype(np.float64),
        sampled=False,
        limit_packets=limit,
        overflow_s=(table.loc[is_overflow, "left_ns"].to_numpy(np.float64) - begin) / 1e9,
        loss_s=(table.loc[is_loss, "left_ns"].to_numpy(np.float64) - begin) / 1e9,
    ), ""


def _read_switch_queue(
    run: Path, plan: RunPlan, direction: LinkDirection
) -> tuple[RecordedQueue | None, str]:
    """Read the samples of a switch's queue; if there are none, return None and the reason.

    A switch samples the length of its queue when packets leave.
    """
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
        return None, "the switch reported no samples"
    begin_s = plan.timeline.traffic_s
    overflow, loss = _read_switch_drops(run, plan, direction)
    limit = port.imposes.queue.packets if port.imposes.queue is not None else None
    return RecordedQueue(
        time_s=table["t_s"].to_numpy(np.float64) - begin_s,
        waiting=table["depth_at_dequeue"].to_numpy(np.float64),
        sampled=True,
        limit_packets=limit,
        overflow_s=overflow,
        loss_s=loss,
    ), ""


def _read_switch_drops(run: Path, plan: RunPlan, direction: LinkDirection) -> tuple[Floats, Floats]:
    """Return the times of the queue drops and of the channel losses of a switch's port.

    Both arrays are empty if there is no drop log of the switch, or no manifest.
    """
    node = plan.node(plan.sender_of(direction))
    assert node.switch is not None
    log, manifest = run / drops_file(node.name), run / "manifest.json"
    if not log.exists() or not manifest.exists():
        return np.zeros(0), np.zeros(0)
    links = [port.link for port in node.switch.ports]
    drops = read_drops(log, of_switch=True)
    port_drops = drops[drops["interface"] == egress_interface(links.index(direction.link))]
    begin_s = Manifest.read(manifest).began_realtime_s + plan.timeline.traffic_s
    dropped_s = (port_drops["time_ns"] - round(begin_s * 1e9)).to_numpy(np.float64) / 1e9
    is_overflow = port_drops["cause"].isin(QUEUE_DROPS).to_numpy()
    return dropped_s[is_overflow], dropped_s[~is_overflow]


def compute_backlog(
    arrived_ns: npt.NDArray[np.int64], sent_ns: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of packets waiting in a queue after each instant at which it changed.

    The queue must be FIFO. A packet in transmission does not wait. Packets that were still in the
    queue when the record ended are not recorded, so they do not count.

    Args:
        arrived_ns: Time at which each packet entered the queue.
        sent_ns: Time at which the transmission of each packet ended.

    Returns:
        The instants, and the number of waiting packets from each instant on.
    """
    order = np.lexsort((sent_ns, arrived_ns))
    arrived, sent = arrived_ns[order], sent_ns[order]
    previous = np.concatenate((arrived[:1], sent[:-1]))
    started = np.maximum(arrived, previous)
    times = np.concatenate((arrived, started))
    steps = np.concatenate((np.ones(len(arrived), np.int64), -np.ones(len(arrived), np.int64)))
    order = np.argsort(times, kind="stable")
    times, waiting = times[order], np.cumsum(steps[order])
    is_last = np.concatenate((times[1:] != times[:-1], [True]))[: len(times)]
    return times[is_last], waiting[is_last]


def condense(time: Floats, value: Floats) -> Curve:
    """Return samples as a curve of at most _STEPS points.

    Each point is the mean of the samples in a time span; all spans have the same length. Up to
    _STEPS samples are returned unchanged.
    """
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


def condense_steps(time: Floats, value: Floats, end_s: float) -> Curve:
    """Return a step function over [0, end_s] as a curve of _STEPS points.

    Each point is the mean over a time span; all spans have the same length.

    Args:
        time: The instants at which the function changes, in ascending order.
        value: The value from each instant on. The function is 0 before the first instant.
        end_s: The end of the curve.
    """
    edges = np.linspace(0, end_s, _STEPS + 1)
    # A step at each edge makes every span begin with the function's value at the edge.
    index_before = np.searchsorted(time, edges, side="right") - 1
    at_edges = np.where(index_before >= 0, value[np.maximum(index_before, 0)], 0.0)
    times = np.concatenate((time, edges))
    order = np.argsort(times, kind="stable")
    times, values = times[order], np.concatenate((value, at_edges))[order]
    is_inside = (times >= 0) & (times <= end_s)
    times, values = times[is_inside], values[is_inside]
    starts = np.searchsorted(times, edges[:-1], side="right") - 1
    area = np.append(values[:-1] * np.diff(times), 0.0)
    return Curve(
        edges[:-1],
        np.add.reduceat(area, starts) / np.diff(edges),
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
    )
