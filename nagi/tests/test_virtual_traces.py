# SPDX-License-Identifier: Apache-2.0
"""Goodput over links whose rate and delay change while it is measured."""

from __future__ import annotations

import subprocess

import pytest
from marks import in_virtual_time
from nagi_contracts.paths import executable
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.results import Metrics
from specs import two_links

pytestmark = in_virtual_time

# The interval, 10 s to 16 s, is shifted by 20 ms: 3 s at 4 Mb/s, and 3 s minus 10 ms at 12 Mb/s.
HANDOFF = """rate_trace: {steps: {0 s: 4 Mb/s, 13 s: 12 Mb/s}, period: 60 s}, delay: 10 ms, \
queue: 50 packets"""
# The delay falls from 60 ms to 20 ms, so packets of 40 ms more arrive in the interval.
NEARER = """rate: 6 Mb/s, queue: 50 packets, \
delay_trace: {steps: {0 s: 60 ms, 13 s: 20 ms}, period: 60 s}"""


@pytest.mark.parametrize("link", [HANDOFF, NEARER], ids=["handoff", "nearer"])
def test_a_flow_that_fills_a_link_with_traces_reaches_the_ceiling_and_no_more(tmp_path, link):
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        two_links(
            "traces",
            "rate: 100 Mb/s, delay: 5 ms",
            link,
            "scheme: $scheme",
            """\
duration: 15 s
warmup: 9 s
matrix: {scheme: [cubic]}
report: {x: scheme}
""",
        )
    )
    out = tmp_path / "out"
    subprocess.run(
        [executable("nagi"), "run", spec, "--lab", "virtual", "--out", out], check=True, timeout=280
    )
    (entry,) = Campaign.read(out / "campaign.json").runs
    run = out / "runs" / entry.run_id
    verdict, plan = Verdict.read(run / "verdict.json"), RunPlan.read(run / "plan.json")
    assert verdict.status == "valid", verdict.reasons
    row, *_ = Metrics.read(run / "metrics.json").rows
    seconds = plan.measure.end_s - plan.measure.start_s
    start = plan.measure.start_s
    if link == HANDOFF:
        slow = 13 - (start - 0.010)
        bits = 4e6 * slow + 12e6 * (seconds - slow)
    else:
        bits = 6e6 * (seconds + 0.040)
    assert row.bottleneck_bps == pytest.approx(bits / seconds, abs=1)
    # One packet at each end of the interval may be counted or not.
    packet = row.agi_ceiling * 2 * 1500 * 8 / seconds / row.bottleneck_bps
    assert row.agi == pytest.approx(row.agi_ceiling, abs=packet)
