# SPDX-License-Identifier: Apache-2.0
"""Run plans: everything resolved, seeds that let schemes meet the same channel, stable ids."""

from __future__ import annotations

import pytest
from nagi.paths import SCHEMAS
from nagi.planner import plan_runs
from nagi.spec import read_experiment

EXAMPLE = SCHEMAS / "example" / "experiment.yaml"


@pytest.fixture
def plans():
    return [plan for point in read_experiment(EXAMPLE, None) for plan in plan_runs(point, None)]


def edited(tmp_path, *changes):
    text = EXAMPLE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return [plan for point in read_experiment(path, None) for plan in plan_runs(point, None)]


def test_everything_is_resolved(plans):
    plan = plans[0]
    radio, core = plan.link("radio"), plan.link("core")
    # 1.5 x 1 Mb/s x 30 ms = 5,625 bytes = 5.3 packets of 1,052 bytes.
    assert radio.forward.queue.packets == radio.backward.queue.packets == 6
    assert core.forward.queue.bytes == 64_000
    assert core.forward.overhead_bytes == 38
    assert (radio.forward.loss.model, radio.backward.loss.model) == ("poisson", "bernoulli")
    assert radio.forward.loss.packet_bytes == 1052
    assert radio.backward.loss.at == "ingress"
    up, down = plan.flows
    assert (up.port, down.port) == (5001, 6001)
    assert up.base_rtt_s == pytest.approx(0.030)
    assert up.bottleneck_bps == 1_000_000
    assert [(hop.link, hop.way) for hop in down.path] == [
        ("core", "backward"),
        ("radio", "backward"),
    ]
    assert down.start_s - up.start_s == pytest.approx(0.5)
    assert plan.measure.end_s - plan.measure.start_s == pytest.approx(1.5)
    assert {capture.file for capture in plan.captures} == {"client.radio.pcap", "server.core.pcap"}


def test_the_hosts_get_what_their_flows_need(plans):
    plan = plans[0]
    (route,) = plan.node("client").routes
    assert (route.destination, route.via) == ("198.18.1.2/32", "198.18.0.2")
    assert (route.mtu, route.advmss) == (1052, 1012)
    assert all(flow.max_window == 100 for flow in plan.flows)
    assert plan.node("client").sysctls["net.ipv4.tcp_sack"] == "0"
    router = plan.node("cell")
    assert router.sysctls["net.ipv4.ip_forward"] == "1"
    assert all(route.mtu is None for route in router.routes)


def test_phases_follow_each_other(plans):
    timeline = plans[0].timeline
    instants = list(timeline.model_dump().values())
    assert instants == sorted(instants)
    # What is on the way when the traffic ends can still arrive: two queues and a round trip.
    assert timeline.capture_end_s - timeline.traffic_end_s > 0.03 + 6 * 1052 * 8 / 1e6


def test_schemes_meet_the_same_channel_and_repeats_another(plans):
    seeds = {}
    for plan in plans:
        key = (plan.point["rate"], plan.repeat)
        seeds.setdefault(key, set()).add(plan.seed)
    assert len(seeds) == 4
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == 4


def test_ids_stand_for_plan_and_build(plans):
    ids = [plan.with_ids("build").run_id for plan in plans]
    assert len(set(ids)) == len(ids)
    assert [plan.with_ids("build").run_id for plan in plans] == ids
    assert plans[0].with_ids("other").run_id != ids[0]
    points = {plan.with_ids("build").point_id for plan in plans}
    assert len(points) == len(plans) / 2  # two repeats a point
    assert plans[0].with_ids("other").point_id in points


def test_changing_one_value_changes_only_its_runs(plans, tmp_path):
    changed = edited(tmp_path, ("[1 Mb/s, 2 Mb/s]", "[1 Mb/s, 3 Mb/s]"))
    before = {plan.with_ids("b").run_id for plan in plans}
    after = {plan.with_ids("b").run_id for plan in changed}
    assert len(before & after) == len(before) / 2


def test_a_longer_queue_in_time_needs_a_longer_drain(tmp_path, plans):
    (slow, *_) = edited(tmp_path, ("queue: 1.5 bdp", "queue: 100 packets"))
    extra = slow.timeline.capture_end_s - plans[0].timeline.capture_end_s
    assert extra == pytest.approx(94 * 1052 * 8 / 1e6, rel=0.01)
