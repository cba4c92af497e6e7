# SPDX-License-Identifier: Apache-2.0
"""Check that the settings of ns-3 for a chain of 802.11 correspond to the plan."""

from __future__ import annotations

import argparse
import importlib.util
import json

import pytest
from bench_medium import REACHES, TRAFFIC, make_spec
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT
from nagi_contracts.plan import RunPlan
from ns3_chain import MODULES, VARIANTS, make_model_settings, make_settings
from ns3_program import compile_program, run_program

SOURCE = ROOT / "link-emulator" / "bench" / "medium" / "chain.cpp"


def plan_of(tmp_path, *changes: tuple[str, str], traffic="udp", hops=3, reach="sinr") -> RunPlan:
    """Return a plan at 2 Mb/s with RTS."""
    given = argparse.Namespace(seconds=6, repeats=1, reach=reach)
    text = make_spec(traffic, hops, ["yes", "no"], given)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "spec.yaml").write_text(text)
    return plan_runs(read_experiment(tmp_path / "spec.yaml", None)[0], None)[0]


@pytest.mark.parametrize("reach", REACHES)
def test_stations_and_frames_are_those_of_the_plan(tmp_path, reach):
    plan = plan_of(tmp_path, reach=reach)
    settings = make_settings(plan)
    assert (settings["hops"], settings["reach"]["spacing_m"]) == (3, 200)
    assert (settings["data_mode"], settings["control_mode"]) == ("DsssRate2Mbps", "DsssRate1Mbps")
    assert settings["uses_rts"]
    assert (settings["retry_limits"]["short"], settings["retry_limits"]["long"]) == (7, 4)
    assert settings["queue_packets"] == 51  # the one that is being sent is one of them
    assert (settings["warmup_ns"], settings["duration_ns"]) == (2 * 10**9, 6 * 10**9)
    assert settings["reach"]["noise_figure_db"] == pytest.approx(7.05, abs=0.01)
    # Decoded at 200 m, sensed at 400 m, neither at 600 m.
    medium = plan.medium("air")
    assert medium.decodes("n0", "n1") and not medium.decodes("n0", "n2")
    assert medium.senses("n0", "n2") and not medium.senses("n0", "n3")
    assert json.loads(json.dumps(settings)) == settings


def test_without_rts_and_by_tcp(tmp_path):
    threshold = "rts_threshold: [0 bytes, 2346 bytes]", "rts_threshold: [2346 bytes]"
    assert not make_settings(plan_of(tmp_path, threshold))["uses_rts"]
    tcp = make_settings(plan_of(tmp_path, traffic="newreno, 8"))["tcp"]
    # The profile ns2: an initial window of one segment, and every segment acknowledged.
    assert (tcp["initial_window"], tcp["segments_an_ack"]) == (1, 1)
    assert tcp["receive_buffer_bytes"] == 8 * tcp["segment_bytes"] == 8 * 1448


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("phy: 802.11b", "phy: 802.11b\n    queue: {discipline: codel}"), "cannot run this queue"),
        ((f"reach: {REACHES['sinr']}", "reach: {by: ranges}"), "only 802.11b"),
        (("n2: {at: [400 m, 0 m]}", "n2: {at: [390 m, 0 m]}"), "no chain"),
        (("basic_rate", "preamble: short\n    basic_rate"), "long preamble"),
    ],
)  # fmt: skip
def test_what_ns_3_cannot_do_is_refused(tmp_path, change, said):
    changes = [change]
    if "preamble" in change[1]:
        changes.append(("basic_rate: 1 Mb/s", "basic_rate: 2 Mb/s"))
    with pytest.raises(InputError, match=said):
        make_settings(plan_of(tmp_path, *changes))


def test_the_model_has_nagis_own_medium(tmp_path):
    plan = plan_of(tmp_path, traffic=next(iter(TRAFFIC)))
    medium = make_model_settings(plan, make_settings(plan))["medium"]
    assert [station["position_m"] for station in medium["stations"]] == [
        [200.0 * index, 0.0] for index in range(4)
    ]
    assert medium["data_rate_bps"] == 2_000_000 and "name" not in medium


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ns3") is None, reason="no ns-3: `make ns3`")
def test_ns_3_takes_as_long_for_an_exchange_as_the_standard_says(tmp_path):
    program = compile_program(SOURCE, MODULES, tmp_path / "chain")
    plan = plan_of(tmp_path, hops=1)
    medium = plan.medium("air")
    exchange_s = (medium.exchange_ns(1460 + 28) + 15.5 * 20_000) / 1e9  # and half a window of slots
    expected = 1460 * 8 / exchange_s
    for variant in ("as nagi", "no delay", "own errors"):
        found = run_program(program, make_settings(plan, variant), tmp_path / f"{variant}.json")
        assert found["goodput_bps"] == pytest.approx(expected, rel=0.02), variant
        assert found["outcomes"]["0>1"]["DATA"].keys() == {"received"}
    # An ACK of 14 bytes at 2 Mb/s takes 56 us less.
    assert "faster ACKs" in VARIANTS
    found = run_program(program, make_settings(plan, "faster ACKs"), tmp_path / "faster.json")
    faster = 1460 * 8 / (exchange_s - 56e-6)
    assert found["goodput_bps"] == pytest.approx(faster, rel=0.003)
