# SPDX-License-Identifier: Apache-2.0
"""From a run directory to its rows, and from a campaign's runs to results.parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi.contracts.links import DirectionAccount, Links
from nagi.contracts.plan import FlowPlan, RunPlan
from nagi.contracts.records import Campaign, Manifest, Verdict
from nagi.contracts.results import Metrics, ResultRow

from nagi_reports.capture import Packets, read_capture
from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    data_packets,
    goodput_bps,
    retransmitted_segments,
)


def analyse_run(run: Path) -> Metrics:
    """Computes metrics.json of a run that came to its end, from its captures."""
    plan = RunPlan.read(run / "plan.json")
    manifest = Manifest.read(run / "manifest.json")
    verdict = Verdict.read(run / "verdict.json")
    links = Links.read(run / "links.json")
    captures = {capture.node: read_capture(run / capture.file) for capture in plan.captures}
    start_ns = _instant(manifest, plan.measure.start_s)
    end_ns = _instant(manifest, plan.measure.end_s)
    rows = []
    for flow in plan.flows:
        sent, received = (
            _of(flow, captures[node].packets) for node in (flow.sender, flow.receiver)
        )
        goodput = goodput_bps(received, start_ns, end_ns)
        overflows, losses, transmitted = _drops(flow, links)
        rows.append(
            ResultRow(
                run_id=plan.run_id,
                point_id=plan.point_id,
                lab=manifest.lab,
                build=manifest.build.id,
                status=verdict.status,
                repeat=plan.repeat,
                seed=plan.seed,
                point=plan.point,
                flow=flow.name,
                scheme=flow.scheme,
                congestion_control=flow.congestion_control,
                bottleneck_bps=flow.bottleneck_bps,
                base_rtt_s=flow.base_rtt_s,
                measured_s=round(plan.measure.end_s - plan.measure.start_s, 6),
                goodput_bps=goodput,
                agi=agi(goodput, flow.bottleneck_bps),
                agi_ceiling=agi_ceiling(flow.payload_bytes, flow.packet_bytes),
                segments_sent=len(sent),
                segments_retransmitted=retransmitted_segments(sent),
                queue_overflows=overflows,
                channel_losses=losses,
                channel_packets=transmitted,
            )
        )
    metrics = Metrics(
        rows=rows, notices=[capture.damage for capture in captures.values() if capture.damage]
    )
    metrics.write(run / "metrics.json")
    return metrics


def ensure_metrics(run: Path) -> None:
    """Computes the metrics of a run that has none yet."""
    if not (run / "metrics.json").exists():
        analyse_run(run)


def build_table(out: Path, campaign: Campaign) -> pd.DataFrame:
    """The table of all runs of a campaign that came to their end; writes results.parquet."""
    rows = []
    for run in campaign.runs:
        metrics = out / "runs" / run.run_id / "metrics.json"
        if metrics.exists():
            for row in Metrics.read(metrics).rows:
                values = row.model_dump()
                point = values.pop("point")
                rows.append(values | {f"point.{axis}": value for axis, value in point.items()})
    columns = [name for name in ResultRow.model_fields if name != "point"]
    columns += [f"point.{axis}" for axis in (campaign.runs[0].point if campaign.runs else {})]
    table = pd.DataFrame(rows, columns=columns)
    table.to_parquet(out / "results.parquet", index=False)
    return table


def _instant(manifest: Manifest, seconds: float) -> int:
    """An instant of the run in nanoseconds since the Unix epoch."""
    return round((manifest.began_realtime_s + seconds) * 1e9)


def _of(flow: FlowPlan, packets: Packets) -> Packets:
    return data_packets(packets, flow.sender_address, flow.receiver_address, flow.port)


def _drops(flow: FlowPlan, links: Links) -> tuple[int, int, int]:
    """Queue overflows, channel losses and transmitted packets along the flow's path."""
    accounts: list[DirectionAccount] = []
    for hop in flow.path:
        link = next(link for link in links.links if link.name == hop.link)
        accounts.append(link.a_to_b if hop.way == "forward" else link.b_to_a)
    return (
        sum(account.packets.queue_overflows for account in accounts),
        sum(account.packets.channel_losses for account in accounts),
        sum(account.server.packets for account in accounts),
    )
