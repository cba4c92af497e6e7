# SPDX-License-Identifier: Apache-2.0
"""Metrics of one run, from its captures and records."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Manifest
from nagi_contracts.results import Metrics, ResultRow

from nagi_reports.analysis.flow_row import compute_flow_row, measure_goodput_over_time
from nagi_reports.analysis.recorded import (
    GOODPUT,
    METRICS,
    RecordedRun,
    find_capture,
)
from nagi_reports.fairness import compute_fairness
from nagi_reports.media import FRAMES, PACKETS


def analyse_run(run: Path) -> Metrics:
    """Compute the metrics of a run that completed, and write them to its metrics.json.

    If flows share a bottleneck, also write goodput.parquet.

    Raises:
        InputError: A file of the run is missing, cannot be read, or differs from its checksum in
            manifest.json. A truncated capture would give a wrong goodput.
    """
    Manifest.read(run / "manifest.json").require_files(run)
    recorded = RecordedRun.read(run)
    plan = recorded.plan
    windows = measure_goodput_over_time(recorded)
    if windows is not None:
        table = windows.to_table(plan.timeline.traffic_s)
        table.to_parquet(run / GOODPUT, index=False)
    fairness = compute_fairness(
        plan, {flow.name: recorded.compute_goodput_bps(flow) for flow in plan.flows}, windows
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
                **compute_flow_row(recorded, flow),
                **fairness.get(flow.name, {}),
            }
        )
        for flow in plan.flows
    ]
    metrics = Metrics(
        rows=rows,
        files=recorded.manifest.fates(plan),
        # Run directories are published, so notices do not contain the campaign's path.
        notices=[
            scan.damage.replace(f"{run}/", "") for scan in recorded.scans.values() if scan.damage
        ],
    )
    metrics.write(run / METRICS)
    return metrics


def ensure_metrics(run: Path) -> None:
    """Compute the metrics of a run, and write its metrics.json, unless this file exists."""
    if not (run / METRICS).exists():
        analyse_run(run)


def can_analyse(run: Path) -> bool:
    """Return whether a run still has the files from which its metrics are computed.

    These files are the captures and, with shared media, the records of packets and frames.
    """
    plan = RunPlan.read(run / "plan.json")
    records = (PACKETS, FRAMES) if plan.media else ()
    return all(find_capture(run, capture.file) for capture in plan.captures) and all(
        (run / name).exists() for name in records
    )
