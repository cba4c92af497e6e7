# SPDX-License-Identifier: Apache-2.0
"""Check nodes that are switches: their settings, their plans and their records of packets."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from nagi.backends.switch.evidence import LIMITS as SWITCH_LIMITS
from nagi.backends.switch.measurements import count_unaccounted, measure_passage_rate_error
from nagi.backends.switch.passages import find_passages
from nagi.backends.switch.shaping import EDGE
from nagi.campaign.build import identify_build
from nagi.campaign.selection import select_runs
from nagi.labs.shape import Shape
from nagi.plan.planner import plan_runs
from nagi.records.run import RunRecords
from nagi.spec.points import read_experiment
from nagi.terminal.option_values import choose_switch
from nagi.verdict.certificate import certify
from nagi.verdict.limits import LIMITS
from nagi.verdict.measure import measure_run
from nagi_contracts.errors import InputError
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import LinkDirection
from nagi_contracts.records import Manifest
from nagi_contracts.switches import Switches
from specs import GOOD
from switch_evidence import COUNT, FORWARD, make_account, make_bursts, make_record, serve

SHAPED = "shaped_by: switch\n      loss: {model: bernoulli"
SWITCHED = GOOD.replace("N: router", "N: switch").replace("loss: {model: poisson", SHAPED)
BACKWARD = LinkDirection(link="radio", direction="backward")


def points_of(tmp_path, text):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, None)


def plan_of(tmp_path, text=SWITCHED, point=2, **options):
    return plan_runs(points_of(tmp_path, text)[point], None, **options)[0]


def test_the_plan_says_which_part_is_whose(tmp_path):
    plan = plan_of(tmp_path)
    link = plan.link("radio")
    assert (link.forward.rate_bps, link.forward.queue, link.forward.loss.model) == (
        None,
        None,
        "none",
    )
    assert link.forward.delay_ns == 5_000_000
    assert link.backward.rate_bps == 20_000_000
    port = plan.port(FORWARD)
    assert (port.number, port.imposes.rate_bps, port.imposes.queue.packets) == (2, 20_000_000, 20)
    assert port.imposes.delay_ns == 0
    # A hundred samples a second of 20 Mb/s in packets of 1,052 bytes.
    assert port.sample_every == 24
    assert plan.port(BACKWARD) is None
    assert plan.switch_settings(LinkDirection(link="wired", direction="backward")) is None
    assert plan.flows[0].bottleneck_bps == 20_000_000
    switch = plan.node("N").switch
    assert switch.sha256 == hashlib.sha256(EDGE.read_bytes()).hexdigest()
    assert plan.node("N").sysctls == {"net.ipv4.ip_forward": "0"}
    assert {route.link for route in plan.node("N").routes} == {"wired", "radio"}
    assert Shape.from_plan(plan).switches == ("N",)


def test_whoever_imposes_it_a_direction_is_the_same(tmp_path):
    by_switch = plan_of(tmp_path)
    by_emulator = plan_of(tmp_path, SWITCHED.replace("      shaped_by: switch\n", ""))
    for direction in (FORWARD, BACKWARD):
        assert by_switch.channel(direction) == by_emulator.channel(direction)
    assert by_emulator.link("radio").forward.rate_bps == 20_000_000
    assert by_emulator.port(FORWARD).imposes is None


def test_plans_without_switches_are_as_they_were(tmp_path):
    plan = plan_of(tmp_path, GOOD)
    written = plan.model_dump(mode="json")
    assert "switch_target" not in written
    assert all("switch" not in node for node in written["nodes"])
    # What a plan of before there were switches had as its ids and its seed.
    recorded = plan_runs(read_experiment(SCHEMAS / "example" / "experiment.yaml", None)[0], None)
    assert plan.timeline.capture_s == recorded[0].timeline.capture_s == 0.25


def test_what_switches_impose_decides_seeds_and_ids_what_they_run_only_runs(tmp_path):
    plain = plan_of(tmp_path).with_ids("build")
    lossier = plan_of(tmp_path, point=6).with_ids("build")
    assert lossier.link("radio") == plain.link("radio")
    assert lossier.seed != plain.seed
    bmv2 = plan_of(tmp_path, switch="bmv2").with_ids("build")
    assert (bmv2.switch_target, plain.switch_target) == ("bmv2", "nagi")
    assert bmv2.seed == plain.seed and bmv2.point_id == plain.point_id
    assert bmv2.run_id != plain.run_id


def test_a_weight_becomes_the_power_of_two_that_is_near(tmp_path):
    marked = SWITCHED.replace(
        "      shaped_by: switch\n",
        "      shaped_by: switch\n      mark: {threshold: 5 packets}\n",
    )
    mark = plan_of(tmp_path, marked).port(FORWARD).imposes.mark
    assert (mark.threshold_packets, mark.weight) == (5, 2**-9)


REFUSED = [
    ("N: switch", "N: router",
     "links.radio.forward.shaped_by", "the sending node of direction forward is N, which is a"),
    ("    rate: $capacity\n", "    rate: $capacity\n    shaped_by: switch\n",
     "links.radio.shaped_by", "node of direction backward is D, which is a host and not"),
    ("model: bernoulli", "model: poisson",
     "links.radio.forward.loss", "a switch does not support the loss model poisson; one of: none"),
    ("rate: $loss}", "rate: $loss, at: ingress}",
     "links.radio.forward.loss", "when they leave its queue, not before the queue; remove"),
    ("    rate: $capacity\n", "    rate_trace: {steps: {0 s: $capacity}, period: 1 s}\n",
     "links.radio.rate_trace", "a switch supports only a constant rate; give `rate`, or let"),
    ("      shaped_by: switch\n",
     "      shaped_by: switch\n      mark: {threshold: 5 kB}\n",
     "links.radio.forward.mark", "a switch needs a threshold in packets; give the threshold in"),
    ("      shaped_by: switch\n",
     "      shaped_by: switch\n      mark: {threshold: 5 packets, weight: 0.3}\n",
     "links.radio.forward.mark", "not 0.3; give a power of two, such as 0.25"),
    ("shaped_by: switch", "shaped_by: nobody",
     "links.radio.forward.shaped_by", "unknown value 'nobody'; one of: switch, emulator"),
    ("N: switch", "N: swich", "nodes.N", "unknown value 'swich'; did you mean `switch`? one of"),
    ("to: D", "to: N", "flows.bulk.to", "N is a switch; hosts: S, D"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "key", "said"), REFUSED, ids=[each[3] for each in REFUSED])
def test_what_a_switch_cannot_do_is_refused(tmp_path, old, new, key, said):
    assert old in SWITCHED
    with pytest.raises(InputError) as refused:
        plan_of(tmp_path, SWITCHED.replace(old, new, 1))
    problem = refused.value.problems[0]
    assert problem.file.endswith("spec.yaml") and problem.line > 1
    assert problem.key == key
    assert said in str(problem)


def test_bmv2_is_refused_what_only_nagi_switch_can(tmp_path):
    text = SWITCHED.replace("queue: 20 packets", "queue: 20 kB")
    assert plan_of(tmp_path, text).port(FORWARD).imposes.queue.bytes == 20_000
    with pytest.raises(InputError, match=r"bmv2's queues are limited in packets.*--switch nagi"):
        plan_of(tmp_path, text, switch="bmv2")


def test_what_is_to_run_is_checked_before_anything_does(tmp_path, monkeypatch):
    points = points_of(tmp_path, SWITCHED)
    assert choose_switch("nagi", points) == "nagi"
    assert choose_switch("bmv2", points_of(tmp_path, GOOD)) is None
    with pytest.raises(InputError, match="there is no such switch; one of: nagi, bmv2"):
        choose_switch("tofino", points)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"--switch bmv2: there is no simple_switch; install"):
        identify_build(backends=["switch"], switch="bmv2")
    assert identify_build("physical", ["switch"], "bmv2").simple_switch is None  # it is the hosts'


def test_added_repeats_run_the_same_switch(tmp_path):
    points = points_of(tmp_path, SWITCHED)
    build = identify_build()
    chosen = select_runs(points, None, {}, build, switch="bmv2")
    assert chosen.switch == "bmv2"
    assert {plan.switch_target for plan in chosen.plans} == {"bmv2"}


def passage_of(plan, handed, seen, identity=None):
    identity = np.arange(1, len(handed) + 1) if identity is None else identity
    found = {
        each.direction.link: each
        for each in find_passages(plan, make_record(plan, handed, seen, identity))
    }
    assert set(found) == {"wired", "radio"}
    return found["radio"]


def test_the_emulator_sees_when_packets_should_have_left_a_switch(tmp_path):
    plan, handed = plan_of(tmp_path), make_bursts()
    seen = serve(handed, 500_000)
    passage = passage_of(plan, handed, seen)
    assert np.array_equal(passage.due_ns, seen)
    identity, took = passage.time_in_switch_ns
    assert len(identity) == COUNT
    assert took.max() == 2000 * 500_000
    assert measure_passage_rate_error(passage, 20_000_000) == pytest.approx(0, abs=1e-9)


def test_bmv2_is_held_against_packets_per_second(tmp_path):
    plan, handed = plan_of(tmp_path, switch="bmv2"), make_bursts()
    each_ns = 1e9 / 2376  # 20 Mb/s of 1,052 bytes
    left = handed + np.rint(np.arange(COUNT) % 2000 * each_ns).astype(np.int64)
    passage = passage_of(plan, handed, left)
    assert np.abs(passage.due_ns - left).max() <= 1


def test_a_switch_that_is_late_or_slow_is_found_out(tmp_path):
    plan, handed = plan_of(tmp_path), make_bursts()
    late = passage_of(plan, handed, serve(handed, 500_000) + 300_000)
    assert np.array_equal(late.seen_ns - late.due_ns, np.full(COUNT, 300_000))
    slow = passage_of(plan, handed, serve(handed, 505_000))
    assert measure_passage_rate_error(slow, 20_000_000) == pytest.approx(5 / 505, rel=1e-6)


def test_what_the_switch_dropped_takes_no_time(tmp_path):
    plan = plan_of(tmp_path)
    handed = make_bursts()
    through = np.arange(COUNT) % 10 != 3
    seen = serve(handed[through], 500_000)
    passage = passage_of(plan, handed[through], seen, np.flatnonzero(through) + 1)
    assert np.array_equal(passage.due_ns, seen)


def test_identities_that_occur_twice_are_not_believed(tmp_path):
    plan, handed = plan_of(tmp_path), make_bursts()
    identity = np.arange(1, COUNT + 1)
    identity[100] = identity[200]
    passage = passage_of(plan, handed, serve(handed, 500_000), identity)
    assert (passage.entered_ns == 0).sum() == 2
    assert len(passage.time_in_switch_ns[0]) == COUNT - 2
    assert np.array_equal(passage.due_ns, passage.seen_ns)


def verdict_on(plan, switch):
    run = next((SCHEMAS / "example" / "campaign" / "runs").iterdir())
    nodes = Manifest.read(run / "manifest.json").nodes
    switches = Switches.model_validate({"switches": [switch]})
    links = Links.read(run / "links.json")
    records = RunRecords(plan, run, 0.0, nodes, links, None, parts={"switch": switches})
    return certify(records, measure_run(records))


def changed(port, **values):
    switch = make_account()
    switch["ports"][port] |= values
    return switch


LATE = {"count": 10, "median": 150_000, "p99": 1_500_000, "max": 30_000_000, "histogram": []}
SPOILT = [
    (make_account(drops={"no route": 3}), ["switch_drops"], "N: 3 no route"),
    (make_account(records_lost=1), ["records_lost"], "switch N"),
    (
        changed(1, added_delay_ns=LATE),
        ["transit_error_median", "transit_error_p99", "transit_error_max"],
        "switch N, radio forward",
    ),
    (
        changed(1, arrival_lateness_ns=LATE),
        ["arrival_lateness_p99", "arrival_lateness_max"],
        "switch N, radio forward",
    ),
    (changed(0, changes=1), ["changes"], "switch N, wired backward"),
    (
        changed(0, interface=make_account()["ports"][0]["interface"] | {"socket_drops": 2}),
        ["emulator_drops"],
        "switch N, wired backward",
    ),
]


@pytest.mark.parametrize(("switch", "names", "subject"), SPOILT, ids=[str(s[1]) for s in SPOILT])
def test_a_switch_that_did_not_do_what_was_asked_makes_a_run_invalid(
    tmp_path, switch, names, subject
):
    plan = plan_of(tmp_path)
    good = verdict_on(plan, make_account())
    assert good.status == "valid"
    assert [check.name for check in good.checks] == [*LIMITS, *SWITCH_LIMITS]
    verdict = verdict_on(plan, switch)
    missed = [check for check in verdict.checks if not check.ok]
    assert verdict.status == "invalid"
    assert [check.name for check in missed] == names
    assert {check.subject for check in missed} == {subject}


def test_a_switch_that_did_not_end_in_order_makes_a_run_invalid(tmp_path):
    verdict = verdict_on(plan_of(tmp_path), make_account(complete=False))
    assert verdict.reasons == ["switch N did not end normally"]


def test_packets_that_only_one_of_them_knows_are_found(tmp_path):
    plan, handed = plan_of(tmp_path), make_bursts()
    records = make_record(plan, handed, serve(handed, 500_000), np.arange(1, COUNT + 1))
    whole = Switches.model_validate({"switches": [make_account()]})
    assert {value for value, _ in count_unaccounted(plan, records, whole)} == {0}
    # One that the emulator handed over did not come, and one vanished inside.
    leaky = make_account()
    leaky["ports"][0]["counters"]["received"] -= 1
    leaky["ports"][1]["counters"]["sent"] -= 2
    leaking = Switches.model_validate({"switches": [leaky]})
    found = {subject: value for value, subject in count_unaccounted(plan, records, leaking)}
    assert found["switch N, wired forward"] == 1
    assert found["switch N, radio forward"] == 2
    assert found["switch N"] == 1
