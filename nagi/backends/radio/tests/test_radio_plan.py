# SPDX-License-Identifier: Apache-2.0
"""Test links that are radios, and links with ARQ: settings, messages and plans."""

from __future__ import annotations

import json
import math
import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nagi.backends.radio import plan as radio_plan
from nagi.backends.radio.modems import find_sample_rate
from nagi.plan.air_time import load_air_time
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.units import DopplerSpread, FrequencyOffset, Level, SampleRate
from radio_specs import ARQ, PLAIN, RADIO, change_lines, plan_points, read_points
from ruamel.yaml import YAML


def test_rate_and_overhead_are_the_modem_s(tmp_path):
    plan = plan_points(tmp_path)[0]
    wireless = plan.link("wireless")
    modem = ("ofdm", "qpsk", wireless.radio.sample_rate_hz, "none")
    for direction in (wireless.forward, wireless.backward):
        assert direction.rate_bps == load_air_time().compute_rate_bps(*modem)
        assert direction.overhead_bytes == load_air_time().compute_overhead_bytes(*modem) > 0
        assert direction.delay_ns == 20_000_000
        assert direction.queue.packets == 20
        assert direction.loss.model == "radio"
        assert direction.arq is None
    # What was asked for, as near as whole samples a second come.
    assert 0 <= wireless.forward.rate_bps - 2_000_000 < 4
    assert plan.flows[0].bottleneck_bps == wireless.forward.rate_bps
    assert plan.flows[0].base_rtt_s == pytest.approx(0.1)
    assert plan.link("wired").radio is None


def test_what_a_radio_is_asked_is_in_the_plan_in_its_own_terms(tmp_path):
    text = change_lines(
        ("      modem: ofdm\n      modulation: qpsk\n      rate: 2 Mbit\n",
         "      by: virtual\n      modem: single_carrier\n      modulation: 8psk\n"
         "      sample_rate: 2 MHz\n      code_rate: 1/2\n"
         "      fading: {kind: rician, doppler: 5 Hz, k_factor: 6 dB}\n"
         "      multipath: [{delay: 0 ns, power: 0 dB}, {delay: 0.5 us, power: -3 dB}]\n"
         "      frequency_offset: -0.1 kHz\n"),
        ("{snr: 30 dB}", "{snr: 30 dB, fading: {kind: rayleigh, doppler: 1.5 Hz}}"),
    )  # fmt: skip
    plan = plan_points(tmp_path, text)[2]
    taps = [{"delay_ns": 0, "power_db": 0.0}, {"delay_ns": 500, "power_db": -3.0}]
    shared = {"taps": taps, "frequency_offset_hz": -100.0}
    assert json.loads(plan.link("wireless").radio.model_dump_json()) == {
        "by": "virtual",
        "modem": "single_carrier",
        "modulation": "8psk",
        "sample_rate_hz": 2_000_000,
        "code_rate": "1/2",
        "forward": {
            "snr_db": 15.5,
            "fading": "rician",
            "doppler_hz": 5.0,
            "k_factor_db": 6.0,
            **shared,
        },
        "backward": {"snr_db": 30.0, "fading": "rayleigh", "doppler_hz": 1.5, **shared},
    }


def test_a_channel_that_says_nothing_is_noise_alone(tmp_path):
    text = change_lines(("snr: $snr\n", "snr: $snr\n      fading: none\n"))
    for plan in (plan_points(tmp_path)[0], plan_points(tmp_path, text)[0]):
        assert json.loads(plan.link("wireless").radio.forward.model_dump_json()) == {
            "snr_db": 12.0,
            "fading": "none",
            "frequency_offset_hz": 0.0,
        }


def test_a_queue_in_bdps_counts_with_the_radio_s_rate(tmp_path):
    plan = plan_points(tmp_path, change_lines(("queue: 20 packets", "queue: 2 bdp")))[0]
    wireless = plan.link("wireless").forward
    bdp = wireless.rate_bps * 0.1 / (8 * 1052)
    assert wireless.queue.packets == math.ceil(2 * bdp)


def test_schemes_meet_the_same_radio_and_snrs_another(tmp_path):
    seeds = {}
    for plan in plan_points(tmp_path):
        seeds.setdefault(plan.point["snr"], set()).add(plan.seed)
    assert all(len(seeds_of_snr) == 1 for seeds_of_snr in seeds.values())
    assert len(set.union(*seeds.values())) == 2


def test_a_radio_has_the_time_to_start(tmp_path):
    without, with_one = plan_points(tmp_path, PLAIN)[0], plan_points(tmp_path)[0]
    later = radio_plan.START_S + radio_plan.START_PER_LINK_S
    for phase in ("capture_s", "serve_s", "traffic_s", "traffic_end_s"):
        apart = getattr(with_one.timeline, phase) - getattr(without.timeline, phase)
        assert apart == pytest.approx(later)
    virtual = plan_points(
        tmp_path, change_lines(("modem: ofdm", "by: virtual\n      modem: ofdm"))
    )[0]
    further = virtual.timeline.capture_s - with_one.timeline.capture_s
    assert further == pytest.approx(radio_plan.PROCESS_START_S)
    # What waits when the traffic ends still has its time on the air, framing included.
    wireless = with_one.link("wireless").forward
    air_s = (1052 + wireless.overhead_bytes) * 8 / wireless.rate_bps
    drain = with_one.timeline.capture_end_s - with_one.timeline.traffic_end_s
    assert drain > 20 * air_s + 0.1


def test_any_link_may_repeat_what_it_lost(tmp_path):
    plan = plan_points(tmp_path, change_lines(
        ("queue: 20 packets", ARQ),
        ("queue: 1 bdp}", "queue: 1 bdp, backward: {arq: {retries: 1, feedback: 500 us}}}"),
    ))[0]  # fmt: skip
    wired, wireless = plan.link("wired"), plan.link("wireless")
    assert (wired.forward.arq, wired.backward.arq.feedback_ns) == (None, 500_000)
    for direction in (wireless.forward, wireless.backward):
        assert (direction.arq.retries, direction.arq.feedback_ns) == (3, 8_000_000)
    assert plan.records_transmissions() and plan_points(tmp_path)[0].records_transmissions()
    # Repeating takes time, after the traffic, too.
    before = plan_points(tmp_path)[0].timeline
    drain = plan.timeline.capture_end_s - plan.timeline.traffic_end_s
    assert drain > before.capture_end_s - before.traffic_end_s


def test_plans_without_either_are_as_they_were():
    plan = plan_runs(read_experiment(SCHEMAS / "example" / "experiment.yaml", None)[0], None)[0]
    assert not plan.records_transmissions()
    written = json.loads(plan.model_dump_json())
    assert all("radio" not in link for link in written["links"])
    assert all(
        "arq" not in link[direction] for link in written["links"] for direction in ("forward",)
    )


# (text to replace, replacement, key, message and cure)
REFUSED = [
    ("delay: 20 ms", "delay: 9 ms", "links.wireless.delay",
     "a delay of 9 ms in direction forward is too short for a radio; "
     "give `delay: 10 ms` or more"),
    ("    delay: 20 ms\n", "", "links.wireless", "a delay of 0 ms in direction forward"),
    ("    backward:\n", "    backward:\n      delay: 1 ms\n", "links.wireless.backward.delay",
     "a delay of 1 ms in direction backward"),
    ("emulator: sdr", "emulator: sdr\n    rate: 2 Mb/s", "links.wireless.rate",
     "the modem decides the rate of a radio; write `radio: {rate: ...}` instead"),
    ("emulator: sdr", "emulator: sdr\n    overhead: 4 bytes", "links.wireless.overhead",
     "the modem decides the framing of a radio; remove it"),
    ("emulator: sdr", "emulator: sdr\n    loss: {model: bernoulli, rate: 1 %}",
     "links.wireless.loss", "the channel decides the losses of a radio; remove it, and write"),
    ("emulator: sdr", "emulator: sdr\n    jitter: {distribution: uniform, half_width: 1 ms}",
     "links.wireless.jitter", "a radio supports only a constant delay"),
    ("delay: 20 ms", "delay_trace: {steps: {0 s: 20 ms}, period: 1 s}",
     "links.wireless.delay_trace", "a radio supports only a constant delay"),
    ("emulator: sdr", "emulator: sdr\n    rate_trace: {steps: {0 s: 1 Mb/s}, period: 1 s}",
     "links.wireless.rate_trace", "the modem decides the rate of a radio, which is constant"),
    ("emulator: sdr", "emulator: sdr\n    forward: {shaped_by: switch}",
     "links.wireless.forward.shaped_by", "a switch cannot shape a radio"),
    ("emulator: sdr", "emulator: sdr\n    keep_order: true", "links.wireless.keep_order",
     "a radio always keeps packets in order; remove it"),
    ("emulator: sdr", "emulator: link\n    rate: 2 Mb/s", "links.wireless.radio",
     "`radio` on a link that is not `emulator: sdr`; write `emu"),
    ("queue: 1 bdp}", "queue: 1 bdp, forward: {radio: {snr: $snr}}}", "links.wired.forward.radio",
     "`radio` on a link that is not `emulator: sdr`"),
    ("queue: 1 bdp}", "queue: 1 bdp, emulator: sdr}", "links.wired",
     "`emulator: sdr` without a radio; add `radio: {modem: ofdm"),
    ("      rate: 2 Mbit\n", "", "links.wireless.radio",
     "no rate and no sample_rate; give one, such as `rate: 2 Mb/s`"),
    ("rate: 2 Mbit", "rate: 2 Mbit\n      sample_rate: 2 MHz", "links.wireless.radio.sample_rate",
     "rate and sample_rate are both given; remove one"),
    ("rate: 2 Mbit", "rate: 2 Gbit", "links.wireless.radio.rate",
     "the modem does not support this: no radio has more than 500 Msample/s; give another modem"),
    ("rate: 2 Mbit", "sample_rate: 0 Hz", "links.wireless.radio.sample_rate", "too small"),
    ("rate: 2 Mbit", "sample_rate: 2 Mb/s", "links.wireless.radio.sample_rate",
     "'Mb/s' is no unit of a sample rate; one of: Hz, kHz, MHz, GHz"),
    ("      snr: $snr\n", "      fading: {kind: rayleigh, doppler: $snr}\n",
     "matrix.snr.0", "'dB' is no unit of a Doppler spread; one of: Hz, kHz, MHz"),
    ("      snr: $snr\n", "      frequency_offset: 1 Hz\n    forward: {queue: $snr}\n",
     "matrix.snr.0", "not a queue size: '12 dB'"),
    ("snr: $snr", "snr: $snr\n      fading: rayleigh", "links.wireless.radio.fading",
     "fading rayleigh without its settings; write `{kind: rayleigh, doppler: 5 Hz}`"),
    ("snr: $snr", "snr: $snr\n      fading: {kind: rice, doppler: 5 Hz}",
     "links.wireless.radio.fading.kind", "unknown kind 'rice'; one of: none, rayl"),
    ("snr: $snr", "snr: $snr\n      fading: {kind: rician, doppler: 5 Hz}",
     "links.wireless.radio.fading", "missing key `k_factor`"),
    ("snr: $snr", "snr: $snr\n      fading: {kind: rayleigh, doppler: 5 Hz, k_factor: 6 dB}",
     "links.wireless.radio.fading.k_factor", "unknown key `k_factor`; known here: doppler, kind"),
    ("modulation: qpsk", "rate_adaptation: {kind: minstrel}", "links.wireless.radio.rate",
     "rate and rate_adaptation are both given; give `sample_rate`"),
    ("snr: $snr", "snr: $snr\n      multipath: []", "links.wireless.radio.multipath", ""),
    ("modulation: qpsk", "modulation: 256qam", "links.wireless.radio.modulation",
     "unknown value '256qam'; did you mean `64qam`? one of: bpsk"),
    ("radio: {snr: 30 dB}", "radio: {modem: ofdm}", "links.wireless.backward.radio.modem",
     "unknown key `modem`; known here: fading, frequency_offset, interference, multipath"),
    ("queue: 1 bdp}", "queue: 1 bdp, arq: {retries: 0, feedback: 1 ms}}", "links.wired.arq.retries",
     "0 is out of range; give 1 or more"),
    ("queue: 1 bdp}", "queue: 1 bdp, arq: {retries: 2, feedback: 0 ms}}",
     "links.wired.arq.feedback", "a duration of 0 ms is too small"),
    ("queue: 1 bdp}", "queue: 1 bdp, arq: {retries: 2, feedback: 1 ms}, "
     "loss: {model: bernoulli, rate: 1 %, at: ingress}}", "links.wired.arq",
     "ARQ does not see losses at ingress, before"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "key", "message"), REFUSED, ids=[str(r[1:3]) for r in REFUSED]
)
def test_what_a_radio_cannot_do_is_refused_with_its_place(tmp_path, old, new, key, message):
    with pytest.raises(InputError) as refused:
        plan_points(tmp_path, change_lines((old, new)))
    problem = refused.value.problems[0]
    assert problem.file.endswith("spec.yaml") and problem.line > 1
    assert problem.key == key, str(problem)
    assert message in str(problem)
    assert problem.cure


def test_an_snr_that_is_missing_is_asked_for(tmp_path):
    text = change_lines(("      snr: $snr\n", ""), ("title: A test", "title: $snr"))
    with pytest.raises(
        InputError, match=r"links\.wireless\.radio: no SNR in direction forward; add `snr: 12 dB"
    ):
        plan_points(tmp_path, text)


def test_arq_is_no_use_where_a_switch_loses_packets(tmp_path):
    text = change_lines(
        ("N: router", "N: switch"),
        ("queue: 20 packets", ARQ.replace("arq", "forward: {shaped_by: switch}\n    arq")),
        text=PLAIN,
    )
    with pytest.raises(
        InputError, match="the emulator's ARQ cannot repeat packets that a switch loses"
    ):
        plan_points(tmp_path, text)


def test_editors_take_what_nagi_takes(tmp_path):
    text = change_lines(
        ("queue: 20 packets", ARQ),
        ("snr: $snr", "snr: $snr\n      fading: none\n      multipath: "
         "[{delay: 0 ns, power: 0 dB}]\n      frequency_offset: -100 Hz"),
        ("{snr: 30 dB}", "{fading: {kind: rayleigh, doppler: 5 Hz}}"),
    )  # fmt: skip
    plan_points(tmp_path, text)
    schema = json.loads((SCHEMAS / "experiment.schema.json").read_text())
    data = YAML(typ="safe").load(text)
    jsonschema.validate(data, schema)
    for spoil in (
        lambda link: link["radio"].update(snr="12"),
        lambda link: link["radio"].update(fading="rice"),
        lambda link: link["radio"].update(by="hardware"),
        lambda link: link["backward"]["radio"].update(modem="ofdm"),
        lambda link: link.update(emulator="ns3"),
    ):
        spoilt = json.loads(json.dumps(data))
        spoil(spoilt["links"]["wireless"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, schema)


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("achievement-intro-radio",
         ["quick", "arq", "arq-quick", "fading", "fading-quick", "virtual-quick"]),
        ("westwoodvt-2007-radio", ["quick", "arq", "arq-quick"]),
    ],
)  # fmt: skip
def test_experiments_with_radios_can_be_planned(name, variants):
    for variant in (None, *variants):
        points = read_experiment(ROOT / "experiments" / f"{name}.yaml", variant)
        plans = [plan for point in points for plan in plan_runs(point, variant)]
        assert all(len(plan.carried_by("radio")) == 1 for plan in plans)
        assert {plan.flows[0].bottleneck_bps for plan in plans} == {2_000_000}
        if variant is not None and variant.endswith("quick"):
            assert sum(plan.timeline.end_s for plan in plans) / 2 < 500
        seen = {plan.link("wireless").forward.arq is not None for plan in plans}
        assert seen == {variant is not None and "arq" in variant}


@given(
    st.sampled_from(["ofdm", "single_carrier"]),
    st.sampled_from(["bpsk", "qpsk", "8psk", "16qam", "64qam"]),
    st.sampled_from(["none", "1/2", "2/3", "3/4"]),
    st.integers(1, 10**8),  # which all of them can do
)
def test_the_sample_rate_is_the_smallest_that_carries_the_rate(modem, modulation, code_rate, rate):
    sample_rate_hz = find_sample_rate(modem, modulation, code_rate, rate)
    assert load_air_time().compute_rate_bps(modem, modulation, sample_rate_hz, code_rate) >= rate
    if sample_rate_hz > 1:
        assert (
            load_air_time().compute_rate_bps(modem, modulation, sample_rate_hz - 1, code_rate)
            < rate
        )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Level, "12 dB", 12.0),
        (Level, "-3.5dB", -3.5),
        (FrequencyOffset, "-1.5 kHz", -1500.0),
        (DopplerSpread, "0.25 Hz", 0.25),
        (SampleRate, "2.5 MHz", 2_500_000),
    ],
)
def test_units_of_radios(kind, text, value):
    assert kind.parse(text).value == value
    assert kind.parse(str(kind.parse(text))).value == value
    assert re.fullmatch(kind.pattern, text)


@pytest.mark.parametrize(
    ("kind", "text", "complaint"),
    [
        (Level, "12", "12 has no unit; write it like '12 dB'"),
        (Level, "101 dB", "a level of 101 dB is out of range; give -100 dB to 100 dB"),
        (Level, "loud", "not a level: 'loud'"),
        (
            DopplerSpread,
            "-1 Hz",
            "a Doppler spread of -1 Hz is out of range; give 0 Hz to 1000000 Hz",
        ),
        (FrequencyOffset, "3 dB", "'dB' is no unit of a frequency offset; one of: Hz, kHz, MHz"),
        (SampleRate, "0.5 Hz", "0.5 Hz is no whole number of Hz; round it"),
    ],
)
def test_what_is_no_quantity_of_a_radio(kind, text, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        kind.parse(text)


@given(st.decimals(-100, 100, places=3))
def test_levels_are_read_back(value):
    level = Level(float(value))
    assert Level.parse(str(level)) == level


def test_axes_of_snr_keep_the_file_s_order(tmp_path):
    points = read_points(tmp_path)
    assert [point.values["snr"] for point in points] == ["12 dB"] * 2 + ["15.5 dB"] * 2
    assert RADIO.count("$snr") == 1


def test_interference_is_planned(tmp_path):
    second = """\
  other:
    between: [N, E]
    emulator: sdr
    delay: 20 ms
    queue: 20 packets
    radio: {modem: ofdm, modulation: qpsk, rate: 2 Mbit, snr: 20 dB}
"""

    def planned(one, *pairs):
        settings = f"snr: $snr\n      interference: [{one}]"
        text = change_lines(
            ("snr: $snr", settings),
            ("flows:\n", second + "flows:\n"),
            ("D: host", "D: host, E: host"),
        )
        return plan_points(tmp_path, change_lines(*pairs, text=text))[0].link("wireless").radio

    radio = planned("{link: other, carrier_to_interference: 6 dB}")
    expected = {"link": "other", "direction": "forward", "level_db": -6}
    assert [interferer.model_dump() for interferer in radio.forward.interference] == [expected]
    assert radio.backward.interference == radio.forward.interference
    level = "carrier_to_interference: 6 dB}"
    for one, pairs, message in (
        (f"{{link: wired, {level}", (), "there is no radio 'wired'"),
        (f"{{link: wireless, {level}", (), "wireless forward interferes with itself"),
        (f"{{link: other, {level}", (("2 Mbit, snr", "1 Mbit, snr"),), "different sample rates"),
        (f"{{link: other, {level}", (("2 Mbit, snr", "2 Mbit, by: virtual, snr"),), "by: simul"),
        (f"{{link: other, {level}", (("queue: 20 packets", ARQ.replace("8 ms", "3 ms")),),
         "feedback after 3 ms is too early with interference; give `feedback: 4 ms` or more"),
    ):  # fmt: skip
        with pytest.raises(InputError) as refused:
            planned(one, *pairs)
        assert message in str(refused.value)


def test_the_sample_clock_is_planned(tmp_path):
    def clock(text):
        pair = ("snr: $snr", f"snr: $snr\n      sample_clock: {text}")
        return plan_points(tmp_path, change_lines(pair))[0].link("wireless").radio

    radio = clock("{offset: -20 ppm, drift: 0.01 ppm/s}")
    assert radio.forward.sample_clock.model_dump() == {"offset_ppm": -20, "drift_ppm_s": 0.01}
    assert radio.backward.sample_clock == radio.forward.sample_clock
    for text, message in (
        ("{offset: 0.1 %}", "'%' is no unit of a clock offset; one of: ppm"),
        ("{offset: 300 ppm}", "out of range; give -200 ppm to 200 ppm"),
        ("{offset: 1 ppm, drift: 1 ppm}", "'ppm' is no unit of a clock drift"),
    ):
        with pytest.raises(InputError) as refused:
            clock(text)
        assert message in str(refused.value)


def test_rate_adaptation_is_planned_with_the_rates_of_its_modes(tmp_path):
    def adapting(adaptation, queue=ARQ):
        modem = f"      sample_rate: 2 MHz\n      rate_adaptation: {adaptation}\n"
        pairs = (
            ("      modulation: qpsk\n      rate: 2 Mbit\n", modem),
            ("queue: 20 packets", queue),
        )
        return plan_points(tmp_path, change_lines(*pairs))[0].link("wireless")

    table = "{kind: snr_table, table: {16qam 1/2: 12 dB, bpsk 1/2: 4 dB}}"
    wireless = adapting(table)
    assert wireless.radio.modulation is None
    modes = [(mode.modulation, mode.code_rate) for mode in wireless.radio.modes]
    assert modes == [("bpsk", "1/2"), ("16qam", "1/2")]  # by their rates
    planned = wireless.forward.rate_adaptation
    assert [mode.rate_bps for mode in planned.modes] == [600_000, 2_400_000]
    assert planned.min_snr_db == [4, 12]
    assert wireless.forward.rate_bps == 2_400_000
    for adaptation, queue, message in (
        (table, "queue: 20 packets", "rate adaptation without feedback; add `arq: "),
        (table.replace("12", "3"), ARQ, "16qam 1/2 needs less SNR than a slower mode"),
        ("{kind: minstrel, modes: [64qam]}", ARQ, "mode 64qam without a code rate"),
        ("{kind: minstrel, modes: [qpsk 1/2, qpsk 1/2]}", ARQ, "a mode is listed twice"),
    ):
        with pytest.raises(InputError) as refused:
            adapting(adaptation, queue)
        assert message in str(refused.value)
