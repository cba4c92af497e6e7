# SPDX-License-Identifier: Apache-2.0
"""Entries of `flows` that stand for several flows, and flows that a point is without."""

from __future__ import annotations

from pathlib import Path

import pytest
from nagi.campaign.selection import find_schemes
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import find_experiment
from nagi_contracts.plan import RunPlan
from nagi_reports.fairness import group_by_bottleneck

SPEC = """\
schema_version: 1
name: counted
title: Flows by number
seed: 3
nodes: {{A: host, B: host, N: router, D: host, E: host}}
links:
  a: {{between: [A, N], rate: 100 Mb/s, delay: 5 ms}}
  b: {{between: [B, N], rate: 100 Mb/s, delay: 35 ms}}
  shared: {{between: [N, D], rate: 20 Mb/s, delay: 5 ms, queue: 1 bdp}}
  exit: {{between: [N, E], rate: 100 Mb/s}}
flows:
  {flows}
duration: 10 s
matrix:
  {matrix}
report: {{x: {x}, series: {x}}}
"""


def plans(tmp_path: Path, flows: str, matrix: str) -> list[RunPlan]:
    spec = tmp_path / "spec.yaml"
    spec.write_text(SPEC.format(flows=flows, matrix=matrix, x=matrix.split(":")[0]))
    return [plan for point in read_experiment(spec, None) for plan in plan_runs(point, None)]


def test_a_count_makes_numbered_flows_with_ports_and_starts_of_their_own(tmp_path):
    (plan,) = plans(
        tmp_path,
        "x: {from: A, to: D, scheme: $s, count: 3, every: 2 s, start: 1 s}\n"
        "  y: {from: B, to: D, scheme: $s, count: 2, port: 7000}\n"
        "  z: {from: B, to: D, scheme: $s}",
        "s: [cubic]",
    )
    begin = plan.timeline.traffic_s
    assert [(f.name, f.group, f.port, round(f.start_s - begin, 6)) for f in plan.flows] == [
        ("x.1", "x", 5001, 1),
        ("x.2", "x", 5002, 3),
        ("x.3", "x", 5003, 5),
        ("y.1", "y", 7000, 0),
        ("y.2", "y", 7001, 0),
        ("z", "z", 5006, 0),
    ]
    assert {round(f.base_rtt_s, 6) for f in plan.flows} == {0.02, 0.08}
    assert len(plan.captures) == 3


def test_a_count_may_be_an_axis(tmp_path):
    found = plans(tmp_path, "x: {from: A, to: D, scheme: cubic, count: $n}", "n: [1, 2, 17]")
    assert [len(plan.flows) for plan in found] == [1, 2, 17]
    assert len({plan.seed for plan in found}) == 1  # they meet the same channel


def test_a_flow_without_a_scheme_is_left_out_and_leaves_links_as_they_are(tmp_path):
    """Calculate 1 bdp by the longest RTT, even at points without the flow that has it."""
    alone, beside = plans(
        tmp_path,
        "x: {from: A, to: D, scheme: cubic}\n"
        "  y: {from: B, to: D, scheme: $rival, count: 2}\n"
        "  z: {from: A, to: D, scheme: cubic}",
        "rival: [none, cubic]",
    )
    assert [flow.name for flow in alone.flows] == ["x", "z"]
    assert [flow.name for flow in beside.flows] == ["x", "y.1", "y.2", "z"]
    assert alone.links == beside.links and alone.seed == beside.seed
    assert alone.flows == [beside.flows[0], beside.flows[3]]
    assert {capture.node for capture in alone.captures} == {"A", "D"}


def test_no_scheme_is_none_to_be_looked_for(tmp_path):
    spec = tmp_path / "spec.yaml"
    flows = "x: {from: A, to: D, scheme: cubic}\n  y: {from: B, to: D, scheme: $rival}"
    spec.write_text(SPEC.format(flows=flows, matrix="rival: [none, sack]", x="rival"))
    assert set(find_schemes(read_experiment(spec, None))) == {"cubic", "sack"}


def test_flows_share_the_bottleneck_that_has_least_for_each(tmp_path):
    """Find the link that limits each flow.

    A is slower than the sum of the rates, but no bottleneck of its flow: half of the shared link is
    less.
    """
    flows = (
        "x: {from: A, to: D, scheme: $s}\n"
        "  y: {from: B, to: D, scheme: $s, count: 2}\n"
        "  out: {from: A, to: E, scheme: $s, count: 2}\n"
        "  back: {from: D, to: A, scheme: $s}\n"
        "  cross: {from: B, to: D, scheme: $s, background: true}"
    )
    (plan,) = plans(tmp_path, flows, "s: [cubic]")
    groups = [group.names for group in group_by_bottleneck(plan)]
    assert groups == [["x", "y.1", "y.2"], ["out.1", "out.2"]]


@pytest.mark.parametrize("variant", [None, "quick", "rtt", "rtt-quick"])
def test_the_fairness_experiment_has_two_to_sixteen_flows_and_a_baseline(variant):
    points = read_experiment(find_experiment(Path("fairness")), variant)
    found = [plan for point in points for plan in plan_runs(point, variant)]
    counts = {len(plan.flows) for plan in found}
    rtts = {round(flow.base_rtt_s * 1e3) for plan in found for flow in plan.flows}
    if variant is None:
        assert {2, 8, 16} < counts
    assert rtts == ({10, 40, 80} if variant and "rtt" in variant else {40})
    alone = {plan.point["scheme"] for plan in found if plan.point["competitor"] == "none"}
    assert alone == {plan.point["scheme"] for plan in found}
    assert len({plan.seed for plan in found if plan.repeat == 0}) == 1
