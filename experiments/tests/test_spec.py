# SPDX-License-Identifier: Apache-2.0
"""Experiment files: what is accepted, and how what is refused is explained."""

from __future__ import annotations

import re

import pytest
from nagi.errors import InputError
from nagi.paths import ROOT
from nagi.planner import plan_runs
from nagi.spec import read_experiment
from specs import GOOD

ACHIEVEMENT = ROOT / "experiments" / "achievement-2008.yaml"


def read(tmp_path, text, form=None):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, form)


def test_every_point_of_the_matrix_in_the_order_of_the_file(tmp_path):
    points = read(tmp_path, GOOD)
    assert [tuple(point.values.values()) for point in points][:3] == [
        ("0 %", "10 Mb/s", "newreno"),
        ("0 %", "10 Mb/s", "cubic"),
        ("0 %", "20 Mb/s", "newreno"),
    ]
    assert len(points) == 8


def test_a_form_replaces_what_it_names_and_keeps_the_rest(tmp_path):
    points = read(tmp_path, GOOD, "quick")
    assert len(points) == 4
    assert {point.values["capacity"] for point in points} == {"5 Mb/s"}
    assert all(point.experiment.duration.seconds == 2 for point in points)
    assert points[0].experiment.links["wired"].rate.value == 100_000_000


def test_a_direction_inherits_from_its_link(tmp_path):
    (point, *_) = read(tmp_path, GOOD)
    radio = point.experiment.links["radio"]
    assert radio.direction("forward").rate == radio.direction("backward").rate
    assert radio.direction("forward").loss.model == "poisson"
    assert radio.direction("backward").loss is None


def test_the_paper_s_grid():
    points = read_experiment(ACHIEVEMENT, None)
    assert len(points) == 3 * 15 * 6
    plans = [plan for point in points for plan in plan_runs(point, None)]
    assert {plan.flows[0].scheme for plan in plans} == {
        "tahoe", "reno", "newreno", "vegas", "sack", "westwood",
    }  # fmt: skip
    first = plans[0]
    assert first.flows[0].base_rtt_s == 0.1
    assert first.link("wired").forward.queue.packets == 1189
    assert first.measure.end_s - first.measure.start_s == 200


def test_the_quick_form_takes_minutes():
    points = read_experiment(ACHIEVEMENT, "quick")
    plans = [plan for point in points for plan in plan_runs(point, "quick")]
    assert len(plans) == 36
    assert sum(plan.timeline.end_s for plan in plans) / 2 < 250


POISSON, LOSS = "{model: poisson, rate: $loss}", "links.radio.forward.loss"
RATE, TRACE = "rate: $capacity", "links.radio.rate_trace"

# (what is replaced, by what, place, complaint and cure)
BAD = [
    ("seed: 1", "seed: 1\nsede: 2", 5, "sede", "unknown key; known here: duration, ecn, flows"),
    ("queue: 20 packets", "quue: 20 packets", 12, "links.radio.quue", "unknown key; known here: a"),
    ("delay: 45 ms", "delay: 45", 7, "links.wired.delay", "45 has no unit; write it like '45 ms'"),
    ("45 ms", "45 Mb/s", 7, "links.wired.delay", "'Mb/s' is no unit of a duration; one of: ns, us"),
    ("100 Mb/s", "100 MB/s", 7, "links.wired.rate", "'MB/s' is no unit of a rate; one of: b/s"),
    ("[newreno, cubic]", "[newreno, cubik]", 21, "matrix.scheme.1", "unknown scheme 'cubik'; one"),
    ("[10 Mb/s, 20", "[0 Mb/s, 20", 20, "matrix.capacity.0", "a rate of 0 Mb/s is too small; w"),
    ("[0 %, 1 %]", "[0 %, 101 %]", 19, "matrix.loss.1", "a share of 101 % is not between 0 and 1"),
    ("[0 %, 1 %]", "[0 %, 1.01]", 19, "matrix.loss.1", "a share of 1.01 is not between 0 and 1;"),
    ("[0 %, 1 %]", "[0 %, 1]", 14, "links.radio.forward.loss", "no Poisson process loses every p"),
    ("rate: $loss", "rate: $los", 14, "links.radio.forward.loss.rate", "there is no axis $los in"),
    ("poisson", "poison", 14, "links.radio.forward.loss", "unknown loss model 'poison'; one of: "),
    ("D: host}", "D: host, X: host}", 16, "flows.bulk.to", "there is no path from S to X; join"),
    ("to: D", "to: Q", 16, "flows.bulk.to", "there is no node Q; hosts: S, D"),
    ("to: D", "to: N", 16, "flows.bulk.to", "N is a router; hosts: S, D"),
    ("to: D", "to: S", 16, "flows.bulk.to", "a flow to its own sender; name another host"),
    ("[N, D]", "[N, Z]", 9, "links.radio.between.1", "there is no node Z; nodes: S, N, D"),
    ("[S, N]", "[S, S]", 7, "links.wired.between", "joins S to itself; name two nodes"),
    ("seed: 1", "seed: 1\nseed: 2", 5, "", "not YAML: found duplicate key"),
    ("title: A test", "title: [A", 4, "", "not YAML: "),
    ("$scheme}", "$scheme, port: 80}", 16, "flows.bulk.port", "80 is not possible here; input sh"),
    ("$scheme}", "$scheme, payload: 9 kB}", 16, "flows.bulk", "a payload of 9000 bytes does not f"),
    ("$scheme}", "$scheme, start: 11 s}", 16, "flows.bulk.start", "starts at 11 s, when the traf"),
    ("rate: $capacity\n", "max: 1\n", 10, "links.radio.max", "unknown key"),
    ("rate: 100 Mb/s, ", "", 7, "links.wired.queue", "a queue on a link without a rate; gi"),
    ("x: capacity", "x: height", 22, "report.x", "there is no axis height in the matrix; one of"),
    ("duration: 10 s", "duration: 1 ms", 1, "", "a duration of 1 ms is too short; give 1 s or m"),
    ("duration: 10 s", "duration: 5 s\nwarmup: 5 s", 1, "", "a warm-up of 5 s leaves nothing"),
    ("title: A test\n", "", 1, "", "missing key 'title'; add `title: ...`"),
    ("schema_version: 1", "schema_version: 2", 1, "schema_version", "2 is not possible here"),
    ("cubic]", "newreno]", 21, "matrix.scheme.1", "newreno is named twice; remove one"),
    ("$capacity", "10 Mb/s", 20, "matrix.capacity", "this axis is used nowhere; write $capacity"),
    ("seed: 1", "seed: 1\nhost_profile: bsd", 5, "host_profile", "unknown host profile 'bsd'; on"),
    ("{from: S", "{fro: S", 16, "flows.bulk", "missing key 'from'; add `from: ...`"),
    ("  wired:", "  wire/d:", 7, "links.wire/d", "'wire/d' is not possible here; string should"),
    # Loss models
    ("poisson", "gilbert",
     14, "links.radio.forward.loss", "unknown loss model 'gilbert'; one of: none, bernoulli, pois"),
    ("model: poisson, ", "", 14, "links.radio.forward.loss", "no loss model; write {model: ...}"),
    (POISSON, "{model: bernoulli_bit, rate: 1}", 14, LOSS, "a bit error rate of 1 loses ev"),
    (POISSON, "{model: bernoulli_bit}", 14, LOSS, "missing key 'rate'; add `rate: ...`"),
    (POISSON, "{model: markov, good: 0 s, bad: 1 s}",
     14, f"{LOSS}.good", "a duration of 0 s is too s"),
    (POISSON, "{model: markov, good: 1 s}", 14, LOSS, "missing key 'bad'; add `bad: ...`"),
    (POISSON, "{model: markov, goood: 1 s, bad: 1 s}",
     14, f"{LOSS}.goood", "unknown key; known here: at, bad, good, loss_in_bad, loss_in_good, mod"),
    (POISSON, "{model: gilbert_elliott, good_to_bad: 2, bad_to_good: 1}",
     14, f"{LOSS}.good_to_bad", "a share of 2 is not between 0 and 1; write it like"),
    ("delay: 45 ms", "loss: {model: trace, file: gone.loss}",
     7, "links.wired.loss.file", "there is no file "),
    (POISSON, "{model: trace, file: $loss}", 19, "matrix.loss.0", "there is no file "),
    # Rates and delays that change
    ("$capacity\n", "$capacity\n    rate_trace: {file: x, format: steps}\n",
     11, "links.radio.rate_trace", "rate and rate_trace at once; remove one"),
    ("delay: 5 ms\n", "delay: 5 ms\n    delay_trace: {file: x}\n",
     12, "links.radio.delay_trace", "delay and delay_trace at once; remove one"),
    ("rate: 100 Mb/s", "rate_trace: {file: gone.txt, format: steps}",
     7, "links.wired.rate_trace.file", "there is no file "),
    (RATE, "rate_trace: {file: gone.txt, format: pcap}",
     10, f"{TRACE}.format", "'pcap' is not possible here; input should be 'mahimahi' or 'steps'"),
    (RATE, "rate_trace: {file: gone.txt}", 10, TRACE, "missing key 'format'; add `format: ...`"),
    (RATE, "rate_trace: lte.txt",
     10, TRACE, "not a mapping; known here: file, format, period, steps"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}}',
     10, TRACE, "missing key 'period'; add `period: "),
    (RATE, "rate_trace: {steps: {}, period: 1 s}",
     10, f"{TRACE}.steps", "is not possible; dictionary should"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}, period: 0 s}',
     10, f"{TRACE}.period", "a duration of 0 s is too small"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 ms}, period: 1 s}',
     10, f"{TRACE}.steps.0 s", "'ms' is no unit of a rate; one of: "),
    (RATE, 'rate_trace: {steps: {"0": 1 Mb/s}, period: 1 s}',
     10, f"{TRACE}.steps.0", "0 has no unit; write it like '45 ms'"),
    (RATE, 'rate_trace: {steps: {"1 s": 1 Mb/s}, period: 2 s}',
     10, f"{TRACE}.steps", "starts at 1 s; give the value at 0 s first"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s, "0 ms": 2 Mb/s}, period: 2 s}',
     10, f"{TRACE}.steps", "0 ns is not after 0 ns; give every instant once, in order"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s, "2 s": 2 Mb/s}, period: 2 s}',
     10, TRACE, "repeats after 2 s, before the step at 2 s; give more"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}, period: 2 h}',
     10, TRACE, "repeats after 7200 s; give at most 3600 s"),
    (RATE, 'rate_trace: {steps: {"0 s": 0 b/s}, period: 2 s}',
     10, TRACE, "the rate is always 0; give one"),
    (RATE, 'rate_trace: {steps: {"0 s": $capacity}, period: 2 s}',
     14, LOSS, "Poisson loss on a link whose rate changes; give the link a constant rate, or"),
    # Jitter, order and marks
    ("delay: 5 ms", "jitter: {distribution: gamma}",
     11, "links.radio.jitter", "unknown jitter distribution 'gamma'; one of: uniform, normal, exp"),
    ("delay: 5 ms", "jitter: {mean: 1 ms}",
     11, "links.radio.jitter", "no jitter distribution; write {distr"),
    ("delay: 5 ms", "jitter: 1 ms",
     11, "links.radio.jitter", "not a mapping; known here: deviation, distribution, h"),
    ("delay: 5 ms", "jitter: {distribution: normal, mean: 1 ms}",
     11, "links.radio.jitter.mean", "unknown key; known here: deviation, distribution"),
    ("delay: 5 ms", "keep_order: false",
     11, "links.radio.keep_order", "nothing could reorder packets forward; give that direction ji"),
    ("delay: 5 ms", "backward: {keep_order: true}",
     11, "links.radio.backward.keep_order", "nothing could reorder packets backward; give"),
    ("delay: 5 ms", "keep_order: maybe",
     11, "links.radio.keep_order", "'maybe' is not possible here; inp"),
    ("delay: 45 ms", "mark: {threshold: 5}",
     7, "links.wired.mark.threshold", "not a queue size: 5; write"),
    ("delay: 45 ms", "mark: {threshold: 5 kB, weight: 0}",
     7, "links.wired.mark", "a weight of 0 never sees the queue; give more, like 0.002"),
    ("rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp", "mark: {threshold: 5 kB}",
     7, "links.wired.mark", "a mark on a link without a rate; give the link a rate"),
    # Commands
    ("$scheme}", "$scheme, traffic: ftp}",
     16, "flows.bulk.traffic", "'ftp' is not possible here; input should be 'bulk' or 'command'"),
    ("$scheme}", "$scheme, client: [x]}",
     16, "flows.bulk.client", "traffic is bulk, which has none; write `traffic: command`"),
    ("$scheme}", "$scheme, listen: from}",
     16, "flows.bulk.listen", "traffic is bulk, which has none; write `traffic: command`"),
    ("$scheme}", "$scheme, traffic: command, server: [x]}",
     16, "flows.bulk", "no client; write `client: [PROGRAM, ARGUMENT, ...]`"),
    ("$scheme}", "$scheme, traffic: command, client: curl x}",
     16, "flows.bulk.client", "'curl x' is not possible here; input should be a valid list"),
    ("$scheme}", "$scheme, traffic: command, client: []}",
     16, "flows.bulk.client", "[] is not possible here; list should have at least 1 item"),
    ("$scheme}", "$scheme, traffic: command, client: [./app]}",
     16, "flows.bulk.client", "'./app' is no program; give its name, or its path on the host fr"),
    ("$scheme}", "$scheme, traffic: command, client: [x, on, true]}",
     16, "flows.bulk.client.2", "True is not possible here; input should be a valid string"),
    ("$scheme}", '$scheme, traffic: command, client: [x, "{host}"]}',
     16, "flows.bulk.client.1", "unknown field {host} in '{host}'; one of: {sender}, {receiver}, "
     "{port}, {duration_s}, {flow}"),
    ("$scheme}", '$scheme, traffic: command, client: [x, "{port:04}"]}',
     16, "flows.bulk.client.1", "unknown field {port} in '{port:04}'; one of: "),
    ("$scheme}", '$scheme, traffic: command, client: [x], server: ["{"]}',
     16, "flows.bulk.server.0", "a single brace in '{'; write {{ or }} for a brace, or one of: "),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "key", "complaint"), BAD)
def test_what_is_wrong_is_named_with_its_place_and_cure(tmp_path, old, new, line, key, complaint):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if "X: host}" in new:
        text = text.replace("to: D", "to: X")
    with pytest.raises(InputError) as caught:
        plan_all(tmp_path, text)
    place = f"{tmp_path / 'spec.yaml'}:{line}: " + (f"{key}: " if key else "")
    assert place + complaint in str(caught.value), str(caught.value)
    assert all(problem.cure for problem in caught.value.problems)


def plan_all(tmp_path, text):
    return [plan for point in read(tmp_path, text) for plan in plan_runs(point, None)]


def test_an_unknown_loss_model_is_answered_with_all_there_are(tmp_path):
    known = "none, bernoulli, poisson, bernoulli_bit, gilbert_elliott, markov, trace"
    with pytest.raises(InputError, match=f"unknown loss model 'poison'; one of: {known}$"):
        read(tmp_path, GOOD.replace("poisson", "poison"))


def test_errors_in_a_form_name_the_form(tmp_path):
    text = GOOD.replace("[5 Mb/s]", "[5 Mb]")
    with pytest.raises(
        InputError, match=re.escape("spec.yaml:27: forms.quick.matrix.capacity.0: ")
    ):
        read(tmp_path, text, "quick")
    with pytest.raises(InputError, match="there is no form 'slow'; forms of this file: quick"):
        read(tmp_path, GOOD, "slow")


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    text = GOOD.replace("45 ms", "45").replace("20 packets", "20 pints")
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert len(caught.value.problems) == 2


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read it: No such file"):
        read_experiment(tmp_path / "missing.yaml", None)
    with pytest.raises(InputError, match="not a mapping"):
        read(tmp_path, "- just\n- a list\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot read it"):
        read_experiment(tmp_path / "binary.yaml", None)


def test_flows_that_contradict_each_other(tmp_path):
    both = "  bulk: {from: S, to: D, scheme: $scheme}\n  more: {from: S, to: D, scheme: SCHEME}"
    text = GOOD.replace("  bulk: {from: S, to: D, scheme: $scheme}", both)
    with pytest.raises(
        InputError, match=r"flows\.more\.scheme: sack needs net\.ipv4\.tcp_sack=1 o"
    ):
        plan_all(tmp_path, text.replace("SCHEME", "sack"))
    again = text.replace("SCHEME", "$scheme")
    with pytest.raises(InputError, match="port 5001 of D is in use by flow bulk"):
        plan_all(tmp_path, again.replace("$scheme}\nd", "$scheme, port: 5001}\nd"))
    with pytest.raises(InputError, match="give the two flows the same payload"):
        plan_all(tmp_path, again.replace("$scheme}\nd", "$scheme, payload: 500 bytes}\nd"))
    assert len(plan_all(tmp_path, again)) == 8


def test_merged_keys_are_named_by_the_line_of_their_mapping(tmp_path):
    text = GOOD.replace("links:\n", "links: # &same\n").replace(
        "wired: {between: [S, N], rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp}",
        "wired: &wired {between: [S, N], rate: 100 Mb/s, delay: 45, queue: 1 bdp}\n"
        "  other: {<<: *wired, between: [D, N]}",
    )
    with pytest.raises(InputError) as refusal:
        read(tmp_path, text)
    lines = re.findall(r":(\d+): links\.(wired|other)\.delay: 45 has no unit", str(refusal.value))
    assert lines == [("7", "wired"), ("8", "other")]
