# SPDX-License-Identifier: Apache-2.0
"""Test experiment files: accepted settings, and messages about refused ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT
from specs import GOOD, two_links

ACHIEVEMENT = ROOT / "experiments" / "achievement-2008.yaml"


def read(tmp_path, text, variant=None):
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return read_experiment(path, variant)


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
    assert radio.resolve_direction("forward").rate == radio.resolve_direction("backward").rate
    assert radio.resolve_direction("forward").loss.model == "poisson"
    assert radio.resolve_direction("backward").loss is None


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

# (text to replace, replacement, line, key path, message and cure)
BAD = [
    ("seed: 1", "seed: 1\nsede: 2",
     5, "sede", "unknown key `sede`; did you mean `seed`? known here: duration, ecn, flows"),
    ("queue: 20 packets", "quue: 20 packets",
     12, "links.radio.quue", "unknown key `quue`; did you mean `queue`? known here: arq, b"),
    ("delay: 45 ms", "delay: 45", 7, "links.wired.delay", "45 has no unit; write it like '45 ms'"),
    ("45 ms", "45 Mb/s", 7, "links.wired.delay", "'Mb/s' is no unit of a duration; one of: ns, us"),
    ("100 Mb/s", "100 MB/s",
     7, "links.wired.rate", "'MB/s' is no unit of a rate; did you mean `Mb/s`? one of: b/s, kb/s"),
    ("[newreno, cubic]", "[newreno, cubik]",
     21, "matrix.scheme.1", "unknown scheme 'cubik'; did you mean `cubic`? one of: newreno, sack"),
    ("[10 Mb/s, 20", "[0 Mb/s, 20",
     20, "matrix.capacity.0", "a rate of 0 Mb/s is too small; give 1 b/s or more"),
    ("[0 %, 1 %]", "[0 %, 101 %]",
     19, "matrix.loss.1", "a share of 101 % is out of range; give 0 % to 100 %, or 0 to 1"),
    ("[0 %, 1 %]", "[0 %, 1.01]", 19, "matrix.loss.1", "a share of 1.01 is out of range; give 0 %"),
    ("[0 %, 1 %]", "[0 %, 1]", 19, "matrix.loss.1", "a Poisson process cannot lose every packet;"),
    ("rate: $loss", "rate: $los",
     14, "links.radio.forward.loss.rate",
     "there is no axis 'los' in the matrix; did you mean `loss`? axes: loss, capacity, scheme"),
    ("poisson", "poison",
     14, "links.radio.forward.loss.model", "unknown loss model 'poison'; did you mean `poisson`?"),
    ("D: host}", "D: host, X: host}", 16, "flows.bulk.to", "there is no path from S to X; join"),
    ("to: D", "to: Q", 16, "flows.bulk.to", "there is no node Q; hosts: S, D"),
    ("to: D", "to: N", 16, "flows.bulk.to", "N is a router; hosts: S, D"),
    ("to: D", "to: S", 16, "flows.bulk.to", "S is sender and receiver of the flow; name another"),
    ("[N, D]", "[N, Z]", 9, "links.radio.between.1", "there is no node Z; nodes: S, N, D"),
    ("[S, N]", "[S, S]", 7, "links.wired.between", "the link joins S to itself; name two nodes"),
    ("[S, N]", "[S]", 7, "links.wired.between", "no entry 2 in the list; add it"),
    ("[S, N]", "[S, N, D]", 7, "links.wired.between", "more than 2 entries; give 2"),
    ("[S, N]", "S", 7, "links.wired.between", "'S' in place of a list; write [a, b]"),
    ("seed: 1", "seed: 1\nseed: 2",
     5, "", "key 'seed' is given twice, first in line 4; remove one"),
    ("title: A test", "title: [A", 3, "", "a [ that is not closed, or entries without a comma bet"),
    ("$scheme}", "$scheme, port: 80}", 16, "flows.bulk.port", "80 is out of range; give 1024 or "),
    ("$scheme}", "$scheme, port: 70000}", 16, "flows.bulk.port", "70000 is out of range; give 65"),
    ("$scheme}", "$scheme, payload: 9 kB}",
     16, "flows.bulk.payload", "a payload of 9000 bytes does not fit into Ethernet's MTU; give 8"),
    ("$scheme}", "$scheme, start: 11 s}",
     16, "flows.bulk.start", "the flow starts at 11 s, after the end of the traffic; start it be"),
    ("$scheme}", "$scheme, count: 0}", 16, "flows.bulk.count", "0 is out of range; give 1 or more"),
    ("$scheme}", "$scheme, count: 257}", 16, "flows.bulk.count", "257 is out of range; give 256"),
    ("$scheme}", "$scheme, count: 2.5}", 16, "flows.bulk.count", "2.5 in place of a whole number"),
    ("$scheme}", "$scheme, every: 1 s}",
     16, "flows.bulk.every", "`every` without `count`; add `count: 8`, or remove it"),
    ("$scheme}", "$scheme, count: 9, port: 65530}",
     16, "flows.bulk.port", "9 flows from port 65530 on need ports above 65535; give 65527"),
    ("$scheme}", "$scheme, count: 4, port: 6001}\n"
     "  z: {from: S, to: D, scheme: $scheme, port: 6003}",
     17, "flows.z.port", "flow bulk.3 already uses port 6003 of D; give the flow another port"),
    ("$scheme}", "$scheme, port: 6003}\n"
     "  z: {from: S, to: D, scheme: $scheme, count: 4, port: 6001}",
     17, "flows.z.port", "flow bulk already uses port 6003 of D; give the flow another port"),
    ("$scheme}", "$scheme, count: 4, every: 4 s}",
     16, "flows.bulk.start", "flow bulk.4 starts at 12 s, after the end of the traffic; start it"),
    ("$scheme}", "$scheme, count: $capacity}",
     20, "matrix.capacity.0", "'10 Mb/s' in place of a whole number; write one, such as 3"),
    ("bulk: {", "b.1: {", 16, "flows.b.1", "'b.1' is no name; use 1 to 11 of A-Z, a-z"),
    ("[newreno, cubic]", "[none, cubic]", 15, "flows", "every flow has the scheme none at this p"),
    ("panels: loss", "competitor: scheme",
     22, "report.competitor", "axis scheme is also `series`; give the axis of the competing"),
    ("panels: loss", "competitor: rival",
     22, "report.competitor",
     "there is no axis 'rival' in the matrix; axes: loss, capacity, scheme"),
    ("rate: $capacity\n", "max: 1\n", 10, "links.radio.max", "unknown key `max`; known here: arq"),
    ("rate: 100 Mb/s, ", "", 7, "links.wired.queue", "`queue` on a link without a rate; give the"),
    ("x: capacity", "x: height",
     22, "report.x", "there is no axis 'height' in the matrix; axes: loss, capacity, scheme"),
    ("duration: 10 s", "duration: 1 ms", 17, "duration", "a duration of 1 ms is too short; give 1"),
    ("duration: 10 s", "duration: 5 s\nwarmup: 5 s",
     18, "warmup", "a warmup of 5 s is not shorter than the duration, 5 s; give less"),
    ("title: A test\n", "", 1, "", "missing key `title`; add `title: ...`"),
    ("schema_version: 1", "schema_version: 2",
     1, "schema_version", "unknown version 2; write `schema_version: 1`"),
    ("cubic]", "newreno]", 21, "matrix.scheme.1", "'newreno' is given twice; remove one"),
    ("$capacity", "10 Mb/s", 20, "matrix.capacity", "axis capacity is used nowhere; write $capaci"),
    ("seed: 1", "seed: 1\nhost_profile: bsd",
     5, "host_profile", "unknown host profile 'bsd'; one of: linux, ns2"),
    ("{from: S", "{fro: S",
     16, "flows.bulk.fro", "unknown key `fro`; did you mean `from`? known here: background, clie"),
    # Names
    ("  wired:", "  wire/d:", 7, "links.wire/d", "'wire/d' is no name; use 1 to 11 of A-Z, a-z, "),
    ("  wired:", '  "wi\\nre":', 7, r"links.wi\nre", r"'wi\nre' is no name; use 1 to 11 of A-Z, a"),
    ("  wired:", '  "wi\\0re":', 7, "", "a text with control character U+0000; remove it"),
    ("  wired:", "  wiredwiredwired:", 7, "links.wiredwiredwired", "'wiredwiredwired' is no name"),
    ("S: host", "S/1: host", 5, "nodes.S/1", "'S/1' is no name; use 1 to 11 of A-Z, a-z, 0-9"),
    ("S: host", "S:host", 5, "nodes.S:host", "'S:host' is no name; use 1 to 11 of A-Z, a-z, 0-9, - "
     "and _, and begin with a letter; write a space after the colon between key and value"),
    ("  bulk:", "  bu lk:", 16, "flows.bu lk", "'bu lk' is no name; use 1 to 11 of A-Z, a-z, 0-9"),
    ("name: test", "name: a/b", 2, "name", "'a/b' is no name; use 1 to 64 of a-z, 0-9 and -, and"),
    ("name: test", "name: Test", 2, "name", "'Test' is no name; use 1 to 64 of a-z, 0-9 and -"),
    ("  loss: [", "  Loss: [", 19, "matrix.Loss", "'Loss' is no name; use 1 to 64 of a-z, 0-9 an"),
    ("  quick:", "  ../quick:", 24, "variants.../quick", "'../quick' is no name; use 1 to 64 of A"),
    # Values of another kind
    ("schema_version: 1", "schema_version: true",
     1, "schema_version", "unknown version true; write `schema_version: 1`"),
    ("schema_version: 1", "schema_version: 1.0", 1, "schema_version", "unknown version 1.0; write"),
    ("seed: 1", "seed: true", 4, "seed", "true in place of a whole number; write one, such as 3"),
    ("seed: 1", "seed: '1'", 4, "seed", "'1' in place of a whole number; write one, such as 3"),
    ("seed: 1", "seed: 1\nrepeats: true", 5, "repeats", "true in place of a whole number; write "),
    ("seed: 1", "seed: 1\necn: 1", 5, "ecn", "1 in place of true or false; write true or false"),
    ("seed: 1", "seed: 1\nrepeats: 3\nuntil: {metric: agi, halfwidth: true, at_most: 9}",
     6, "until.halfwidth", "true in place of a number; write one, such as 0.5"),
    ("seed: 1", "seed: 1\nrepeats: 3\nuntil: {metric: agi, halfwidth: .inf, at_most: 9}",
     6, "until.halfwidth", "inf in place of a finite number; write one, such as 0.5"),
    ("seed: 1", "seed: 1\nrepeats: 3\nuntil: {metric: agi, halfwidth: 1, at_most: true}",
     6, "until.at_most", "true in place of a whole number; write one, such as 3"),
    ("seed: 1", "seed: 1\nrepeats_at: [{where: {los: 0 %}, repeats: 2}]",
     5, "repeats_at.0.where.los", "there is no axis 'los' in the matrix; did you mean `loss`?"),
    ("seed: 1", "seed: 1\nrepeats_at: [{where: {scheme: '> 5'}, repeats: 2}]",
     5, "repeats_at.0.where", "'newreno' and '5' cannot be compared; give the same unit"),
    ("seed: 1", "seed: 1\nrepeats_at: [{where: {}, repeats: 2}]",
     5, "repeats_at.0.where", "no entry; give 1 or more"),
    ("seed: 1", "seed: 1\nrepeats: 3\nrepeats_at: [{where: {loss: 0 %}, repeats: 2}]\n"
     "until: {metric: agi, halfwidth: 1, at_most: 9}",
     6, "repeats_at", "`repeats_at` together with `until`, which determines the"),
    ("seed: 1", "seed: 1\nrepeats: 3\nuntil: {metric: agii, halfwidth: 1, at_most: 9}",
     6, "until.metric", "unknown metric 'agii'; did you mean `agi`? one of: "),
    ("seed: 1", "seed: 1\nuntil: {metric: agi, halfwidth: 1, at_most: 9}",
     1, "repeats", "`until` with `repeats: 1`, but an interval of so few runs may be na"),
    ("seed: 1", "seed: 1\nparameters: {vegas: {alpha: true}}",
     5, "parameters.vegas.alpha", "true in place of a whole number; write one, such as 3"),
    ("$scheme}", "$scheme, background: 0}",
     16, "flows.bulk.background", "0 in place of true or false; write true or false"),
    ("$scheme}", "$scheme, port: true}", 16, "flows.bulk.port", "true in place of a whole number"),
    ("title: A test", "title:", 3, "title", "nothing in place of a text; write a text"),
    ("title: A test", "title: # 1", 3, "title",
     "nothing in place of a text; write a text; quote a text that begins with #"),
    ("title: A test", "title: 2008", 3, "title", "2008 in place of a text; quote it: '2008'"),
    ("title: A test", "title: {a: b}", 3, "title", "a mapping in place of a text; write a text"),
    ("delay: 45 ms", "delay: [45 ms]", 7, "links.wired.delay", "not a duration: a list; write it"),
    ("delay: 45 ms", f"delay: {'9' * 200} ms",
     7, "links.wired.delay", f"a duration of '{'9' * 60}...' is out of range; write it"),
    ("delay: 45 ms", "delay: 1e30 ms", 7, "links.wired.delay", "a duration of '1e30 ms' is out o"),
    ("delay: 45 ms", "delay: 0.5 ns", 7, "links.wired.delay", "0.5 ns is no whole number of ns"),
    ("S: host", "S: hots", 5, "nodes.S", "unknown value 'hots'; did you mean `host`? one of: hos"),
    ("{S: host, N: router, D: host}", "{S: host}", 5, "nodes", "1 entry; give 2 or more"),
    ("[0 %, 1 %]", "[0 %, [1 %]]", 19, "matrix.loss.1", "a list in place of a value; write a tex"),
    ("[0 %, 1 %]", "[]", 19, "matrix.loss", "an empty list; write its values: [a, b, ...]"),
    ("matrix:", "matrx:", 18, "matrx", "unknown key `matrx`; did you mean `matrix`? known here: "),
    ("links:", "linsk:", 6, "linsk", "unknown key `linsk`; did you mean `links`? known here: dur"),
    # Loss models
    ("poisson", "gilbert", 14, f"{LOSS}.model",
     "unknown loss model 'gilbert'; did you mean `gilbert_elliott`? one of: none, bernoulli, pois"),
    ("model: poisson, ", "",
     14, LOSS, "no loss model; add `model: ...`, one of: bernoulli, bernoulli_bit, bernoulli_tr"),
    ("model: poisson", "modle: poisson",
     14, f"{LOSS}.modle", "unknown key `modle`; did you mean `model`? known here: at, bad"),
    (POISSON, "{model: bernoulli_bit, rate: 1}", 14, f"{LOSS}.rate", "a bit error rate of 1 lose"),
    (POISSON, "{model: bernoulli_bit}", 14, LOSS, "missing key `rate`; add `rate: ...`"),
    (POISSON, "{model: markov, good: 0 s, bad: 1 s}",
     14, f"{LOSS}.good", "a duration of 0 s is too small; give 1 us or more"),
    (POISSON, "{model: markov, good: 1 s}", 14, LOSS, "missing key `bad`; add `bad: ...`"),
    (POISSON, "{model: markov, goood: 1 s, bad: 1 s}",
     14, f"{LOSS}.goood", "unknown key `goood`; did you mean `good`? known here: at, bad, good, "),
    (POISSON, "{model: gilbert_elliott, good_to_bad: 2, bad_to_good: 1}",
     14, f"{LOSS}.good_to_bad", "a share of 2 is out of range; give 0 % to 100 %, or 0 to 1"),
    ("delay: 45 ms", "loss: {model: trace, file: gone.loss}",
     7, "links.wired.loss.file", "there is no file 'gone.loss'; give its path from /"),
    (POISSON, "{model: trace, file: $loss}", 19, "matrix.loss.0", "there is no file '0 %'; give "),
    ("delay: 45 ms", f"loss: {{model: trace, file: {'x' * 300}}}",
     7, "links.wired.loss.file", f"there is no file '{'x' * 60}...'; give its path from /"),
    # Rates and delays that change
    ("$capacity\n", "$capacity\n    rate_trace: {file: x, format: steps}\n",
     11, "links.radio.rate_trace", "rate and rate_trace are both given; remove one"),
    ("delay: 5 ms\n", "delay: 5 ms\n    delay_trace: {file: x}\n",
     12, "links.radio.delay_trace", "delay and delay_trace are both given; remove one"),
    ("rate: 100 Mb/s", "rate_trace: {file: gone.txt, format: steps}",
     7, "links.wired.rate_trace.file", "there is no file 'gone.txt'"),
    (RATE, "rate_trace: {file: gone.txt, format: pcap}",
     10, f"{TRACE}.format", "unknown value 'pcap'; one of: mahimahi, steps"),
    (RATE, "rate_trace: {file: gone.txt}", 10, TRACE, "missing key `format`; add `format: ...`"),
    (RATE, "rate_trace: {file: gone.txt, format: steps, period: 1 s}",
     10, f"{TRACE}.period", "`period` cannot be combined with the other keys here; remove it"),
    (RATE, "rate_trace: lte.txt",
     10, TRACE, "'lte.txt' in place of a mapping; known here: file, format, period, steps"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}}',
     10, TRACE, "missing key `period`; add `period: "),
    (RATE, 'rate_trace: {stesp: {"0 s": 1 Mb/s}, period: 1 s}',
     10, f"{TRACE}.stesp", "unknown key `stesp`; did you mean `steps`? known here: file, format,"),
    (RATE, "rate_trace: {steps: {}, period: 1 s}", 10, f"{TRACE}.steps", "no entry; give 1 or mo"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}, period: 0 s}',
     10, f"{TRACE}.period", "a duration of 0 s is too small; give 1 ns or more"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 ms}, period: 1 s}',
     10, f"{TRACE}.steps.0 s", "'ms' is no unit of a rate; one of: "),
    (RATE, 'rate_trace: {steps: {"0": 1 Mb/s}, period: 1 s}',
     10, f"{TRACE}.steps.0", "0 has no unit; write it like '45 ms'"),
    (RATE, 'rate_trace: {steps: {"1 s": 1 Mb/s}, period: 2 s}',
     10, f"{TRACE}.steps", "the first step is at 1 s; give the value at 0 s first"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s, "0 ms": 2 Mb/s}, period: 2 s}',
     10, f"{TRACE}.steps", "0 ns is not after 0 ns; give every instant once, in order"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s, "2 s": 2 Mb/s}, period: 2 s}',
     10, f"{TRACE}.period", "a period of 2 s ends before the step at 2 s; give a longer period"),
    (RATE, 'rate_trace: {steps: {"0 s": 1 Mb/s}, period: 2 h}',
     10, f"{TRACE}.period", "a period of 7200 s is too long; give at most 3600 s"),
    (RATE, 'rate_trace: {steps: {"0 s": 0 b/s}, period: 2 s}',
     10, f"{TRACE}.steps", "the rate is always 0; give a step another rate"),
    (RATE, 'rate_trace: {steps: {"0 s": $capacity}, period: 2 s}',
     14, LOSS, "Poisson loss on a link with a rate_trace; give the link a constant rate, or"),
    # Jitter, order and marks
    ("delay: 5 ms", "jitter: {distribution: gamma}",
     11, "links.radio.jitter.distribution",
     "unknown jitter distribution 'gamma'; one of: uniform, normal, exp"),
    ("delay: 5 ms", "jitter: {mean: 1 ms}",
     11, "links.radio.jitter", "no jitter distribution; add `distribution: ...`, one of: exponen"),
    ("delay: 5 ms", "jitter: 1 ms",
     11, "links.radio.jitter", "'1 ms' does not say how jitter is distributed; write"),
    ("delay: 5 ms", "jitter: {distribution: normal, mean: 1 ms}",
     11, "links.radio.jitter.mean", "unknown key `mean`; known here: correlation, deviation, d"),
    ("delay: 5 ms", "keep_order: false",
     11, "links.radio.keep_order", "direction forward has no jitter and no delay_trace, so it"),
    ("delay: 5 ms", "backward: {keep_order: true}",
     11, "links.radio.backward.keep_order", "direction backward has no jitter and no"),
    ("delay: 5 ms", "keep_order: maybe",
     11, "links.radio.keep_order", "'maybe' in place of true or false; write true or false"),
    ("delay: 45 ms", "mark: {threshold: 5}",
     7, "links.wired.mark.threshold", "not a queue size: 5; write"),
    ("delay: 45 ms", "mark: {threshold: 5 kB, weight: 0}",
     7, "links.wired.mark.weight", "a weight of 0 ignores the queue; give more, like 0.002"),
    ("rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp", "mark: {threshold: 5 kB}",
     7, "links.wired.mark", "`mark` on a link without a rate; give the link a rate"),
    # Commands
    ("$scheme}", "$scheme, traffic: ftp}",
     16, "flows.bulk.traffic", "unknown application 'ftp'; one of: bulk, command, transfer, pl"),
    ("$scheme}", "$scheme, traffic: transfer}",
     16, "flows.bulk.traffic",
     "application transfer without its settings; write `{application: transfer, ...}`"),
    ("$scheme}", "$scheme, traffic: {application: ftp}}",
     16, "flows.bulk.traffic.application", "unknown application 'ftp'; one of: bulk, command, tr"),
    ("$scheme}", "$scheme, traffic: {size: 5 MB}}",
     16, "flows.bulk.traffic", "no application; add `application: ...`, one of: bulk, cbr, comma"),
    ("$scheme}", "$scheme, traffic: {application: transfer}}",
     16, "flows.bulk.traffic", "missing key `size`; add `size: ...`"),
    ("$scheme}", "$scheme, traffic: {application: transfer, size: 5}}",
     16, "flows.bulk.traffic.size", "5 has no unit; write it like '1000 bytes'"),
    ("$scheme}", "$scheme, traffic: {application: transfer, size: 5 MB, rate: 1 Mb/s}}",
     16, "flows.bulk.traffic.rate", "unknown key `rate`; known here: application, max_duration, "),
    ("$scheme}", "$scheme, traffic: {application: transfer, size: 5 MB}, listen: from}",
     16, "flows.bulk.listen",
     "listen cannot be combined with `traffic: transfer`; write `traffic: command`"),
    ("$scheme}", "$scheme, traffic: {application: playback, rate: 1 Gb/s, interval: 1 s}}",
     16, "flows.bulk.traffic.interval", "1.25e+08 bytes are read at each attempt (rate x interv"),
    ("$scheme}", "$scheme, traffic: {application: cbr}}",
     16, "flows.bulk.traffic", "no rate; add `rate: ...`, or `codec: g711` for a voice call"),
    ("$scheme}", "$scheme, traffic: {application: cbr, codec: g711, rate: 1 Mb/s}}",
     16, "flows.bulk.traffic.rate", "the codec already defines rate; remove it"),
    ("$scheme}", "$scheme, traffic: {application: cbr, rate: 1 Mb/s, payload: 1 B}}",
     16, "flows.bulk.traffic.payload", "a payload of 1 bytes is too small; give 20 bytes or more"),
    ("$scheme}", "$scheme, traffic: {application: cbr, rate: 1 Mb/s, payload: 1013 B}}",
     16, "flows.bulk.traffic.payload",
     "datagrams of 1013 bytes are larger than the flow's segments; give the flow `payload: 1013"),
    ("$scheme}", "$scheme, traffic: {application: token_bucket, depth: 1 kB, token: 2 kB}}",
     16, "flows.bulk.traffic.depth", "a bucket of 1000 bytes cannot hold a token of 2000 bytes"),
    ("$scheme}", "$scheme, traffic: {application: poisson, interval: 1 s}}",
     16, "flows.bulk.traffic", "constant sizes need `size`; add `size: ...`"),
    ("$scheme}", "$scheme, traffic: {application: poisson, interval: 0 s, size: 1 kB}}",
     16, "flows.bulk.traffic.interval", "a duration of 0 s is too small; give 1 ns or more"),
    ("$scheme}", "$scheme, traffic: {application: request_response, sizes: pareto, size: 1 kB,"
     " min: 1 kB, max: 1 MB}}",
     16, "flows.bulk.traffic.size", "size has no meaning with `sizes: pareto`; remove it"),
    ("$scheme}", "$scheme, traffic: {application: request_response, sizes: pareto, min: 2 kB,"
     " max: 1 kB}}",
     16, "flows.bulk.traffic.max", "the largest size is not above the smallest size; raise it"),
    ("$scheme}", "$scheme, traffic: {application: onoff, rate: 1 Mb/s, on_time: 1 s, off_time: 1 s,"
     " shape: 1.2}}",
     16, "flows.bulk.traffic.shape", "shape needs `distribution: pareto`; remove it"),
    ("$scheme}", "$scheme, client: [x]}",
     16, "flows.bulk.client", "client cannot be combined with `traffic: bulk`; write `traffic: c"),
    ("$scheme}", "$scheme, listen: from}",
     16, "flows.bulk.listen", "listen cannot be combined with `traffic: bulk`; write `traffic: c"),
    ("$scheme}", "$scheme, trafic: command, client: [x]}",
     16, "flows.bulk.trafic", "unknown key `trafic`; did you mean `traffic`? known here: backgro"),
    ("$scheme}", "$scheme, traffic: command, server: [x]}",
     16, "flows.bulk", "no client; write `client: [PROGRAM, ARGUMENT, ...]`"),
    ("$scheme}", "$scheme, traffic: command, client: curl x}",
     16, "flows.bulk.client", "'curl x' in place of a list; write [a, b, ...]"),
    ("$scheme}", "$scheme, traffic: command, client: []}",
     16, "flows.bulk.client", "no entry; give 1 or more"),
    ("$scheme}", "$scheme, traffic: command, client: [bin/app]}",
     16, "flows.bulk.client", "'bin/app' is not the name of a program or an absolute path; write"),
    ("$scheme}", "$scheme, traffic: command, client: [x, on, true]}",
     16, "flows.bulk.client.2", "true in place of a text; quote it: 'true'"),
    ("$scheme}", '$scheme, traffic: command, client: [x, "{host}"]}',
     16, "flows.bulk.client.1", "unknown field '{host}' in '{host}'; one of: {sender}, {receiver}, "
     "{port}, {duration_s}, {flow}"),
    ("$scheme}", '$scheme, traffic: command, client: [x, "{port:04}"]}',
     16, "flows.bulk.client.1", "unknown field '{port}' in '{port:04}'; one of: "),
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
    location = f"{tmp_path / 'spec.yaml'}:{line}: " + (f"{key}: " if key else "")
    assert str(caught.value).startswith(location + complaint), str(caught.value)
    assert all(problem.cure for problem in caught.value.problems)


def plan_all(tmp_path, text):
    return [plan for point in read(tmp_path, text) for plan in plan_runs(point, None)]


def test_an_unknown_loss_model_is_answered_with_all_there_are(tmp_path):
    models = (
        "none, bernoulli, poisson, bernoulli_bit, bernoulli_trace, gilbert_elliott, markov, "
        "trace, sdr"
    )
    with pytest.raises(InputError, match=f"unknown loss model 'poison'; .* one of: {models}$"):
        read(tmp_path, GOOD.replace("poisson", "poison"))


def test_errors_in_a_form_name_the_form(tmp_path):
    text = GOOD.replace("[5 Mb/s]", "[5 Mb]")
    with pytest.raises(
        InputError, match=re.escape("spec.yaml:27: variants.quick.matrix.capacity.0: ")
    ):
        read(tmp_path, text, "quick")
    with pytest.raises(InputError, match="no variant 'slow'; variants of this file: quick"):
        read(tmp_path, GOOD, "slow")


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    text = GOOD.replace("45 ms", "45").replace("20 packets", "20 pints")
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert len(caught.value.problems) == 2


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read it: No such file"):
        read_experiment(tmp_path / "missing.yaml", None)
    with pytest.raises(InputError, match="cannot read it: Is a directory"):
        read_experiment(tmp_path, None)
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    with pytest.raises(InputError, match="cannot read it: Too many levels of symbolic links"):
        read_experiment(tmp_path / "loop.yaml", None)
    with pytest.raises(InputError, match="more than 250,000 bytes; give the path of a YAML file"):
        read_experiment(Path("/dev/zero"), None)


def test_flows_that_contradict_each_other(tmp_path):
    both = "  bulk: {from: S, to: D, scheme: $scheme}\n  more: {from: S, to: D, scheme: SCHEME}"
    text = GOOD.replace("  bulk: {from: S, to: D, scheme: $scheme}", both)
    with pytest.raises(
        InputError, match=r"flows\.more\.scheme: scheme sack needs net\.ipv4\.tcp_sack=1 o"
    ):
        plan_all(tmp_path, text.replace("SCHEME", "sack"))
    again = text.replace("SCHEME", "$scheme")
    with pytest.raises(InputError, match="flow bulk already uses port 5001 of D"):
        plan_all(tmp_path, again.replace("$scheme}\nd", "$scheme, port: 5001}\nd"))
    with pytest.raises(InputError, match="give the two flows the same payload"):
        plan_all(tmp_path, again.replace("$scheme}\nd", "$scheme, payload: 500 bytes}\nd"))
    assert len(plan_all(tmp_path, again)) == 8


def test_unknown_keys_come_before_what_follows_from_them(tmp_path):
    text = GOOD.replace("delay: 45 ms", "delay: 45").replace("{from: S", "{fron: S")
    text = text.replace("model: poisson", "modle: poisson").replace("title:", "tilte:")
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    messages = [problem.what for problem in caught.value.problems]
    assert messages[:3] == ["unknown key `modle`", "unknown key `fron`", "unknown key `tilte`"]
    assert messages[3:] == ["45 has no unit"]


def test_a_matrix_that_nobody_could_run_is_refused(tmp_path):
    matrix = "".join(f"  {name}: [{', '.join(map(str, range(50)))}]\n" for name in "abc")
    text = GOOD.replace("matrix:\n", f"matrix:\n{matrix}", 1)
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value) == (
        f"{tmp_path / 'spec.yaml'}:18: matrix: the matrix gives 1,000,000 runs (50 a x 50 b x 50 c "
        "x 2 loss x 2 capacity x 2 scheme), more than 100,000; remove values from the longest axes"
    )
    rates = ", ".join(f"{rate} Mb/s" for rate in range(1, 102))
    text = GOOD.replace("10 Mb/s, 20 Mb/s", rates).replace("seed: 1", "seed: 1\nrepeats: 250")
    with pytest.raises(InputError, match=r"gives 101,000 runs \(2 loss .* x 250 repeats\), more"):
        read(tmp_path, text)
    assert len(read(tmp_path, text.replace("repeats: 250", "repeats: 247"))) == 404


def test_points_share_what_does_not_differ(tmp_path):
    points = read(tmp_path, GOOD)
    links = [point.experiment.links for point in points]
    assert len({id(links_of_point["wired"]) for links_of_point in links}) == 1
    assert (
        len({id(links_of_point["radio"]) for links_of_point in links}) == 4
    )  # a loss and a capacity
    for point in points:
        radio = point.experiment.links["radio"]
        assert str(radio.rate) == point.values["capacity"]
        assert str(radio.forward.loss.rate) == point.values["loss"]
        assert point.experiment.flows["bulk"].scheme == point.values["scheme"]


def test_what_an_axis_brings_anywhere_is_validated(tmp_path):
    text = GOOD.replace("duration: 10 s", "duration: $time").replace("seed: 1", "seed: $seed")
    text = text.replace("matrix:\n", "matrix:\n  time: [1 s, 2 s]\n  seed: [1, 2, 3]\n", 1)
    points = read(tmp_path, text)
    assert len(points) == 48
    for point in points:
        assert str(point.experiment.duration) == point.values["time"]
        assert str(point.experiment.seed) == point.values["seed"]
    with pytest.raises(InputError, match=r"spec.yaml:19: matrix.time.1: a duration of 2 ms is too"):
        read(tmp_path, text.replace("2 s]", "2 ms]"))
    with pytest.raises(InputError, match=r"spec.yaml:20: matrix.seed.2: true in place of a whole"):
        read(tmp_path, text.replace("3]", "true]"))


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


TAIL = """\
duration: 4 s
matrix: {scheme: [cubic]}
report: {x: scheme}
"""


@pytest.mark.parametrize(
    ("alone", "whole"),
    [
        ("loss: 1 %", "loss: {model: bernoulli, rate: 1 %}"),
        ("loss: 0.01", "loss: {model: bernoulli, rate: 1 %}"),
        ("loss: none, duplication: 1 %", "loss: {model: none}, duplication: {rate: 1 %}"),
        ("duplication: 1 %", "duplication: {rate: 1 %}"),
        ("corruption: 0.5 %", "corruption: {rate: 0.5 %}"),
    ],
)
def test_a_rate_alone_means_the_plain_model(tmp_path, alone, whole):
    plans = []
    for text in (alone, whole):
        path = tmp_path / "spec.yaml"
        path.write_text(
            two_links("alone", "rate: 10 Mb/s", f"delay: 1 ms, {text}", "scheme: $scheme", TAIL)
        )
        (point,) = read_experiment(path, None)
        (plan,) = plan_runs(point, None)
        plans.append(plan.links[1].forward)
    assert plans[0] == plans[1]
    assert plans[0].loss.describe() != "none" or plans[0].effects


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("jitter: 5 ms", "'5 ms' does not say how jitter is distributed; write `{distribution: un"),
        ("reordering: 1 %", "'1 %' does not say how long packets are held; write `{rate: 1 %, de"),
        ("loss: 101 %", "a share of 101 % is out of range; give 0 % to 100 %, or 0 to 1"),
        ("loss: true", "true in place of a mapping"),
    ],
)
def test_a_value_alone_that_does_not_say_enough_names_the_right_form(tmp_path, text, complaint):
    path = tmp_path / "spec.yaml"
    path.write_text(
        two_links("alone", "rate: 10 Mb/s", f"delay: 1 ms, {text}", "scheme: $scheme", TAIL)
    )
    with pytest.raises(InputError) as refused:
        read_experiment(path, None)
    (problem,) = refused.value.problems
    assert f"{problem.what}; {problem.cure}".startswith(complaint)
    assert problem.line and problem.key.startswith("links.")
