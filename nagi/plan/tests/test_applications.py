# SPDX-License-Identifier: Apache-2.0
"""Applications of nagi-traffic in experiment files and plans."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from application_specs import write_spec
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.spec.schema import make_experiment_schema
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT
from nagi_contracts.plan import FlowPlan, RunPlan
from ruamel.yaml import YAML

ALL = {
    "{application: transfer, size: 5 MiB, max_duration: 1 min}": {
        "application": "transfer",
        "size_bytes": 5 * 2**20,
        "max_duration_ns": 60 * 10**9,
    },
    "{application: playback, rate: 1 Mb/s, interval: 40 ms, size: 5 MB, ahead: true}": {
        "application": "playback",
        "rate_bps": 10**6,
        "interval_ns": 40 * 10**6,
        "size_bytes": 5 * 10**6,
        "ahead": True,
    },
    "{application: cbr, rate: 100 kb/s}": {
        "application": "cbr",
        "rate_bps": 10**5,
        "payload_bytes": 1000,
    },
    "{application: cbr, rate: 100 kb/s, search: 2 s}": {
        "application": "cbr",
        "rate_bps": 10**5,
        "payload_bytes": 1000,
        "search_ns": 2 * 10**9,
    },
    "{application: cbr, codec: g711, playout: 40 ms}": {
        "application": "cbr",
        "rate_bps": 80_000,
        "payload_bytes": 172,
        "codec": "g711",
        "playout_ns": 40 * 10**6,
    },
    "{application: token_bucket}": {
        "application": "token_bucket",
        "depth_bytes": 20_000,
        "token_bytes": 1000,
        "tokens": 20,
        "interval_ns": 30 * 10**6,
    },
    "{application: poisson, interval: 1 s, sizes: exponential, size: 1 kB}": {
        "application": "poisson",
        "interval_ns": 10**9,
        "sizes": "exponential",
        "size_bytes": 1000,
    },
    "{application: request_response, sizes: pareto, min: 1 kB, max: 1 MB, pause: 1 s}": {
        "application": "request_response",
        "request_bytes": 200,
        "sizes": "pareto",
        "min_bytes": 1000,
        "max_bytes": 10**6,
        "shape": 1.2,
        "pause_ns": 10**9,
    },
    "{application: onoff, rate: 1 Mb/s, on_time: 1 s, off_time: 2 s, distribution: pareto}": {
        "application": "onoff",
        "rate_bps": 10**6,
        "on_time_ns": 10**9,
        "off_time_ns": 2 * 10**9,
        "distribution": "pareto",
        "shape": 1.5,
        "transport": "udp",
        "payload_bytes": 1000,
    },
}


def flow_of(directory: Path, traffic: str) -> FlowPlan:
    (point,) = read_experiment(write_spec(directory, traffic), None)
    (plan,) = plan_runs(point, None)
    (flow,) = RunPlan.model_validate_json(plan.model_dump_json()).flows
    return flow


@pytest.mark.parametrize("traffic", ALL)
def test_an_application_is_in_the_plan_with_all_its_numbers(tmp_path, traffic):
    flow = flow_of(tmp_path, traffic)
    assert json.loads(flow.application.model_dump_json()) == ALL[traffic]
    assert flow.traffic == flow.application.application
    assert flow.application.describe()
    # Who answers requests listens; all others are asked to receive.
    assert flow.listening_end == ("sender" if flow.traffic == "request_response" else "receiver")
    spec = YAML(typ="safe").load((tmp_path / "spec.yaml").read_text())
    jsonschema.validate(spec, make_experiment_schema())


def test_a_bulk_flow_s_plan_does_not_know_of_applications(tmp_path):
    for traffic, program in {
        "bulk": "nagi-traffic",
        "{application: bulk}": "nagi-traffic",
        "{application: bulk, program: iperf}": None,
    }.items():
        flow = flow_of(tmp_path, traffic)
        assert (flow.traffic, flow.program) == ("bulk", program)
        assert "application" not in json.loads(flow.model_dump_json())


@pytest.mark.parametrize(
    "traffic, sizes",
    [
        ("{application: cbr, codec: g711}", (172, 200)),
        ("{application: cbr, rate: 1 Mb/s, payload: 500 B}", (500, 528)),
        (
            "{application: onoff, rate: 1 Mb/s, on_time: 1 s, off_time: 1 s, transport: tcp}",
            (1000, 1052),
        ),
    ],
)
def test_the_ceiling_of_datagrams_is_udp_s(tmp_path, traffic, sizes):
    flow = flow_of(tmp_path, traffic)
    assert (flow.payload_bytes, flow.packet_bytes) == sizes


def test_an_axis_may_stand_for_a_setting(tmp_path):
    spec = write_spec(tmp_path, "{application: playback, rate: 1 Mb/s, interval: $interval}")
    text = spec.read_text()
    spec.write_text(text.replace("scheme: [cubic]", "scheme: [cubic], interval: [40 ms, 100 ms]"))
    plans = [plan for point in read_experiment(spec, None) for plan in plan_runs(point, None)]
    intervals = [plan.flows[0].application.interval_ns for plan in plans]
    assert intervals == [40 * 10**6, 100 * 10**6]


def test_a_route_s_control_is_not_asked_for(tmp_path):
    """Check that nagi-traffic sets each connection's congestion control, as bulk flows do."""
    (point,) = read_experiment(write_spec(tmp_path, "{application: token_bucket}"), None)
    (plan,) = plan_runs(point, None)
    assert all(route.congctl is None for node in plan.nodes for route in node.routes)


def test_flows_with_different_schemes_share_hosts(tmp_path):
    spec = write_spec(tmp_path, "{application: token_bucket}")
    other = "  b: {from: S, to: D, scheme: sack, traffic: bulk}\nduration"
    spec.write_text(spec.read_text().replace("duration", other, 1))
    (point,) = read_experiment(spec, None)
    with pytest.raises(InputError, match="unknown scheme 'sock'"):
        spec.write_text(spec.read_text().replace("scheme: sack,", "scheme: sock,"))
        plan_runs(read_experiment(spec, None)[0], None)
    assert len(plan_runs(point, None)[0].flows) == 2


def test_the_example_is_planned(tmp_path):
    for variant in (None, "quick"):
        points = read_experiment(ROOT / "experiments" / "applications.yaml", variant)
        (first, *_) = points
        (plan, *_) = plan_runs(first, variant)
        assert {flow.traffic for flow in plan.flows} >= {"playback", "transfer", "token_bucket"}
