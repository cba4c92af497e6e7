# SPDX-License-Identifier: Apache-2.0
"""Clocks of throw-away hosts, compared over a cable by chrony and PTP as provisioned.

These hosts may not set a clock, so both programs only compare clocks. All hosts have this machine's
clock, so the tests measure the error of the comparison.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from provisioning import Provision

# Packets take their time, and programs decide by their clocks.
pytestmark = [pytest.mark.slow, pytest.mark.realtime, pytest.mark.timeout(3600)]
TIMEOUT_S = 120.0
NODE = {"nagi_node": "S", "nagi_links": {"wired": "enp2s0"}}
EMULATOR = {"nagi_node": "emulator", "nagi_links": {"wired": {"S": "enp2s0", "N": "enp3s0"}}}
COMPARED = {"nagi_chrony_options": "-F 1 -x"}
CHRONY = {
    "alice": {**NODE, **COMPARED, "nagi_clock": "chrony", "nagi_ntp_servers": ["10.9.0.1"]},
    "heron": {**EMULATOR, **COMPARED, "nagi_clock": "chrony", "nagi_ntp_clients": ["10.9.0.0/30"]},
}
PTP = {
    "nagi_clock": "ptp",
    "nagi_ptp_interface": "mgmt0",
    "nagi_ptp_time_stamping": "software",
}
# ptp4l of Debian 12 goes on where it may not set the clock. A newer one has to be told, and does
# then not take its clock for calibrated.
FREE_RUNNING = {"bookworm": False, "trixie": True}
STATES = {False: "SLAVE", True: "UNCALIBRATED"}
ONLY = ("--tags", "clock")
# What keeps the clock of a host.
KEEPERS = r"""
find /etc/chrony /etc/linuxptp /etc/systemd -printf '%p %m %l\n' 2>&1 | sort
find /etc/chrony /etc/linuxptp /etc/systemd -type f -exec sha256sum {} + | sort -k 2
dpkg-query --show --showformat '${db:Status-Abbrev} ${Package}\n'
systemctl list-unit-files --no-legend --plain | awk '{print $1, $2}'
systemctl list-units --no-legend --plain --state=active --type=service \
    | awk '$1 != "dbus.service" {print $1}'
"""


@pytest.fixture(scope="module", params=FREE_RUNNING)
def release(request):
    return request.param


@pytest.fixture
def hosts(release, boot_host):
    """Boot a node and an emulator, with a cable in addition to the test interfaces."""
    machines = {"alice": boot_host(release), "heron": boot_host(release)}
    alice, heron = machines.values()
    alice.join("mgmt0", heron, "mgmt0")
    for name, interface in (("alice", "enp2s0"), ("heron", "enp2s0"), ("heron", "enp3s0")):
        machines[name].run(
            *("ip", "link", "add", interface, "type", "veth", "peer", "name", f"far-{interface}")
        )
    for machine, address in ((heron, "10.9.0.1/30"), (alice, "10.9.0.2/30")):
        machine.run("ip", "address", "add", address, "dev", "mgmt0")
        machine.run("ip", "link", "set", "mgmt0", "up")
    return machines


@pytest.fixture
def provision(hosts, tmp_path):
    return Provision(hosts, tmp_path)


def wait_for(what: str, look: Callable[[], object]) -> object:
    deadline = time.monotonic() + TIMEOUT_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"{what}: not within {TIMEOUT_S:.0f} s"
        time.sleep(0.5)
    return found


def test_clocks_are_compared_and_left_as_they_were(release, hosts, provision):
    alice, heron = hosts["alice"], hosts["heron"]
    before = {name: machine.run("sh", "-c", KEEPERS) for name, machine in hosts.items()}

    first = provision(*ONLY, **CHRONY)
    assert first.status == 0, first.output
    again = provision(*ONLY, **CHRONY)
    assert again.status == 0 and set(again.changed.values()) == {0}, again.output

    def selected() -> list[str]:
        lines = alice.run("chronyc", "-n", "-c", "sources").splitlines()
        return [line for line in lines if line.startswith("^,*,10.9.0.1,")]

    (source,) = wait_for("chrony selects the emulator", selected)
    _, _, _, stratum, _, reach, _, offset_s, *_ = source.split(",")
    assert stratum == "10" and int(reach, 8) > 0
    assert abs(float(offset_s)) < 0.1
    assert "10.9.0.2" in heron.run("chronyc", "-n", "clients")
    assert len(alice.run("chronyc", "-n", "-c", "sources").splitlines()) == 1

    free_running = FREE_RUNNING[release]
    chosen = PTP | {"nagi_ptp_free_running": free_running}
    ptp = {"alice": NODE | chosen, "heron": EMULATOR | chosen}
    changed = provision(*ONLY, **ptp)
    assert changed.status == 0, changed.output
    again = provision(*ONLY, **ptp)
    assert again.status == 0 and set(again.changed.values()) == {0}, again.output
    for machine in hosts.values():
        assert machine.fail("systemctl", "is-active", "chrony", "systemd-timesyncd") == ""
        assert "nagi-phc" not in machine.run("ls", "/etc/systemd/system")

    def follows() -> dict[str, str] | None:
        said = alice.run(
            *("pmc", "-u", "-b", "0", "-f", "/etc/linuxptp/nagi.conf"),
            *("GET PORT_DATA_SET", "GET CURRENT_DATA_SET", "GET PARENT_DATA_SET"),
        )
        found = dict(re.findall(r"^\s+(\w+)\s+(\S+)$", said, re.M))
        measured = float(found.get("meanPathDelay", "0")) > 0
        return found if measured and found["portState"] == STATES[free_running] else None

    found = wait_for("ptp follows the emulator", follows)
    assert found["stepsRemoved"] == "1"
    assert found["grandmasterPriority1"] == "127"
    assert abs(float(found["offsetFromMaster"])) < 1e8  # ns

    none = {"alice": NODE, "heron": EMULATOR}
    left = provision(*ONLY, **none)
    assert left.status == 0, left.output
    after = {name: machine.run("sh", "-c", KEEPERS) for name, machine in hosts.items()}
    assert after == before
