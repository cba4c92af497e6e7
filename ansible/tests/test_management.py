# SPDX-License-Identifier: Apache-2.0
"""Provisioning never locks a host out, however the host is reached."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from typing import Any

import pytest
from managed_hosts import CARD, NODES, ManagedHosts
from snapshots import list_differences

pytestmark = pytest.mark.timeout(900)
# What provisioning may change at the network of a host.
STATE = r"""
find /etc -newermt '1 hour ago' -type f -printf '%p %m %s\n' | sort
ip -oneline address show scope global | sed 's, *valid_lft.*,,'
for card in eno1 enp2s0; do ethtool -k $card; cat /proc/sys/net/ipv6/conf/$card/disable_ipv6; done
"""


@pytest.fixture(scope="module")
def hosts(boot_host):
    with ManagedHosts({name: boot_host() for name in NODES}) as hosts:
        yield hosts


def read_states(hosts: ManagedHosts) -> dict[str, list[str]]:
    return {
        name: machine.run("sh", "-c", STATE).splitlines()
        for name, machine in hosts.machines.items()
    }


def lab(hosts: ManagedHosts, command: str, *options: str, status: int | None = 0) -> str:
    return hosts.run("lab", command, "-i", hosts.inventory, *options, status=status)


def read_outcomes(output: str) -> dict[str, Any]:
    """Return host -> outcome from the output of `nagi lab --json`, which follows Ansible's."""
    report = json.loads(output[output.index('{\n "schema') :])
    return {host["host"]: host for host in report["hosts"]}


def test_the_management_interface_is_refused_as_a_test_interface(hosts):
    """Give the management card of every host as its test interface: the first NIC of the wrong."""
    hosts.write_inventory(CARD)
    before = read_states(hosts)
    output = lab(hosts, "provision", "--json", status=1)
    result = read_outcomes(output)
    reached_by = {
        "ivy": "eno1 has the address 2001:db8:77::11, by which this host is reached",
        "alan": "eno1 has the address 192.0.2.12, by which this host is reached",
        "sam": "eno1 has the address 192.0.2.13, by which this host is reached",
        "omar": "eno1 has the address 192.0.2.14, by which this host is reached",
        "heron": "eno1 is below vmbr0, which has the address 192.0.2.15, by which this host is "
        "reached",
        "june": "eno1 has the address 198.51.100.16, by which this host is reached",
    }
    for name, reason in reached_by.items():
        assert result[name]["status"] == "refused", output
        assert f"nagi_links: {reason}; a test interface must be used" in result[name]["what"]
        assert result[name]["changed"] == []
    assert list_differences(before, read_states(hosts)) == []


def test_every_host_is_reached_by_the_key(hosts):
    hosts.write_inventory()
    key = ("--key", str(hosts.home / "id_ed25519"))
    assert "\n6 hosts reached by the key\n" in lab(hosts, "bootstrap", *key)
    assert lab(hosts, "bootstrap", *key).count("nothing to change") == 6


# A card whose firmware takes all its ports down when offloads change. It recovers when the earlier
# offloads are set again.
CARD_WITH_A_FAULT = """
case "$1 $*" in
-K*off*) ip link set eno1 down ;;
-K*on*) ip link set eno1 up ;;
esac
exec /usr/sbin/ethtool.real "$@"
"""


@pytest.mark.slow
def test_a_host_that_the_changes_cut_off_comes_back_by_itself(hosts):
    hosts.write_inventory(nagi_watchdog_s=30)
    alan = hosts.machines["alan"]
    before = read_states(hosts)
    alan.run("mv", "/usr/sbin/ethtool", "/usr/sbin/ethtool.real")
    fault = f"printf '%s' '#!/bin/sh{CARD_WITH_A_FAULT}' >/usr/sbin/ethtool"
    alan.run("sh", "-c", f"{fault}; chmod 755 /usr/sbin/ethtool")
    output = lab(hosts, "provision", "--json", "--tags", "test_interfaces", status=1)
    assert read_outcomes(output)["alan"]["status"] == "unreachable", output
    # The play ends for all hosts, so the others undo their changes too.
    deadline = time.monotonic() + 60
    while difference := list_differences(before, read_states(hosts)):
        assert time.monotonic() < deadline, difference
        time.sleep(0.5)

    alan.run("mv", "/usr/sbin/ethtool.real", "/usr/sbin/ethtool")
    provisioned = lab(hosts, "provision", "--tags", "test_interfaces")
    assert "\n6 hosts provisioned\n" in provisioned
    assert "tcp-segmentation-offload: off" in alan.run("ethtool", "-k", "enp2s0")
    again = lab(hosts, "provision", "--tags", "test_interfaces")
    assert again.count("nothing to change") == 6, again
    # Since then, sam's operator uses the card for something else. Its journal would set it down.
    sam = hosts.machines["sam"]
    sam.run("ip", "route", "add", "default", "dev", "enp2s0")
    removed = " ".join(lab(hosts, "deprovision", "--yes").split())
    stays = "enp2s0: its settings were not restored: it has the default route (IPv4)"
    assert f"stays: {stays}" in removed
    assert "6 hosts restored, except what stays on 1 of them" in removed
    assert "UP" in sam.run("ip", "link", "show", "enp2s0")
    difference = list_differences(before, read_states(hosts))
    assert [line for line in difference if not line.startswith("sam: ")] == []


@pytest.mark.slow
def test_one_host_is_provisioned_once_at_a_time(hosts):
    """Refuse a second call. One that was killed does not block the next of its controller."""
    hosts.write_inventory()
    alan = hosts.machines["alan"]
    only = ("--limit", "alan", "--tags", "packages")
    alan.run("mkfifo", "/run/begin")
    apt = "#!/bin/sh\\necho >/run/begin; exec sleep 1000\\n"
    alan.run("sh", "-c", f"printf '{apt}' >/usr/local/sbin/dpkg-query")
    alan.run("chmod", "755", "/usr/local/sbin/dpkg-query")
    first = hosts.start("lab", "provision", "-i", hosts.inventory, *only)
    alan.run("cat", "/run/begin")
    refused = read_outcomes(lab(hosts, "provision", "--json", *only, status=1))["alan"]
    said = r"the host is reserved by experimenter@\S+ for provisioning; wait until it has ended"
    assert re.search(said, refused["what"]), refused
    refused = read_outcomes(lab(hosts, "deprovision", "--yes", "--json", *only[:2], status=1))
    assert re.search(said, refused["alan"]["what"]), refused

    for process, command in hosts.list_processes().items():
        if "nagi.testbed.provision" in command:
            os.kill(process, signal.SIGKILL)
    first.communicate()
    alan.run("rm", "/usr/local/sbin/dpkg-query")
    alan.run("pkill", "-f", "sleep 1000")
    alan.run("flock", "/var/lib/nagi-testbed/lock", "true")  # the module of the first call ends
    assert "1 host provisioned" in lab(hosts, "provision", *only)
    assert "1 host as they were" in lab(hosts, "deprovision", "--yes", *only[:2])
    alan.fail("ls", "-d", "/run/nagi-testbed")
    alan.fail("ls", "-d", "/var/lib/nagi-testbed")
