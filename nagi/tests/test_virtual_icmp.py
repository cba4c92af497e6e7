# SPDX-License-Identifier: Apache-2.0
"""traceroute and path MTU discovery through a switch, in virtual time."""

from __future__ import annotations

import subprocess

import pytest
from marks import in_virtual_time
from nagi_contracts.paths import executable
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.switches import Switches
from probed_topology import SPEC, expected
from switched_runs import needs_bmv2, needs_nagi_switch

pytestmark = [needs_nagi_switch, *in_virtual_time]


@pytest.fixture(
    scope="module", params=["nagi", pytest.param("bmv2", marks=needs_bmv2)], ids=["nagi", "bmv2"]
)
def runs(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest):
    """Provide the directories of valid runs, by the version of IP."""
    directory = tmp_path_factory.mktemp("icmp")
    spec, out = directory / "spec.yaml", directory / "out"
    spec.write_text(SPEC)
    arguments = ["--lab", "virtual", "--out", out, "--switch", request.param]
    command = [executable("nagi"), "run", spec, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = Campaign.read(out / "campaign.json").runs
    return {each.point["ip"]: out / "runs" / each.run_id for each in listed}


@pytest.mark.parametrize("ip", ["4", "6"])
def test_every_hop_and_every_mtu_is_found(runs, ip):
    said = (runs[ip] / "command-client.probe.log").read_text().splitlines()
    assert said == expected(ip)


@pytest.mark.parametrize("ip", ["4", "6"])
def test_the_account_knows_what_was_answered(runs, ip):
    (switch,) = Switches.read(runs[ip] / "switches.json").switches
    assert switch.told == {"last hop": 1, "too big": 2} and switch.from_controller == 3
    assert switch.drops == {}
    checks = {each.name: each for each in Verdict.read(runs[ip] / "verdict.json").checks}
    assert checks["unaccounted"].value == 0 and checks["switch_drops"].value == 0
