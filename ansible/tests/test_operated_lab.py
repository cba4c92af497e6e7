# SPDX-License-Identifier: Apache-2.0
"""The life of a lab, as its operator sees it: provisioned, used, broken, mended and given back."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from controller import wait_while_running
from kernels import needs_our_schemes
from managed_hosts import NODES, ManagedHosts
from nagi_contracts.records import Verdict
from snapshots import list_differences, read_states

# Fresh hosts are provisioned from nothing, and the runs are in real time.
pytestmark = [pytest.mark.slow, pytest.mark.realtime, pytest.mark.timeout(1800)]
SPEC = """\
schema_version: 1
name: operated
title: Two senders, a router and two receivers
seed: 7
nodes: {S: host, A: host, N: router, B: host, D: host}
links:
  left: {between: [S, N], rate: 10 Mb/s, delay: 4 ms, queue: 1 bdp}
  side: {between: [A, N], rate: 10 Mb/s, delay: 4 ms, queue: 1 bdp}
  spare: {between: [N, B], rate: 10 Mb/s, delay: 4 ms, queue: 1 bdp}
  radio: {between: [N, D], rate: $capacity, delay: 4 ms, queue: 1 bdp}
flows:
  bulk: {from: S, to: D, scheme: $scheme}
  cross: {from: A, to: B, scheme: reno}
host_profile: ns2
max_window: 18 packets
duration: 3 s
warmup: 1 s
matrix:
  capacity: [2 Mb/s, 4 Mb/s]
  scheme: [cubic]
report: {x: capacity}
"""
EDIT = "# The operator's own words.\n"


@needs_our_schemes
def test_a_lab_is_provisioned_used_broken_mended_and_given_back(boot_host):
    machines = {name: boot_host("bookworm") for name in NODES}
    with ManagedHosts(machines) as hosts:
        hosts.write_inventory(nagi_clock="chrony", nagi_chrony_options="-F 1 -x")
        spec, out = hosts.home / "operated.yaml", hosts.home / "out"
        spec.write_text(SPEC)
        before = read_states(machines)

        # Provisioned, at the second try.
        process = hosts.start("lab", "provision", "-i", hosts.inventory)
        manifest = ("sh", "-c", "test -e /var/lib/nagi-testbed/manifest.json && echo yes || echo")
        wait_while_running(lambda: "yes" in machines["alan"].run(*manifest), process, 200)
        os.kill(hosts.find_pid(process), signal.SIGINT)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 130, said
        said = lab(hosts, "provision")
        assert "\n6 hosts provisioned\n" in said
        said = lab(hosts, "provision")
        assert said.count("nothing to change") == 6, said
        said = hosts.run("doctor", "-i", hosts.inventory)
        assert "\nready" in said, said
        # From here on, with nagi-agent in /run.
        provisioned = read_states(machines)

        # Used, while a host falls silent and comes back.
        process = start_campaign(hosts, spec, out)
        wait_while_running(lambda: has_process(hosts, "alan", "nagi-traffic"), process, 200)
        hosts.unplug("alan")
        said, _ = process.communicate(timeout=300)
        assert "lost alan: no answer over SSH" in " ".join(said.split()), said
        assert process.returncode == 1, said
        hosts.plug("alan")
        process = start_campaign(hosts, spec, out)
        said, _ = process.communicate(timeout=400)
        assert process.returncode == 0, said
        assert "2 runs: 2 valid" in said
        assert read_statuses(out) == ["valid", "valid"]
        difference = list_differences(provisioned, read_states(machines))
        assert difference == []

        # Given back, with what the operator wrote since then.
        machines["omar"].run("sh", "-c", f"printf '%s' \"{EDIT}\" >>/etc/chrony/chrony.conf")
        edited = machines["omar"].run("cat", "/etc/chrony/chrony.conf")
        said = " ".join(lab(hosts, "deprovision", "--yes").split())
        kept = "/etc/chrony/chrony.conf: the file was edited since package chrony came"
        assert said.count("stays: ") == 1 and f"stays: {kept}" in said, said
        assert "6 hosts restored, except what stays on 1 of them" in said
        assert machines["omar"].run("cat", "/etc/chrony/chrony.conf") == edited
        difference = list_differences(before, read_states(machines))
        assert [line for line in difference if "etc/chrony" not in line] == []
        assert all(line.startswith("omar: +") for line in difference), difference


def lab(hosts: ManagedHosts, command: str, *options: str) -> str:
    return hosts.run("lab", command, "-i", hosts.inventory, *options)


def start_campaign(hosts: ManagedHosts, spec: Path, out: Path):
    return hosts.start("run", spec, "-i", hosts.inventory, "--out", out, "--tries", "8")


def has_process(hosts: ManagedHosts, name: str, program: str) -> bool:
    found = "cat /proc/[0-9]*/comm 2>/dev/null; true"
    return program in hosts.machines[name].run("sh", "-c", found)


def read_statuses(out: Path) -> list[str]:
    return [Verdict.read(path).status for path in out.glob("runs/*/verdict.json")]
