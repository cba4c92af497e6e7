# SPDX-License-Identifier: Apache-2.0
"""Many flows over one link: each is measured, and the hosts respond as their TCP does."""

from __future__ import annotations

import json
import subprocess

from marks import in_virtual_time
from nagi_contracts.paths import executable
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.results import Metrics

pytestmark = in_virtual_time

SPEC = """\
schema_version: 1
name: many
title: Many
seed: 1
nodes: {a: host, b: host}
links:
  out: {between: [a, b], rate: 50 Mb/s, delay: 10 ms, queue: 1 bdp}
flows:
  f: {from: a, to: b, scheme: $scheme, count: 256}
duration: 4 s
warmup: 1 s
matrix: {scheme: [cubic]}
report: {x: scheme}
"""


def test_as_many_flows_as_the_manual_allows_are_valid_though_they_begin_at_once(tmp_path):
    """Start the maximum number of flows at the same instant.

    Agents that sampled each flow separately delayed hosts by 0.2 ms for 50 flows. iperf's servers
    delayed hosts, too, and closed connections whose handshake and first bytes were lost for 4 s.
    """
    spec, out = tmp_path / "many.yaml", tmp_path / "out"
    spec.write_text(SPEC)
    subprocess.run(
        [executable("nagi"), "run", spec, "--lab", "virtual", "--out", out], check=True, timeout=290
    )
    (entry,) = Campaign.read(out / "campaign.json").runs
    run = out / "runs" / entry.run_id
    verdict = Verdict.read(run / "verdict.json")
    assert verdict.status == "valid", verdict.reasons
    rows = Metrics.read(run / "metrics.json").rows
    assert len(rows) == 256
    # Together they fill the link, but for what its queue loses.
    assert 0.9 < sum(row.agi or 0 for row in rows) <= rows[0].agi_ceiling + 0.001
    # A check leads to the instants it was measured at.
    command = [executable("nagi"), "show", run, "--check", "host_response_max", "--json"]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert shown["check"]["ok"] and len(shown["places"]) >= 100
    worst = shown["witnesses"][0]
    assert worst["waited_ms"] <= 0.1 and 0 < worst["time_s"] < 11
