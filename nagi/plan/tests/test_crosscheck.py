# SPDX-License-Identifier: Apache-2.0
"""Check that the settings of ns-3 correspond to the plan."""

from __future__ import annotations

import importlib.util
import json
import subprocess

import pytest
from crosscheck import compile_simulator
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT
from nagi_contracts.plan import RunPlan
from ns3_settings import COUNTERPARTS, make_ns3_settings

SPEC = ROOT / "experiments" / "crosscheck" / "achievement.yaml"


def plan_of(tmp_path, *changes: tuple[str, str], scheme: str = "sack") -> RunPlan:
    """Return the first plan of a scheme at a loss rate of 1 %."""
    text = SPEC.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / "spec.yaml").write_text(text)
    return next(
        plan
        for point in read_experiment(tmp_path / "spec.yaml", None)
        for plan in plan_runs(point, None)
        if (plan.point["scheme"], plan.point["error_rate"]) == (scheme, "1 %")
    )


def test_links_and_hosts_are_those_of_the_plan(tmp_path):
    plan = plan_of(tmp_path)
    settings = make_ns3_settings(plan)
    wired, wireless = settings["hops"]
    assert wired["there"]["rate_bps"] == wired["back"]["rate_bps"] == 100_000_000
    assert (wireless["there"]["rate_bps"], wireless["there"]["delay_ns"]) == (10**7, 5 * 10**6)
    assert wireless["there"]["loss_probability"] == 0.01
    assert wireless["back"]["loss_probability"] == wired["there"]["loss_probability"] == 0
    queue = plan.link("wireless").forward.queue
    assert queue is not None and wireless["there"]["queue_packets"] == queue.packets
    assert settings["duration_ns"] == 60 * 10**9 and settings["warmup_ns"] == 0
    # The profile ns2: an initial window of one segment, and every segment acknowledged.
    assert (settings["tcp"]["initial_window"], settings["tcp"]["segments_an_ack"]) == (1, 1)
    assert json.loads(json.dumps(settings)) == settings


def test_linux_hosts_delay_acks_and_begin_with_ten_segments(tmp_path):
    tcp = make_ns3_settings(plan_of(tmp_path, ("host_profile: ns2", "host_profile: linux")))["tcp"]
    assert (tcp["initial_window"], tcp["segments_an_ack"]) == (10, 2)


@pytest.mark.parametrize("scheme", COUNTERPARTS)
def test_a_scheme_uses_sack_in_both_or_in_neither(tmp_path, scheme):
    plan = plan_of(tmp_path, scheme=scheme)
    sysctls = plan.node("S").sysctls
    assert (sysctls["net.ipv4.tcp_sack"] == "1") == make_ns3_settings(plan)["tcp"]["sack"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("duration: 60 s", "duration: 60 s\nmax_window: 9 packets"), "no cap on windows"),
        (("payload: 1000 bytes", "payload: 1000 bytes, traffic: {application: cbr, rate: 1 Mb/s}"),
         "exactly one flow, with bulk traffic"),
        (("delay: 5 ms\n    queue: 1 bdp", "delay: 5 ms\n    queue: {discipline: codel}"),
         "ns-3's queue is drop-tail"),
        (("delay: 5 ms", "delay: 5 ms\n    jitter: {distribution: uniform, half_width: 1 ms}"),
         "no constant rate and delay"),
        (("links:\n  wired: {between: [S, N], rate: 100 Mb/s, delay: 45 ms, queue: 1 bdp}",
          "media:\n  air: {phy: 802.11b, data_rate: 11 Mb/s, stations: "
          "{S: {at: [0 m, 0 m]}, N: {at: [9 m, 0 m]}}}\nlinks:"),
         "the flow crosses a shared medium"),
    ],
)  # fmt: skip
def test_what_ns_3_cannot_do_is_refused(tmp_path, change, said):
    with pytest.raises(InputError, match=said):
        make_ns3_settings(plan_of(tmp_path, change))


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ns3") is None, reason="no ns-3: `make bench-crosscheck` installs it"
)
def test_ns_3_fills_a_link_without_losses(tmp_path):
    plan = plan_of(tmp_path)
    settings = make_ns3_settings(plan) | {"duration_ns": 10 * 10**9, "warmup_ns": 4 * 10**9}
    settings["hops"][1]["there"]["loss_probability"] = 0
    given = tmp_path / "settings.json"
    given.write_text(json.dumps(settings))
    program = compile_simulator(tmp_path / "program")
    done = subprocess.run([program, given], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    # 1,000 bytes of 1,054 on the wire.
    assert found["goodput_bps"] == pytest.approx(10e6 * 1000 / 1054, rel=0.02)
    given.write_text("{}")
    done = subprocess.run([program, given], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and str(given) in done.stderr
