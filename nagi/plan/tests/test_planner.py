# SPDX-License-Identifier: Apache-2.0
"""Test run plans: completeness, seeds that give schemes the same channel, and stable ids."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter

import jsonschema
import pytest
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi.spec.schema import make_experiment_schema
from nagi_contracts.applications.cbr import CbrPlan
from nagi_contracts.errors import InputError
from nagi_contracts.memo import Memo
from nagi_contracts.paths import SCHEMAS, scheme_object
from nagi_contracts.plan import RunPlan, digest
from nagi_contracts.records import compute_sha256
from ruamel.yaml import YAML
from specs import GOOD

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
    assert [(direction.link, direction.direction) for direction in down.path] == [
        ("core", "backward"),
        ("radio", "backward"),
    ]
    assert down.start_s - up.start_s == pytest.approx(0.5)
    assert plan.measure.end_s - plan.measure.start_s == pytest.approx(1.5)
    assert {capture.file for capture in plan.captures} == {"client.radio.pcap", "server.core.pcap"}


def test_the_least_timeout_is_that_of_the_kernel_unless_said(tmp_path):
    text = (SCHEMAS / "example" / "experiment.yaml").read_text()
    spec = tmp_path / "spec.yaml"
    setting = "net.ipv4.tcp_rto_min_us"
    for key, sysctl in (("", None), ("min_rto: 1 s\n", "1000000"), ("min_rto: 1 ms\n", "1000")):
        spec.write_text(text + key)
        (plan, *_) = plan_runs(read_experiment(spec, None)[0], None)
        assert plan.node("client").sysctls.get(setting) == sysctl
        assert setting not in plan.node("cell").sysctls
    for bad in ("0 s", "200 s"):
        spec.write_text(f"{text}min_rto: {bad}\n")
        with pytest.raises(InputError, match=r"min_rto: kernels do not .*; give 1 ms to 120 s"):
            read_experiment(spec, None)


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


def test_hosts_ask_for_ecn_where_a_link_marks_or_the_experiment_says_so(tmp_path, plans):
    queue = "overhead: 38 bytes"
    marking = (queue, f"{queue}\n    mark: {{threshold: 5 packets}}")
    seed = re.search(r"^seed: .*$", EXAMPLE.read_text(), re.MULTILINE)[0]
    experiment_key = {
        "0": [plans, edited(tmp_path, marking, (seed, f"{seed}\necn: false"))],
        "1": [edited(tmp_path, marking), edited(tmp_path, (seed, f"{seed}\necn: true"))],
    }
    for value, equal in experiment_key.items():
        for plan in (plan for repeats in equal for plan in repeats):
            for name in ("client", "server"):
                assert plan.node(name).sysctls["net.ipv4.tcp_ecn"] == value


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
    assert all(len(channels) == 1 for channels in seeds.values())
    assert len(set.union(*seeds.values())) == 4


def test_ids_stand_for_plan_and_build(plans):
    ids = [plan.with_ids("build").run_id for plan in plans]
    assert len(set(ids)) == len(ids)
    assert [plan.with_ids("build").run_id for plan in plans] == ids
    assert plans[0].with_ids("other").run_id != ids[0]
    points = {plan.with_ids("build").point_id for plan in plans}
    assert len(points) == len(plans) / 2  # two repeats a point
    assert plans[0].with_ids("other").point_id in points


def test_plans_made_together_are_those_made_alone(plans):
    memo = Memo()
    together = [
        plan.with_ids("build", memo)
        for point in read_experiment(EXAMPLE, None)
        for plan in plan_runs(point, None, memo=memo)
    ]
    assert together == [plan.with_ids("build") for plan in plans]
    assert len({id(plan.link("core")) for plan in together}) == 1
    for plan in together:
        written = json.loads(plan.model_dump_json(exclude={"run_id", "point_id"}))
        assert plan.run_id == digest({"plan": written, "build": "build"})
        for key in ("repeat", "seed"):
            del written[key]
        assert plan.point_id == digest(written)


def test_changing_one_value_changes_only_its_runs(plans, tmp_path):
    changed = edited(tmp_path, ("[1 Mb/s, 2 Mb/s]", "[1 Mb/s, 3 Mb/s]"))
    before = {plan.with_ids("b").run_id for plan in plans}
    after = {plan.with_ids("b").run_id for plan in changed}
    assert len(before & after) == len(before) / 2


def test_a_longer_queue_in_time_needs_a_longer_drain(tmp_path, plans):
    (slow, *_) = edited(tmp_path, ("queue: 1.5 bdp", "queue: 100 packets"))
    extra = slow.timeline.capture_end_s - plans[0].timeline.capture_end_s
    assert extra == pytest.approx(94 * 1052 * 8 / 1e6, rel=0.01)


# Every impairment, as the experiment file has it and as nagi-link takes it.
IMPAIRMENTS = [
    ("jitter: {distribution: uniform, half_width: 2 ms}",
     {"jitter": {"distribution": "uniform", "half_width_ns": 2_000_000}}),
    ("jitter: {distribution: normal, deviation: 1 ms}\n      keep_order: false",
     {"jitter": {"distribution": "normal", "deviation_ns": 1_000_000}, "keep_order": False}),
    ("jitter: {distribution: exponential, mean: 1 ms}\n      keep_order: true",
     {"jitter": {"distribution": "exponential", "mean_ns": 1_000_000}}),
    ("jitter: {distribution: normal, deviation: 0 ms}\n      keep_order: false", {}),
    ("mark: {threshold: 5 packets}",
     {"mark": {"threshold_packets": 5, "weight": 0.002, "packet_bytes": 1052}}),
    ("mark: {threshold: 30 kB, weight: 1}",
     {"mark": {"threshold_bytes": 30_000, "weight": 1.0, "packet_bytes": 1052}}),
    # 0.5 x 1 Mb/s x 30 ms = 1,875 bytes = 1.8 packets of 1,052 bytes.
    ("mark: {threshold: 0.5 bdp}",
     {"mark": {"threshold_packets": 2, "weight": 0.002, "packet_bytes": 1052}}),
    ("loss: {model: bernoulli_bit, rate: 1e-6}",
     {"loss": {"model": "bernoulli_bit", "bit_error_rate": 1e-6, "at": "egress"}}),
    ("loss: {model: gilbert_elliott, good_to_bad: 0.1 %, bad_to_good: 30 %}",
     {"loss": {"model": "gilbert_elliott", "good_to_bad": 0.001, "bad_to_good": 0.3,
               "loss_in_good": 0.0, "loss_in_bad": 1.0, "at": "egress"}}),
    ("loss: {model: markov, good: 1 s, bad: 10 ms, loss_in_good: 1e-5, loss_in_bad: 1 %}",
     {"loss": {"model": "markov", "good_sojourn_ns": 10**9, "bad_sojourn_ns": 10**7,
               "loss_in_good": 1e-5, "loss_in_bad": 0.01, "at": "egress"}}),
    ("loss: {model: trace, file: x.loss, at: ingress}",
     {"loss": {"model": "trace", "lost": [1, 2], "length": 5, "at": "ingress"}}),
    ("rate_trace: {file: lte, format: mahimahi}",
     {"rate_trace": {"opportunities_ns": [2_000_000, 2_000_000, 12_032_000_000],
                     "bytes": 1504, "period_ns": 12_032_000_000}}),
    ("rate_trace: {file: rates, format: steps}",
     {"rate_trace": {"steps": [[0, 2_000_000], [10**9, 0]], "period_ns": 4 * 10**9}}),
    ('rate_trace: {steps: {"0 s": 2 Mb/s, "1 s": 0 b/s}, period: 4 s}',
     {"rate_trace": {"steps": [[0, 2_000_000], [10**9, 0]], "period_ns": 4 * 10**9}}),
    ("delay_trace: {file: delays}",
     {"delay_trace": {"steps": [[0, 10_000_000], [5 * 10**8, 0]], "period_ns": 10**9}}),
    ('delay_trace: {steps: {"0 s": 1 ms}, period: 1 s}\n      keep_order: false',
     {"delay_trace": {"steps": [[0, 1_000_000]], "period_ns": 10**9}, "keep_order": False}),
]  # fmt: skip


@pytest.fixture
def trace_files(tmp_path):
    (tmp_path / "x.loss").write_text("01100\n")
    (tmp_path / "lte").write_text("2\n2\n12032\n")
    (tmp_path / "rates").write_text("0 s, 2 Mb/s\n1 s, 0 b/s\n4 s, end\n")
    (tmp_path / "delays").write_text("0 s, 10 ms\n500 ms, 0 ms\n1 s, end\n")


@pytest.mark.parametrize(("written", "taken"), IMPAIRMENTS)
def test_nagi_link_gets_what_the_experiment_says(tmp_path, trace_files, plans, written, taken):
    loss = "" if "loss:" in written else "\n      loss: {model: none}"
    (plan, *_) = edited(
        tmp_path,
        ("loss: {model: poisson, rate: 0.5 %}", written + loss),
        ("queue: 1.5 bdp", "queue: 6 packets"),
    )
    expected = without_nulls(plans[0].link("radio").forward)
    expected["loss"] = {"model": "none", "at": "egress"}
    if "rate_trace" in taken:
        del expected["rate_bps"]
    if "delay_trace" in taken:
        del expected["delay_ns"]
    assert without_nulls(plan.link("radio").forward) == {**expected, **taken}
    assert without_nulls(plan.link("radio").backward) == without_nulls(
        plans[0].link("radio").backward
    )


@pytest.mark.parametrize("written", [written for written, _ in IMPAIRMENTS])
def test_editors_take_what_nagi_takes(tmp_path, trace_files, written):
    loss = "" if "loss:" in written else "\n      loss: {model: none}"
    edited(tmp_path, ("loss: {model: poisson, rate: 0.5 %}", written + loss))
    schema = json.loads((SCHEMAS / "experiment.schema.json").read_text())
    data = YAML(typ="safe").load(tmp_path / "spec.yaml")
    jsonschema.validate(data, schema)
    (key,) = [key for key in data["links"]["radio"]["forward"] if key != "keep_order"][:1]
    data["links"]["radio"]["forward"][key]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def without_nulls(direction):
    return json.loads(direction.model_dump_json(exclude_none=True))


@pytest.mark.parametrize(
    ("trace", "mean"),
    [
        ("{file: lte, format: mahimahi}", 3 * 1504 * 8 / 12.032),
        ("{file: rates, format: steps}", 2_000_000 * 1 / 4),
    ],
)
def test_a_rate_trace_counts_with_its_mean(tmp_path, trace_files, trace, mean):
    (plan, *_) = edited(
        tmp_path,
        ("      loss: {model: poisson, rate: 0.5 %}", f"      rate_trace: {trace}"),
        ("queue: 1.5 bdp", "queue: 1000 packets\n    mark: {threshold: 10 bdp}"),
    )
    radio = plan.link("radio").forward
    assert radio.mean_rate_bps == mean
    assert [flow.bottleneck_bps for flow in plan.flows] == [mean, 1_000_000]
    assert radio.mark.threshold_packets == math.ceil(10 * mean * 0.030 / 8 / 1052)
    drain = plan.timeline.capture_end_s - plan.timeline.traffic_end_s
    assert drain > 1000 * 1052 * 8 / mean


def test_a_delay_trace_counts_with_its_smallest_delay(tmp_path, trace_files, plans):
    loss = "loss: {model: poisson, rate: 0.5 %}"
    (plan, *_) = edited(tmp_path, (loss, "delay_trace: {file: delays}"))
    assert {flow.base_rtt_s for flow in plan.flows} == {0.020}  # 0 and 5 ms there, 15 ms back
    (plan, *_) = edited(tmp_path, (loss, "jitter: {distribution: exponential, mean: 1 s}"))
    assert {flow.base_rtt_s for flow in plan.flows} == {0.030}


def test_a_direction_s_own_rate_replaces_the_link_s_trace_and_the_other_way_round(tmp_path):
    trace = 'rate_trace: {steps: {"0 s": 4 Mb/s}, period: 1 s}\n    '
    (plan, *_) = edited(
        tmp_path,
        ("rate: $rate\n    delay: 10 ms", trace + "delay: 10 ms"),
        ("    forward:\n", "    forward:\n      rate: $rate\n"),
    )
    radio = plan.link("radio")
    assert (radio.forward.rate_bps, radio.forward.rate_trace) == (1_000_000, None)
    assert (radio.backward.rate_bps, radio.backward.mean_rate_bps) == (None, 4_000_000)
    (plan, *_) = edited(
        tmp_path,
        (
            "    forward:\n",
            '    forward:\n      delay_trace: {steps: {"0 s": 1 ms}, period: 1 s}\n',
        ),
    )
    radio = plan.link("radio")
    assert (radio.forward.delay_ns, radio.forward.min_delay_ns) == (0, 1_000_000)
    assert (radio.backward.delay_ns, radio.backward.delay_trace) == (10_000_000, None)


def test_axes_go_through_traces_and_impairments(tmp_path, trace_files):
    (tmp_path / "slow").write_text("0 s, 1 kb/s\n1 s, end\n")
    plans = edited(
        tmp_path,
        ("rate: $rate", "rate_trace: {file: $rate, format: steps}"),
        ("loss: {model: poisson, rate: 0.5 %}", "jitter: {distribution: normal, deviation: 1 ms}"),
        ("    backward:\n", "      keep_order: $keep\n    backward:\n"),
        ("rate: [1 Mb/s, 2 Mb/s]", "rate: [rates, slow]\n  keep: [true, false]"),
    )
    means = {plan.point["rate"]: plan.link("radio").forward.mean_rate_bps for plan in plans}
    assert means == {"rates": 500_000, "slow": 1_000}
    for plan in plans:
        assert plan.link("radio").forward.keep_order == (plan.point["keep"] == "true")


def test_a_trace_is_the_plan_s_own(tmp_path, trace_files):
    change = (
        "rate: $rate\n    delay: 10 ms\n    queue: 1.5 bdp\n    forward:\n"
        "      loss: {model: poisson, rate: 0.5 %}",
        "rate_trace: {file: $rate, format: steps}",
    )
    axis = ("[1 Mb/s, 2 Mb/s]", "[rates]")
    before = edited(tmp_path, change, axis)
    (tmp_path / "rates").write_text("0 s, 2 Mb/s\n1 s, 1 Mb/s\n4 s, end\n")
    after = edited(tmp_path, change, axis)
    assert {plan.seed for plan in before}.isdisjoint(plan.seed for plan in after)
    assert {plan.flows[0].bottleneck_bps for plan in after} == {1_250_000}


def test_what_is_wrong_in_a_trace_is_named_by_its_own_line(tmp_path, trace_files):
    (tmp_path / "lte").write_text("2\n1\n")
    with pytest.raises(InputError) as caught:
        edited(
            tmp_path,
            ("rate: $rate", "rate_trace: {file: $rate, format: mahimahi}"),
            ("[1 Mb/s, 2 Mb/s]", "[lte]"),
        )
    assert str(caught.value).startswith(f"{tmp_path / 'lte'}:2: 1 ms is before 2 ms; sort the")


def test_what_version_0_1_did_not_know_is_not_in_plans_that_do_without(plans):
    assert list(json.loads(plans[0].link("core").forward.model_dump_json())) == [
        "rate_bps", "overhead_bytes", "delay_ns", "queue", "loss",
    ]  # fmt: skip
    assert "command" not in json.loads(plans[0].flows[0].model_dump_json())
    # Version 0.1 drew this seed: further repeats of its campaigns must have the same channel.
    assert plans[0].seed == 1960346764447962135


COMMAND = """{from: client, to: server, scheme: $scheme, traffic: command,
    server: [serve, "{receiver}:{port}"],
    client: [send, "{sender}", "{{flow: {flow}}}", "{duration_s}", 3, 0.5, $rate]}"""
BULK = "{from: client, to: server, scheme: $scheme, payload: 1000 bytes}"


def test_a_command_is_in_the_plan_with_its_fields_filled_in(tmp_path, plans):
    (plan, *_) = edited(tmp_path, (BULK, COMMAND), ("duration: 2 s", "duration: 2500 ms"))
    up, down = plan.flows
    assert up.traffic == "command" and down.command is None
    assert up.command.server == ["serve", "198.18.1.2:5001"]
    assert up.command.client == [
        "send", "198.18.0.1", "{flow: up}", "2.5", "3", "0.5", "1 Mb/s",
    ]  # fmt: skip
    ends = (up.command.listens, up.listening_end, down.listening_end)
    assert ends == ("receiver",) * 3
    # Programs that are not ours have longer to start; everything after is as much later.
    before, now = plans[0].timeline, plan.timeline
    assert (now.serve_s, now.traffic_s) == (before.serve_s, before.serve_s + 2)
    assert up.start_s == now.traffic_s
    assert now.end_s - before.end_s == pytest.approx(1.7 + 0.5)


def test_without_a_server_nothing_is_waited_for(tmp_path, plans):
    alone = COMMAND.replace('server: [serve, "{receiver}:{port}"],', "")
    (plan, *_) = edited(tmp_path, (BULK, alone))
    assert plan.flows[0].command.server is None
    assert plan.timeline == plans[0].timeline


def test_a_download_is_a_flow_from_the_end_that_listens(tmp_path):
    download = COMMAND.replace("from: client, to: server", "from: server, to: client, listen: from")
    (plan, *_) = edited(tmp_path, (BULK, download.replace("traffic:", "port: 6002, traffic:")))
    (flow, _) = plan.flows
    assert (flow.sender, flow.listening_end) == ("server", "sender")
    assert flow.path == plan.flows[1].path
    with pytest.raises(InputError, match="flow up already uses port 6001 of server; give the flo"):
        again = download.replace("traffic:", "port: 6001, traffic:")
        edited(
            tmp_path,
            (BULK, again),
            ("down: {from: server, to: client", "down: {from: client, to: server"),
        )


def test_the_routes_of_a_command_have_its_congestion_control(tmp_path, plans):
    command_plans = edited(tmp_path, (BULK, COMMAND), ("host_profile: linux", "host_profile: ns2"))
    for plan, control in zip(command_plans[::2], ("reno", "cubic"), strict=False):
        for node in ("client", "server"):
            (route,) = plan.node(node).routes
            # Either end may send, whatever the profile says of those who do.
            assert (route.congctl, route.initcwnd, route.quickack) == (control, 1, True)
        assert all(route.congctl is None for route in plan.node("cell").routes)
    routes = json.loads(plans[0].model_dump_json())["nodes"][0]["routes"]
    assert "congctl" not in routes[0]


def test_a_command_s_control_is_that_of_all_flows_over_its_routes(tmp_path):
    down = "down: {from: server, to: client, scheme: $scheme, "
    other = (down, down.replace("$scheme", "bbr"))
    complaint = (
        r"flows\.down\.scheme: the flow needs congestion control bbr from server to client, "
        r"but flow up needs "
        "cubic .* give the two flows the same scheme, or different hosts"
    )
    with pytest.raises(InputError, match=complaint):
        edited(tmp_path, (BULK, COMMAND), other, ("[newreno, cubic]", "[cubic, sack]"))
    # Bulk flows ask for theirs themselves.
    edited(tmp_path, other, ("[newreno, cubic]", "[cubic, sack]"))


def test_the_longest_delay_of_a_trace_is_waited_for(tmp_path, plans):
    trace = 'delay_trace: {steps: {"0 s": 10 ms, "1 s": 2 s}, period: 3 s}'
    (plan, *_) = edited(tmp_path, ("delay: 10 ms", trace), ("queue: 1.5 bdp", "queue: 6 packets"))
    assert plan.flows[0].base_rtt_s == plans[0].flows[0].base_rtt_s
    extra = plan.timeline.capture_end_s - plans[0].timeline.capture_end_s
    assert extra == pytest.approx(2 * 1.99)


# --- schemes that are programs


def with_schemes(tmp_path, name: str, parameters: str = ""):
    text = GOOD.replace("scheme: $scheme}", f"scheme: {name}}}").replace(
        "  scheme: [newreno, cubic]\n", ""
    )
    text = text.replace("report: {x", f"{parameters}\nreport: {{series: loss, x")
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return [plan for point in read_experiment(path, None) for plan in plan_runs(point, None)]


def test_a_plan_has_a_program_s_parameters_those_not_given_too(tmp_path):
    plans = with_schemes(tmp_path, "westwoodvt", "parameters: {westwoodvt: {alpha: 3}, vegas: {}}")
    (flow,) = plans[0].flows
    assert flow.congestion_control == "nagi_westwoodvt"
    planned = flow.scheme_object
    assert planned is not None and planned.events
    assert (planned.parameters["alpha"], planned.parameters["beta"]) == (
        3,
        16,
    )
    assert planned.sha256 == compute_sha256(scheme_object("westwoodvt"))
    assert planned.source == scheme_object("westwoodvt")
    again = RunPlan.model_validate_json(plans[0].model_dump_json())
    assert again.flows[0].scheme_object.model_dump() == flow.scheme_object.model_dump()
    others = with_schemes(tmp_path, "westwoodvt")
    assert others[0].with_ids("x").run_id != plans[0].with_ids("x").run_id
    assert others[0].seed == plans[0].seed  # it meets the same channel


def test_parameters_may_be_axes(tmp_path):
    text = GOOD.replace("scheme: $scheme", "scheme: vegas").replace(
        "  scheme: [newreno, cubic]", "  alpha: [1, 2]"
    )
    text = text.replace(
        "report: {", "parameters: {vegas: {alpha: $alpha}}\nreport: {series: alpha, "
    )
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    plans = [plan for point in read_experiment(path, None) for plan in plan_runs(point, None)]
    assert {plan.flows[0].scheme_object.parameters["alpha"] for plan in plans} == {1, 2}
    jsonschema.validate(YAML(typ="safe").load(text), make_experiment_schema())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("{westwoodvt: {alpha: 100001}}", "100001 is out of range; give 0 to 100000 segments"),
        ("{westwoodvt: {delta: 1}}", "scheme westwoodvt has no parameter 'delta'; it has: al"),
        ("{westwoodvt: {alpha: much}}", r"spec\.yaml:\d+: parameters\.westwoodvt\.alpha"),
        ("{newreno: {alpha: 1}}", "newreno is a part of the kernel and has no parameters"),
        ("{westwoodtv: {alpha: 1}}", "unknown scheme 'westwoodtv'"),
    ],
)  # fmt: skip
def test_parameters_that_cannot_be_are_refused_by_line_and_key(tmp_path, parameters, message):
    with pytest.raises(InputError, match=message) as refusal:
        with_schemes(tmp_path, "cubic", f"parameters: {parameters}")
    assert re.search(r"spec\.yaml:\d+: parameters", str(refusal.value))


def test_a_receiver_s_part_is_the_control_of_its_route(tmp_path):
    extra = "parameters: {ackthin: {timer: 50}, vegas: {alpha: 1}}"
    plan = with_schemes(tmp_path, "vegas-ackthin", extra)[0]
    (flow,) = plan.flows
    assert (flow.congestion_control, flow.receiver_control) == ("nagi_vegas", "nagi_ackthin")
    assert flow.scheme_object.parameters["alpha"] == 1
    assert flow.receiver_object.parameters == {"second": 2, "third": 5, "fourth": 9, "timer": 50}
    (back,) = plan.node("D").routes
    (there,) = plan.node("S").routes
    assert (back.congctl, back.quickack) == ("nagi_ackthin", True)
    assert (there.congctl, there.quickack) == (None, False)
    (flow,) = with_schemes(tmp_path, "real")[0].flows
    assert flow.congestion_control == flow.receiver_control == "nagi_real"
    (flow,) = with_schemes(tmp_path, "newreno")[0].flows
    assert "receiver_control" not in json.loads(flow.model_dump_json())


@pytest.mark.parametrize(
    ("scheme", "extra", "message"),
    [
        ("real-ackthin", "", "real has another scheme for its receiver, so it cannot be"),
        ("paced-udp-ackthin", "", "paced-udp has no ACKs, so it cannot be combined with ackthin"),
        ("paced-udp", "parameters: {paced-udp: {rate: 1}}", "paced-udp does not use TCP"),
        ("paced-udp", "warmup: 100 ms", "its rate in the warm-up, .* set `warmup: .*` or more"),
        ("vegas-thinack", "", "unknown scheme 'vegas-thinack'"),
        ("vegas-ackthin", "parameters: {vegas-ackthin: {alpha: 1}}", "combines two schemes.* give"
         " parameters of vegas, or of ackthin"),
        ("vegas-ackthin", "parameters: {ackthin: {timer: 0}}", "0 is out of range; give 1 to 10000 "
         "ms"),
        ("newjersey", "", r"newjersey reacts to marks \(ECN\), and no link marks on its path"),
    ],
)  # fmt: skip
def test_schemes_that_cannot_run_are_refused(tmp_path, scheme, extra, message):
    with pytest.raises(InputError, match=message):
        with_schemes(tmp_path, scheme, extra)


def test_thinned_acks_are_of_all_flows_over_a_route_or_of_none(tmp_path):
    """Check that no flow shares a route with another flow whose receiver thins ACKs."""
    up = "up: {from: client, to: server, scheme: $scheme, "
    down = "down: {from: server, to: client, scheme: $scheme, "
    thinned = (up, up.replace("$scheme", "newreno-ackthin"))
    alone = ("[newreno, cubic]", "[newreno]")
    with pytest.raises(InputError, match=r"congestion control .* or a scheme for its receiver"):
        edited(tmp_path, thinned, alone)
    beside = (down, down.replace("server, to: client", "client, to: server"))
    with pytest.raises(InputError, match=r"congestion control \(none\) from server"):
        edited(tmp_path, thinned, alone, beside)
    with pytest.raises(InputError, match="ackthin needs data in one direction"):
        edited(tmp_path, (BULK, COMMAND.replace("$scheme", "newreno-ackthin")), alone)


def test_some_points_are_run_more_often_than_others(tmp_path):
    text = GOOD.replace("seed: 1", "seed: 1\nrepeats: 3\nrepeats_at:").replace(
        "repeats_at:", 'repeats_at: [{where: {loss: 0, capacity: "< 20 Mb/s"}, repeats: 1}]'
    )
    (tmp_path / "spec.yaml").write_text(text)
    points = read_experiment(tmp_path / "spec.yaml", None)
    runs = Counter(
        (plan.point["loss"], plan.point["capacity"])
        for point in points
        for plan in plan_runs(point, None)
    )
    # Each has two schemes.
    assert runs == {
        ("0 %", "10 Mb/s"): 2,
        ("0 %", "20 Mb/s"): 6,
        ("1 %", "10 Mb/s"): 6,
        ("1 %", "20 Mb/s"): 6,
    }


def test_newreno_optwin_holds_the_window_that_fills_the_path(tmp_path):
    for plan in with_schemes(tmp_path, "newreno-optwin"):
        (flow,) = plan.flows
        bits = flow.packet_bytes * 8
        rates = [plan.link(hop.link).forward.rate_bps for hop in flow.path]
        seconds = flow.base_rtt_s + sum(bits / rate for rate in rates)
        assert flow.max_window == math.ceil(min(rates) * seconds / bits)
        assert (flow.congestion_control, flow.scheme_object) == ("reno", None)
    for extra, window in (
        ("parameters: {newreno-optwin: {window: 2}}", 2),
        ("parameters: {newreno-optwin: {window: 9}}\nmax_window: 5 packets", 5),
    ):
        (flow,) = with_schemes(tmp_path, "newreno-optwin", extra)[0].flows
        assert flow.max_window == window


def test_paced_udp_is_datagrams_at_the_rate_that_the_warm_up_shows(tmp_path):
    (flow,) = with_schemes(tmp_path, "paced-udp", "warmup: 6 s")[0].flows
    assert flow.traffic == "cbr" and isinstance(flow.application, CbrPlan)
    assert flow.application.rate_bps == flow.bottleneck_bps
    assert flow.application.search_ns == 6 * 10**9
    assert flow.packet_bytes == flow.payload_bytes + 28
    with pytest.raises(InputError, match="does not use TCP, which `traffic: command` needs"):
        edited(
            tmp_path,
            (BULK, COMMAND.replace("$scheme", "paced-udp")),
            ("[newreno, cubic]", "[newreno]"),
        )


def test_a_user_s_own_object_is_a_scheme(tmp_path):
    shutil.copy(scheme_object("vegas"), tmp_path / "mine.bpf.o")
    (flow,) = with_schemes(tmp_path, "mine.bpf.o", "parameters: {mine.bpf.o: {alpha: 3}}")[0].flows
    assert flow.congestion_control == "nagi_mine"
    assert flow.scheme_object is not None and flow.scheme_object.source == tmp_path / "mine.bpf.o"
    assert flow.scheme_object.parameters["alpha"] == 3
    with pytest.raises(InputError, match=r"there is no file .*other\.o"):
        with_schemes(tmp_path, "other.o")
    (tmp_path / "none.o").write_text("no object")
    with pytest.raises(InputError, match=r"none\.o: not an eBPF object file"):
        with_schemes(tmp_path, "none.o")


def test_two_schemes_of_a_run_cannot_have_the_same_name(tmp_path):
    (tmp_path / "a").mkdir()
    shutil.copy(scheme_object("vegas"), tmp_path / "a" / "reno.bpf.o")
    second = "scheme: reno}\n  other: {from: D, to: S, scheme: a/reno.bpf.o}"
    text = GOOD.replace("scheme: $scheme}", second).replace("  scheme: [newreno, cubic]\n", "")
    text = text.replace("report: {x", "report: {series: loss, x")
    (tmp_path / "spec.yaml").write_text(text)
    (point, *_) = read_experiment(tmp_path / "spec.yaml", None)
    with pytest.raises(InputError, match="two schemes of this run are called nagi_reno"):
        plan_runs(point, None)
