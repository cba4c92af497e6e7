# SPDX-License-Identifier: Apache-2.0
"""From a run directory to its rows, and from a campaign's runs to results.parquet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from nagi_captures.capture import Knots, Scan, match, packets, scan
from nagi_captures.clocks import ahead_ns, host_ns
from nagi_captures.drops import read_drops
from nagi_captures.flow_rows import is_of, matched, scanned
from nagi_contracts.applications import ApplicationEnds, Applications
from nagi_contracts.applications.transfer import TransferClient
from nagi_contracts.capacity import compute_bottleneck_bps
from nagi_contracts.errors import refuse
from nagi_contracts.links import Links
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import COMPRESSED, Campaign, HostClock, Manifest, Verdict
from nagi_contracts.results import Metrics, ResultRow, metrics_of_results
from nagi_contracts.switches import Switches, drops_file

from nagi_reports import applications, attribution
from nagi_reports.connections import known, rtt_seconds
from nagi_reports.fairness import Windows, add_harm, measures, sharing, window_s
from nagi_reports.media import FRAMES, PACKETS, Air
from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    buffer_delay,
    goodput_bps,
    loss_rate,
    tcp_efficiency,
    throughput_bps,
    time_mean,
)
from nagi_reports.parquet import read_parquet

METRICS = "metrics.json"
GOODPUT = "goodput.parquet"  # of the flows that share a bottleneck, over time

_OF_DROPS = [
    "time_ns",
    "connection",
    "direction",
    "sequence",
    "payload",
    "retransmission",
    "identity",
]
_RTT = ("min", "mean", "median", "p95", "p99")
_TCP_INFO = ["t_s", "flow", "ca_state", "snd_ssthresh", "snd_cwnd", "rtt"]


def analyse_run(run: Path) -> Metrics:
    """Computes metrics.json of a run that came to its end, from its captures.

    Raises InputError if a file of the run is missing, cannot be read, or is not what was recorded:
    a capture that was cut would give a wrong goodput.
    """
    Manifest.read(run / "manifest.json").require_files(run)
    recorded = Recorded.read(run)
    plan = recorded.plan
    windows = _goodput_over_time(recorded)
    if windows is not None:
        written = windows.table(plan.timeline.traffic_s)
        written.to_parquet(run / GOODPUT, index=False)
    fairness = measures(
        plan, {flow.name: recorded.goodput_bps(flow) for flow in plan.flows}, windows
    )
    rows = [
        ResultRow.model_validate(
            {
                "run_id": plan.run_id,
                "point_id": plan.point_id,
                "lab": recorded.manifest.lab,
                "build": recorded.manifest.build.id,
                "status": recorded.verdict.status,
                "repeat": plan.repeat,
                "seed": plan.seed,
                "point": plan.point,
                **_of_flow(recorded, flow),
                **fairness.get(flow.name, {}),
            }
        )
        for flow in plan.flows
    ]
    metrics = Metrics(
        rows=rows,
        files=recorded.manifest.fates(plan),
        # Without where the campaign is: run directories are published.
        notices=[
            each.damage.replace(f"{run}/", "") for each in recorded.scans.values() if each.damage
        ],
    )
    metrics.write(run / METRICS)
    return metrics


def ensure_metrics(run: Path) -> None:
    """Computes the metrics of a run that has none yet."""
    if not (run / METRICS).exists():
        analyse_run(run)


def can_analyse(run: Path) -> bool:
    """Whether a run still has all that its metrics are computed from: captures, and of media the
    records of packets and frames."""
    plan = RunPlan.read(run / "plan.json")
    records = (PACKETS, FRAMES) if plan.media else ()
    return all(find_capture(run, capture.file) for capture in plan.captures) and all(
        (run / name).exists() for name in records
    )


def find_capture(run: Path, file: str) -> Path | None:
    """Return a capture of a run, which may have been compressed; None if it was removed. If it is
    there in both ways, return the one that manifest.json lists."""
    found = [name for name in (file, file + COMPRESSED) if (run / name).exists()]
    if len(found) > 1:
        listed = Manifest.read(run / "manifest.json").files
        found.sort(key=lambda name: name not in listed)
    return run / found[0] if found else None


def require_capture(run: Path, file: str, without: str) -> Path:
    """Return a capture of a run as find_capture() does. Raises InputError if there is none;
    `without`: what cannot be done then."""
    found = find_capture(run, file)
    if found is None:
        raise refuse(
            "this capture is missing", f"restore it; without it {without}", file=str(run / file)
        )
    return found


def build_table(out: Path, campaign: Campaign) -> pd.DataFrame:
    """Return the table of all runs of a campaign that came to their end; write results.parquet.
    Raises InputError if a run's files are not as large as they were when they were recorded."""
    for run in campaign.runs:
        directory = out / "runs" / run.run_id
        if (directory / METRICS).exists() and (directory / "manifest.json").exists():
            manifest = Manifest.read(directory / "manifest.json")
            manifest.require_files(directory, only_sizes=True, allow_missing=True)
    table = read_table(out, campaign)
    table.to_parquet(out / "results.parquet", index=False)
    return table


def read_table(out: Path, campaign: Campaign) -> pd.DataFrame:
    """The same, as the runs are now; writes nothing."""
    rows = []
    for run in campaign.runs:
        metrics = out / "runs" / run.run_id / METRICS
        if metrics.exists():
            for row in Metrics.read(metrics).rows:
                values = row.model_dump()
                point = values.pop("point")
                rows.append(values | {f"point.{axis}": value for axis, value in point.items()})
    columns = [name for name in ResultRow.model_fields if name != "point"]
    columns += [f"point.{axis}" for axis in (campaign.runs[0].point if campaign.runs else {})]
    table = pd.DataFrame(rows, columns=columns)
    # A column without any value has the type of its numbers all the same.
    numbers = [name for name in metrics_of_results() if table[name].isna().all()]
    return add_harm(table.astype(dict.fromkeys(numbers, "float64")), campaign)


@dataclass(frozen=True)
class Recorded:
    """What a run left, with its captures scanned over the measurement interval."""

    directory: Path
    plan: RunPlan
    manifest: Manifest
    verdict: Verdict
    links: Links
    tcp_info: pd.DataFrame
    events: pd.DataFrame | None  # scheme_events.parquet; None: no flow has a scheme of ours
    drops: pd.DataFrame  # of the emulator and all switches
    switches: Switches | None  # None: there are none
    applications: dict[str, ApplicationEnds]  # by flow
    captures: dict[tuple[str, str], Path]  # (node, link) -> file
    scans: dict[tuple[str, str], Scan]
    resent: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)  # see of_drops()
    seen: dict[tuple[str, str], pd.DataFrame] = field(default_factory=dict)  # see identities()

    @classmethod
    def read(cls, run: Path) -> Recorded:
        plan = RunPlan.read(run / "plan.json")
        manifest = Manifest.read(run / "manifest.json")
        captures = {}
        for capture in plan.captures:
            path = require_capture(run, capture.file, "the run's metrics cannot be computed again")
            captures[capture.node, capture.link] = path
        verdict = Verdict.read(run / "verdict.json")
        measure = plan.measure
        return cls(
            directory=run,
            plan=plan,
            manifest=manifest,
            verdict=verdict,
            links=Links.read(run / "links.json"),
            tcp_info=read_parquet(run / "tcp_info.parquet", _TCP_INFO),
            events=read_parquet(events)
            if (events := run / "scheme_events.parquet").exists()
            else None,
            drops=all_drops(run, plan),
            applications={ends.flow: ends for ends in Applications.read(told).flows}
            if (told := run / "applications.json").exists()
            else {},
            switches=Switches.read(run / "switches.json") if plan.switches() else None,
            captures=captures,
            scans={
                at: scan(
                    path,
                    start_ns=instant(manifest, measure.start_s, verdict.clocks.get(at[0])),
                    end_ns=instant(manifest, measure.end_s, verdict.clocks.get(at[0])),
                )
                for at, path in captures.items()
            },
        )

    def of_drops(self, at: tuple[str, str]) -> pd.DataFrame:
        """What a capture has of the packets that were dropped, and of retransmissions: some columns
        of capture.PACKET_COLUMNS, and `identity` as in drops.DROP_COLUMNS. Read once."""
        if at not in self.resent:
            dropped = pd.Index(self.drops["identity"].unique())
            parts = []
            for table in packets(self.captures[at]):
                identity = _identity(table)
                wanted = table["retransmission"] | identity.isin(dropped)
                parts.append(table.assign(identity=identity)[_OF_DROPS][wanted])
            self.resent[at] = pd.concat(parts)
        return self.resent[at]

    @cached_property
    def air(self) -> Air:
        """What became of packets and frames on media."""
        return Air.read(self.directory, self.plan)

    def identities(self, flow: FlowPlan) -> pd.Series[int]:
        """The identities of a flow's packets, there and back, as records of packets have them: of
        all that a capture at one of its ends has."""
        found = []
        for at in dict.fromkeys((sending(flow), receiving(flow))):
            if at not in self.seen:
                parts = [
                    pd.DataFrame({"connection": table["connection"], "identity": _identity(table)})
                    for table in packets(self.captures[at])
                ]
                nothing = pd.DataFrame({"connection": [], "identity": []}, dtype="int64")
                self.seen[at] = pd.concat(parts) if parts else nothing
            flows, seen = self.scans[at].flows, self.seen[at]
            mine = is_of(flows, flow) | is_of(flows, flow, data=False)
            found.append(seen["identity"][seen["connection"].isin(flows["connection"][mine])])
        together: pd.Series[int] = pd.concat(found)
        return together

    def end_s(self, flow: FlowPlan) -> float:
        """When a flow's measurement ends: with the interval or, of a transfer that was completed
        before, when the last packet of its data arrived."""
        measure = self.plan.measure
        ends = self.applications.get(flow.name)
        if ends is None or not isinstance(ends.client, TransferClient) or not ends.client.completed:
            return measure.end_s
        received = scanned(self.scans[receiving(flow)].flows, flow)
        if received is None:
            return measure.end_s
        clock = self.verdict.clocks.get(flow.receiver)
        begin_ns = instant(self.manifest, measure.start_s, clock)
        after_s = max(0.0, float(received.last_data_ns - begin_ns) / 1e9)
        return min(measure.start_s + after_s, measure.end_s)

    def seconds(self, flow: FlowPlan) -> float:
        """How long a flow was measured."""
        return round(self.end_s(flow) - self.plan.measure.start_s, 6)

    def goodput_bps(self, flow: FlowPlan) -> float:
        received = scanned(self.scans[receiving(flow)].flows, flow)
        return goodput_bps(received.first_time_bytes_inside if received else 0, self.seconds(flow))


def _identity(packets: pd.DataFrame) -> pd.Series[int]:
    """As in drop logs and records of packets (drops.DROP_COLUMNS)."""
    found: pd.Series[int] = packets["identification"].astype("int64") * 2**16 + packets["checksum"]
    return found


def _of_flow(recorded: Recorded, flow: FlowPlan) -> dict[str, Any]:
    """The columns of one flow."""
    sent = scanned(recorded.scans[sending(flow)].flows, flow)
    received = scanned(recorded.scans[receiving(flow)].flows, flow)
    overflows, losses, transmitted = _drops(flow, recorded)
    goodput, seconds = recorded.goodput_bps(flow), recorded.seconds(flow)
    throughput = throughput_bps(received.ip_bytes_inside if received else 0, seconds)
    bottleneck = compute_bottleneck_bps(
        recorded.plan, flow, recorded.plan.measure.start_s, recorded.end_s(flow)
    )
    values = {
        "flow": flow.name,
        "background": flow.background,
        "scheme": flow.scheme,
        "congestion_control": flow.congestion_control,
        "bottleneck_bps": bottleneck,
        "base_rtt_s": flow.base_rtt_s,
        "measured_s": seconds,
        "goodput_bps": goodput,
        "agi": agi(goodput, bottleneck),
        "agi_ceiling": agi_ceiling(
            flow.full_payload(sends_datagrams=_sends_datagrams(recorded, flow)), flow.packet_bytes
        ),
        "segments_sent": sent.data_packets if sent else 0,
        "segments_retransmitted": sent.retransmitted_packets if sent else 0,
        "queue_overflows": overflows,
        "channel_losses": losses,
        "channel_packets": transmitted,
        "throughput_bps": throughput,
        "cwnd_mean_packets": _cwnd_mean(recorded, flow),
    }
    if sent:
        values |= _at_sender(recorded, flow, sent)
        values |= _reactions(recorded, flow, sent)
    if sent and received:
        values |= _between(recorded, flow)
    hops = [hop for hop in (*flow.path, *flow.path_back()) if hop.is_hop]
    if hops:
        measure = recorded.plan.measure
        values |= recorded.air.columns(
            recorded.air.of_flow(recorded.identities(flow).unique(), hops),
            round(measure.start_s * 1e9),
            round(recorded.end_s(flow) * 1e9),
        )
    ends = recorded.applications.get(flow.name)
    if ends is not None:
        one_clock = not {flow.sender, flow.receiver} & recorded.verdict.clocks.keys()
        values |= applications.columns(ends, one_clock=one_clock)
    return {name: known(value) for name, value in values.items()}


def _sends_datagrams(recorded: Recorded, flow: FlowPlan) -> bool:
    """Return whether the receiver's capture has UDP datagrams of a flow's."""
    flows = recorded.scans[receiving(flow)].flows
    return "udp" in set(flows["protocol"][is_of(flows, flow)])


def _at_sender(recorded: Recorded, flow: FlowPlan, sent: Any) -> dict[str, Any]:
    back = scanned(recorded.scans[sending(flow)].flows, flow, data=False)
    rtt = rtt_seconds(sent)
    mean = rtt["rtt_mean_s"]
    there_and_back = [*flow.path, *flow.path_back()]
    known_base = not _has_delay_trace(recorded.plan, there_and_back)
    return {
        "tcp_efficiency": tcp_efficiency(
            sent.payload_bytes_inside, sent.retransmitted_bytes_inside
        ),
        **{f"rtt_{name}_s": rtt[f"rtt_{name}_s"] for name in _RTT},
        "buffer_delay": buffer_delay(mean, flow.base_rtt_s)
        if mean is not None and known_base
        else None,
        "in_flight_mean_bytes": sent.in_flight_mean_bytes,
        "in_flight_max_bytes": sent.in_flight_max_bytes,
        "receive_window_mean_bytes": back.window_mean_bytes,
    }


def _between(recorded: Recorded, flow: FlowPlan) -> dict[str, Any]:
    """What compares both captures; nothing where a clock is not known, for then it is not even
    known which way packets went."""
    clocks = recorded.verdict.clocks
    if any(node in clocks and clocks[node] is None for node in (flow.sender, flow.receiver)):
        return {}
    manifest, measure = recorded.manifest, recorded.plan.measure
    found = match(
        recorded.captures[sending(flow)],
        recorded.captures[receiving(flow)],
        start_ns=instant(manifest, measure.start_s),
        end_ns=instant(manifest, measure.end_s),
        complete=True,  # captures begin before the traffic and end when all has arrived
        clocks=(
            _knots(manifest, clocks.get(flow.sender)),
            _knots(manifest, clocks.get(flow.receiver)),
        ),
    )
    row = matched(found.flows, flow)
    if row is None:
        return {}
    queueing = {
        "queueing_delay_mean_s": row.queueing_mean_ns / 1e9,
        "queueing_delay_p99_s": row.queueing_p99_ns / 1e9,
    }
    return {
        "one_way_delay_mean_s": row.delay_mean_ns / 1e9,
        "one_way_delay_p99_s": row.delay_p99_ns / 1e9,
        **({} if _has_delay_trace(recorded.plan, flow.path) else queueing),
        "loss_rate": loss_rate(row.data_lost, row.data_sent),
        "loss_bursts": row.bursts,
        "loss_burst_packets": row.burst_packets,
        "loss_burst_density": row.burst_density,
        "loss_gap_density": row.gap_density,
    }


def _has_delay_trace(plan: RunPlan, path: Sequence[LinkDirection]) -> bool:
    """Return whether a trace changes a path's propagation delay: delays do not tell waits then."""
    return any(plan.channel(direction).delay_trace is not None for direction in path)


@dataclass(frozen=True)
class Reactions:
    """What a flow's losses were taken for by its sender."""

    losses: pd.DataFrame  # rows of the drop log, and t_s by the emulator's clock
    found: attribution.Codes
    how: Literal["told", "inferred"]
    marks: int | None  # congestion marks it reduced for, as far as it told


def _reactions(recorded: Recorded, flow: FlowPlan, sent: Any) -> dict[str, Any]:
    """The same as columns; nothing where it is not known."""
    taken = reactions(recorded, flow, sent)
    if taken is None:
        return {}
    how: dict[str, Any] = {"reactions": taken.how}
    if taken.marks is not None:
        how["mark_reactions"] = taken.marks
    return how | attribution.columns(taken.losses, taken.found)


def reactions(recorded: Recorded, flow: FlowPlan, sent: Any) -> Reactions | None:
    """What the losses of a flow were taken for (`sent`: its row of the sender's capture); None
    where it is not a single TCP connection, its sender's clock is not known, or a switch does not
    tell what it dropped."""
    clocks = recorded.verdict.clocks
    clock = clocks.get(flow.sender)
    if getattr(sent, "protocol", "") != "tcp" or (flow.sender in clocks and clock is None):
        return None
    if not _tells_all(flow, recorded):
        return None
    losses = _losses(recorded, sent)
    events = recorded.events
    if events is not None and (mine := events[events["flow"] == flow.name]).size:
        found = attribution.told(losses, _by_emulator(clock, mine))
        return Reactions(losses, found, "told", int((mine["event"] == "congestion_mark").sum()))
    again = _retransmissions(recorded, flow, sent, losses)
    if again is None:
        return None
    samples = recorded.tcp_info[recorded.tcp_info["flow"] == flow.name]
    found = attribution.inferred(
        losses,
        _by_emulator(clock, again),
        _by_emulator(clock, samples),
        threshold=flow.congestion_control not in attribution.NO_THRESHOLD,
    )
    return Reactions(losses, found, "inferred", None)


def _losses(recorded: Recorded, sent: Any) -> pd.DataFrame:
    """A connection's data segments in the drop log, with t_s by the emulator's clock."""
    drops = recorded.drops
    mine: pd.DataFrame = drops[
        (drops["source"] == sent.source)
        & (drops["source_port"] == sent.source_port)
        & (drops["destination"] == sent.destination)
        & (drops["destination_port"] == sent.destination_port)
        & (drops["payload"] > 0)
    ]
    return mine.assign(t_s=(mine["time_ns"] - instant(recorded.manifest, 0)) / 1e9)


def _retransmissions(
    recorded: Recorded, flow: FlowPlan, sent: Any, losses: pd.DataFrame
) -> pd.DataFrame | None:
    """A connection's retransmissions as its sender captured them: t_s by its clock, sequence as on
    the wire, payload. None if the capture has none of its losses, for then it is not complete."""
    captured = recorded.of_drops(sending(flow)) if len(losses) else None
    if captured is None:
        return losses
    mine = captured[
        (captured["connection"] == sent.connection) & (captured["direction"] == sent.direction)
    ]
    # What captures count sequence numbers from: a segment that was dropped has both numbers.
    both = losses.merge(mine, on="identity", suffixes=("", "_captured"))
    first = ((both["sequence"] - both["sequence_captured"]) % 2**32).mode()
    if first.empty:
        return None
    again = mine[mine["retransmission"]]
    return pd.DataFrame(
        {
            "t_s": (again["time_ns"] - instant(recorded.manifest, 0)) / 1e9,
            "sequence": (again["sequence"] + first[0]) % 2**32,
            "payload": again["payload"],
        }
    )


def _by_emulator(clock: HostClock | None, table: pd.DataFrame) -> pd.DataFrame:
    """A table with t_s by the emulator's clock instead of a host's."""
    seconds = table["t_s"].to_numpy(np.float64)
    ahead = ahead_ns(clock, (seconds * 1e9).astype(np.int64))
    return table.assign(t_s=seconds - ahead / 1e9)


def _knots(manifest: Manifest, clock: HostClock | None) -> Knots:
    """A host's clock for match(): its times are since the Unix epoch."""
    epoch_ns = instant(manifest, 0)
    return [(at + epoch_ns, ahead) for at, ahead in clock.knots] if clock else []


def _goodput_over_time(recorded: Recorded) -> Windows | None:
    """Of all flows that share a bottleneck; None if there are none, or the traffic is shorter than
    a window."""
    plan = recorded.plan
    flows = [flow for group in sharing(plan) for flow in group.flows]
    width_s = window_s(plan)
    begin_s, end_s = plan.timeline.traffic_s, plan.timeline.traffic_end_s
    count = math.floor((end_s - begin_s) / width_s + 1e-9)
    if not flows or not count:
        return None
    width_ns = round(width_s * 1e9)
    begins_ns = {
        node: instant(recorded.manifest, begin_s, recorded.verdict.clocks.get(node))
        for node, _ in recorded.captures
    }
    # These windows begin with the traffic, those of recorded.scans with the measurement. One more
    # pass over a capture, however many flows it has.
    scans = {
        at: scan(recorded.captures[at], start_ns=begins_ns[at[0]], interval_ns=width_ns)
        for at in {receiving(flow) for flow in flows}
    }
    rates = {}
    for flow in flows:
        received = np.zeros(count)
        found, begin_ns = scans[receiving(flow)], begins_ns[flow.receiver]
        rows = found.flows.index[is_of(found.flows, flow)]
        if found.series is not None:
            mine = found.series[found.series["flow"].isin(rows)]
            index = ((mine["start_ns"] - begin_ns) // width_ns).to_numpy()
            inside = (index >= 0) & (index < count)
            np.add.at(received, index[inside], mine["first_time_bytes"].to_numpy()[inside])
        rates[flow.name] = received * 8 / width_s
    return Windows(width_s, begin_s + width_s * np.arange(1, count + 1), rates)


def _cwnd_mean(recorded: Recorded, flow: FlowPlan) -> float:
    mine = recorded.tcp_info[recorded.tcp_info["flow"] == flow.name].dropna(subset="snd_cwnd")
    windows = mine.groupby("t_s")["snd_cwnd"].sum()  # of all its connections
    return time_mean(
        (windows.index.to_numpy(np.float64) * 1e9).astype(np.int64),
        windows.to_numpy(np.float64),
        round(recorded.plan.measure.start_s * 1e9),
        round(recorded.end_s(flow) * 1e9),
    )


def sending(flow: FlowPlan) -> tuple[str, str]:
    """Node and link of the sender's capture."""
    return flow.sender, flow.path[0].link


def receiving(flow: FlowPlan) -> tuple[str, str]:
    """The same of the receiver's."""
    return flow.receiver, flow.path[-1].link


def instant(manifest: Manifest, seconds: float, clock: HostClock | None = None) -> int:
    """An instant of the run in nanoseconds since the Unix epoch, by a host's clock (None: the
    emulator's)."""
    since_ns = round(seconds * 1e9)
    ahead = host_ns(clock, since_ns) - since_ns
    return round((manifest.began_realtime_s + seconds) * 1e9) + ahead


def all_drops(run: Path, plan: RunPlan) -> pd.DataFrame:
    """What the emulator and the switches dropped, as far as they tell (drops.DROP_COLUMNS). Raises
    InputError if a log is missing or damaged."""
    logs = [read_drops(run / "drops.pcapng")]
    for node in plan.switches():
        path = run / drops_file(node.name)
        if path.exists():
            logs.append(read_drops(path, of_switch=True))
    if len(logs) == 1:
        return logs[0]
    # Categories of addresses differ from log to log.
    plain = [log.astype({"source": "object", "destination": "object"}) for log in logs]
    return pd.concat(plain).sort_values("time_ns", kind="stable", ignore_index=True)


def _tells_all(flow: FlowPlan, recorded: Recorded) -> bool:
    """Whether every drop on the flow's path is in a log: bmv2 keeps none."""
    imposed = any(recorded.plan.switch_share(direction) is not None for direction in flow.path)
    return not (imposed and recorded.plan.switch_target == "bmv2")


def _drops(flow: FlowPlan, recorded: Recorded) -> tuple[int | None, int, int]:
    """Packets that queues dropped (None: a switch does not tell), channel losses and transmitted
    packets along the flow's path. Of stations of media all their packets, whomever they are for;
    losses are those that were given up."""
    overflows: int | None = 0
    losses = transmitted = 0
    for direction in flow.path:
        if direction.sender is not None:
            packets = recorded.links.medium(direction.link).station(direction.sender).packets
            losses += packets.given_up
            transmitted += packets.delivered + packets.given_up
            overflows = None if overflows is None else overflows + packets.dropped_by_queue
            continue
        link = next(link for link in recorded.links.links if link.name == direction.link)
        account = link.forward if direction.direction == "forward" else link.backward
        losses += account.packets.channel_losses
        port = None
        if recorded.plan.switch_share(direction) is not None and recorded.switches is not None:
            port = recorded.switches.port(direction.link, direction.direction)
        if port is None:
            transmitted += account.server.packets
            more: int | None = account.packets.dropped_by_queue
        else:
            lost = port.lost or 0  # of a program of one's own on bmv2 nobody knows
            sent = account.packets.offered if port.sent is None else port.sent
            losses += lost
            transmitted += sent + lost
            more = port.queue_overflows
        overflows = None if overflows is None or more is None else overflows + more
    return overflows, losses, transmitted
