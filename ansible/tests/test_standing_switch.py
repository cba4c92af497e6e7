# SPDX-License-Identifier: Apache-2.0
"""A host becomes a permanent switch, and then an ordinary host again.

test_switch_role.py has the slow tests.
"""

from __future__ import annotations

import json

import pytest
from nagi_contracts.paths import P4
from provisioning import Provision

HOST = {"nagi_node": "R", "nagi_links": {"wired": "enp2s0"}}
SWITCH = HOST | {
    "nagi_switch_target": "nagi",
    "nagi_switch_pipeline": str(P4 / "edge.json"),
    "nagi_switch_ports": [{"number": 1, "interface": "enp2s0", "rate_bps": 10_000_000}],
}
UNIT = "nagi-switch@switch.service"
OWN = "find /etc /usr/local ! -name '*-' -printf '%p %m %u %g %l\n' | sort"


@pytest.fixture
def host(boot_host):
    machine = boot_host()
    machine.run(*["ip", "link", "add", "enp2s0", "type", "veth", "peer", "name", "far"])
    return machine


def test_a_host_becomes_a_switch_and_is_none_again(host, tmp_path):
    provision = Provision({"relay": host}, tmp_path)
    before = host.run("sh", "-c", OWN)
    first = provision("--tags", "switch", relay=SWITCH)
    assert first.status == 0, first.output
    assert host.run("systemctl", "is-active", UNIT) == "active\n"
    account = json.loads(host.run("nagi-switch", "show", "/run/nagi-switch/switch/socket"))
    assert [port["interface"]["interface"] for port in account["ports"]] == ["enp2s0"]
    removed = provision("--tags", "switch", relay=HOST)
    assert removed.status == 0, removed.output
    assert "active" not in host.run("systemctl", "list-units", "--plain", "--no-legend", UNIT)
    back = provision.deprovision()
    assert back.status == 0, back.output
    assert host.run("sh", "-c", OWN) == before
