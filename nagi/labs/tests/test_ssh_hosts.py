# SPDX-License-Identifier: Apache-2.0
"""The hosts of ssh_hosts.py behave as documented, and real Ansible reaches them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from nagi.labs.ansible_runs import CONFIGURATION
from nagi_contracts import paths
from ssh_hosts import CELLS, MANAGEMENT, SshHosts, require_ssh_hosts, ssh_hosts

__all__ = ["ssh_hosts"]


def run_ansible(hosts: SshHosts, *arguments: str, status: int = 0) -> str:
    """Run a module on all hosts, with nagi's configuration (pipelining), and return the output."""
    return hosts.run(
        *("-i", hosts.inventory, "--one-line", *arguments),
        program="ansible",
        status=status,
        ANSIBLE_CONFIG=str(CONFIGURATION),
        ANSIBLE_TIMEOUT="3",
    )


def test_ansible_reaches_hosts_that_share_nothing(ssh_hosts):
    output = run_ansible(ssh_hosts, "-m", "ping", "cells")
    assert [output.count(f"{host} | SUCCESS") for host in ssh_hosts.hosts] == [1, 1, 1, 1]

    # Each host has its own files, name and processes, and none of the machine's.
    run_ansible(ssh_hosts, "-m", "copy", "-a", "content=mine dest=/var/lib/nagi/mark", "alice")
    assert ssh_hosts.enter("alice", "cat", "/var/lib/nagi/mark") == "mine"
    for host in ("bob", "carol", "heron"):
        assert not ssh_hosts.enter(host, "ls", "/var/lib/nagi")
    assert not Path("/var/lib/nagi/mark").exists()
    assert ssh_hosts.enter("bob", "hostname") == "bob\n"
    for directory in (paths.ROOT, sys.prefix, "/root", "/tmp"):
        assert not ssh_hosts.enter("bob", "ls", directory, status=None)
    assert str(os.getpid()) not in ssh_hosts.enter("bob", "ps", "-e", "-o", "pid=").split()

    # Nobody has configured the test interfaces.
    listing = json.loads(ssh_hosts.enter("heron", "ip", "-json", "address"))
    cards = {card["ifname"]: card for card in listing}
    assert set(cards) == {"lo", "eno1", "enp2s0", "enp3s0", "enp4s0", "enp5s0"}
    for name, card in cards.items():
        if name.startswith("enp"):
            assert card["operstate"] == "DOWN" and not card["addr_info"]
            assert "tcp-segmentation-offload: on" in ssh_hosts.enter("heron", "ethtool", "-k", name)


def test_cables_join_the_cards_that_the_inventory_says(ssh_hosts):
    for host, card, address in (("bob", "enp3s0", "10.0.0.1"), ("heron", "enp4s0", "10.0.0.2")):
        ssh_hosts.enter(host, "ip", "address", "add", f"{address}/24", "dev", card)
        ssh_hosts.enter(host, "ip", "link", "set", card, "up")
    ping = ("ping", "-c", "1", "-W", "2", "10.0.0.2")
    assert "1 received" in ssh_hosts.enter("bob", *ping)
    before = ssh_hosts.read_snapshot("bob")
    ssh_hosts.unplug("bob", "radio")
    assert ssh_hosts.read_snapshot("bob") != before
    assert "1 received" not in ssh_hosts.enter("bob", *ping, status=None)
    ssh_hosts.plug("bob", "radio")
    assert ssh_hosts.read_snapshot("bob") == before


def test_the_controller_is_an_ordinary_user(ssh_hosts):
    listing = subprocess.run(
        ssh_hosts.command("sh", "-c", "id -un; id -u; cd; pwd; ls /sys/class/net; cat /etc/shadow"),
        capture_output=True,
        text=True,
        check=False,
    )
    cards = ["alice", "bob", "bridge", "carol", "heron", "lo"]
    assert listing.stdout.split() == ["experimenter", "20077", str(ssh_hosts.home), *cards]
    assert "Permission denied" in listing.stderr
    assert "cubic" in ssh_hosts.run("schemes")
    process = ssh_hosts.start("-m", "pause", "-a", "seconds=60", "localhost", program="ansible")
    os.kill(ssh_hosts.find_pid(process), signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_hosts_that_are_not_in_order():
    require_ssh_hosts()
    cells = CELLS | {"bench2": {"S": "dan", "N": "eve", "D": "fay", "emulator": "grus"}}
    odd = {"without_root": ["alice"], "wrong_key": ["bob"], "down": ["carol"]}
    with SshHosts(cells=cells, **odd) as hosts:
        output = run_ansible(hosts, "-m", "command", "-a", "id -un", "cells", status=4)
        answers = dict(line.split(" | ", 1) for line in output.splitlines() if " | " in line)
        assert answers["alice"].endswith("(stdout) visitor")
        assert "Permission denied (publickey)" in answers["bob"]
        assert "UNREACHABLE" in answers["carol"]
        for host in ("heron", *cells["bench2"].values()):
            assert answers[host].endswith("(stdout) root")

        hosts.plug("carol", MANAGEMENT)
        hosts.stop_sshd("heron")
        output = run_ansible(hosts, "-m", "ping", "carol:heron", status=4)
        assert "carol | SUCCESS" in output and "heron | UNREACHABLE" in output
        assert hosts.processes("heron") == {}
        hosts.start_sshd("heron")
        run_ansible(hosts, "-m", "ping", "heron")
        assert any("sshd: root" in command for command in hosts.processes("heron").values())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for namespaces: run `sudo make test`")
def test_nothing_of_them_outlives_the_test():
    require_ssh_hosts()
    before = {entry.name for entry in Path("/sys/class/net").iterdir()}
    with SshHosts() as hosts:
        run_ansible(hosts, "-m", "ping", "cells")
        directory = hosts.home.parent
        pids = [pid for host in hosts.hosts for pid in hosts.processes(host)]
        assert pids and directory.exists()
    assert not directory.exists()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert {entry.name for entry in Path("/sys/class/net").iterdir()} == before
