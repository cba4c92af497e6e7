# SPDX-License-Identifier: Apache-2.0
"""traceroute and path MTU discovery through a switch, in virtual time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from marks import in_virtual_time
from nagi_contracts.paths import executable
from nagi_contracts.records import Campaign, Verdict
from nagi_contracts.switches import Switches
from switched_runs import needs_nagi_switch

pytestmark = [needs_nagi_switch, *in_virtual_time]

PROBE = Path(__file__).with_name("probe.py")
# A kernel's router (R) in front of the switch (N): what the switch does, is what a router does.
SPEC = f"""\
schema_version: 1
name: icmp
title: Probes through a switch
seed: 6
ip_version: $ip
nodes: {{S: host, R: router, N: switch, D: host}}
links:
  near: {{between: [S, R], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets}}
  middle: {{between: [R, N], rate: 100 Mb/s, delay: 5 ms, queue: 100 packets, mtu: 1400 bytes}}
  far:
    between: [N, D]
    rate: 10 Mb/s
    delay: 5 ms
    queue: 60 packets
    mtu: 1300 bytes
    forward: {{shaped_by: switch}}
flows:
  probe:
    from: S
    to: D
    scheme: cubic
    payload: 1208 bytes
    traffic: command
    client: [python3, {PROBE}, '{{receiver}}', '{{port}}', 1500, 1400, 1301, 1300]
duration: 5 s
matrix: {{ip: [4, 6]}}
report: {{x: ip, series: ip}}
"""
ADDRESSES = {
    "4": ["198.18.0.2", "198.18.1.2", "198.18.2.2"],
    "6": ["fd6e:6167:6900::2", "fd6e:6167:6900:1::2", "fd6e:6167:6900:2::2"],
}
# Types and codes: time exceeded, port unreachable, too big.
EXCEEDED, UNREACHABLE = {"4": "11 0", "6": "3 0"}, {"4": "3 3", "6": "1 4"}
TOO_BIG = {"4": "3 4", "6": "2 0"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("icmp")
    spec, out = directory / "spec.yaml", directory / "out"
    spec.write_text(SPEC)
    command = [executable("nagi"), "run", spec, "--lab", "virtual", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    listed = Campaign.read(out / "campaign.json").runs
    return {each.point["ip"]: out / "runs" / each.run_id for each in listed}


@pytest.mark.parametrize("ip", ["4", "6"])
def test_every_hop_and_every_mtu_is_found(runs, ip):
    router, switch, host = ADDRESSES[ip]
    said = (runs[ip] / "command-client.probe.log").read_text().splitlines()
    assert said == [
        f"1 {router} {EXCEEDED[ip]}",
        f"2 {switch} {EXCEEDED[ip]}",
        f"3 {host} {UNREACHABLE[ip]}",
        f"mtu {router} {TOO_BIG[ip]} 1400",
        f"mtu {switch} {TOO_BIG[ip]} 1300",
        f"mtu {switch} {TOO_BIG[ip]} 1300",
        f"mtu {host} {UNREACHABLE[ip]} 0",
    ]


@pytest.mark.parametrize("ip", ["4", "6"])
def test_the_account_knows_what_was_answered(runs, ip):
    (switch,) = Switches.read(runs[ip] / "switches.json").switches
    assert switch.told == {"last hop": 1, "too big": 2} and switch.from_controller == 3
    assert switch.drops == {}
    checks = {each.name: each for each in Verdict.read(runs[ip] / "verdict.json").checks}
    assert checks["unaccounted"].value == 0 and checks["switch_drops"].value == 0
