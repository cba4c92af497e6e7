# SPDX-License-Identifier: Apache-2.0
"""Define a campaign in which a switch is the bottleneck and the channel, and check its runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from nagi_captures.drops import read_drops
from nagi_contracts.paths import executable
from nagi_contracts.plan import LinkDirection, RunPlan
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.results import Metrics
from nagi_contracts.switches import QueueSample, Switches
from nagi_p4.simple_switch_client import find_client_directory, find_problem
from nagi_reports.series import read_series
from specs import two_links

needs_nagi_switch = pytest.mark.skipif(
    not executable("nagi-switch").exists(), reason="no nagi-switch: `make` builds it"
)
needs_bmv2 = pytest.mark.skipif(
    find_problem(client=find_client_directory()) is not None,
    reason="no bmv2, or not its Python modules",
)
NAGI = str(executable("nagi"))
SPEC = two_links(
    "switched",
    "rate: 40 Mb/s, delay: 8 ms",
    "rate: 8 Mb/s, delay: 2 ms, queue: 30 packets, "
    "forward: {shaped_by: switch, loss: {model: bernoulli, rate: $loss}}",
    "scheme: newreno",
    """\
host_profile: ns2
duration: 4 s
warmup: 1 s
matrix: {loss: [LOSSES]}
report: {x: loss, series: loss}
""",
    node="switch",
)
RADIO = LinkDirection(link="radio", direction="forward")


def run(tmp_path, losses: str, *arguments: str, valid: bool = True) -> dict[str, Path]:
    """Run the campaign, in which no run may fail; return the run directory of each loss rate."""
    spec, out = tmp_path / "spec.yaml", tmp_path / "out"
    spec.write_text(SPEC.replace("LOSSES", losses))
    done = subprocess.run(
        [NAGI, "run", str(spec), "--out", str(out), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert " 0 failed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0 or not valid, done.stdout
    assert (out / "report.pdf").exists() or not valid
    runs = Campaign.read(out / "campaign.json").runs
    return {run.point["loss"]: out / "runs" / run.run_id for run in runs}


def check(directory: Path, loss: float) -> None:
    """Check that the switch was the bottleneck and lost packets with probability `loss`.

    All records of the run must agree on the lost packets.
    """
    plan = RunPlan.read(directory / "plan.json")
    assert plan.switch_settings(RADIO) is not None
    (row,) = Metrics.read(directory / "metrics.json").rows
    (switch,) = Switches.read(directory / "switches.json").switches
    port = switch.ports[1]
    assert (port.link, port.direction) == ("radio", "forward")
    checks = {each.name: each for each in Verdict.read(directory / "verdict.json").checks}
    assert checks["switch_drops"].value == 0 and checks["unaccounted"].value == 0
    assert row.channel_losses == port.counters.lost
    assert (port.counters.lost > 0) == (loss > 0)
    if loss == 0:
        # The queue is filled and overflows: the rate is the switch's, and so is the queue.
        assert row.agi > 0.7
    samples = pd.read_parquet(directory / "queue_samples.parquet")
    assert list(samples.columns) == list(QueueSample.model_fields)
    assert set(samples["link"]) == {"radio"}
    assert samples["depth_at_dequeue"].between(0, 30).all()
    series = read_series(directory)
    assert series.bottleneck == "radio forward" and series.queue is not None
    assert series.queue.waiting.maximum.max() <= 30 == series.queue.limit_packets
    if loss == 0:
        assert series.queue.waiting.maximum.max() > 20
        assert checks["rate_error"].value is not None
        assert "switch N, radio forward" in checks["rate_error"].subject
    if switch.target == "bmv2":
        assert port.queue_overflows is None and row.queue_overflows is None
        return
    assert row.queue_overflows == port.queue_overflows
    assert port.queue_overflows > 0 or loss > 0
    drops = read_drops(directory / "N.drops.pcapng", of_switch=True)
    counts = drops["cause"].value_counts()  # all that are possible
    assert counts["queue overflow"] == port.queue_overflows == len(series.queue.overflow_s)
    assert counts["channel loss"] == port.counters.lost == len(series.queue.loss_s)
    # Every segment that was dropped has a cause, and the sender's reaction to it.
    noticed = row.queue_taken_for_congestion + row.channel_taken_for_congestion
    assert noticed > 0
