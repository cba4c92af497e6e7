# SPDX-License-Identifier: Apache-2.0
"""Campaigns on hosts that are only SSH addresses, from a controller without root."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sysconfig
import tempfile
import time
from pathlib import Path

import pytest
from controller import wait_while_running
from kernels import needs_our_schemes
from nagi_contracts.doctor import Doctor
from nagi_contracts.inspection import Holder
from nagi_contracts.paths import P4, P4_CONTROL, executable
from nagi_contracts.records import Manifest, Verdict
from nagi_contracts.switches import Switches
from specs import two_links
from ssh_hosts import CELLS, MANAGEMENT, SshHosts, require_ssh_hosts, ssh_hosts

__all__ = ["ssh_hosts"]
pytestmark = [pytest.mark.realtime, pytest.mark.timeout(900)]
TWO_CELLS = CELLS | {"bench2": {"S": "dora", "N": "emil", "D": "fred", "emulator": "ibis"}}
SPEC = two_links(
    "small",
    "rate: 10 Mb/s, delay: 8 ms",
    "rate: $capacity, delay: 2 ms, queue: 1 bdp",
    "scheme: $scheme",
    """\
host_profile: ns2
max_window: 18 packets
duration: 2 s
warmup: 1 s
matrix:
  capacity: [2 Mb/s, 4 Mb/s]
  scheme: [newreno, tahoe]
report: {x: capacity}
""",
)


def spec_for(hosts: SshHosts, text: str = SPEC):
    path = hosts.home / "small.yaml"
    path.write_text(text)
    return path


def snapshots(hosts: SshHosts) -> dict:
    return {name: hosts.read_snapshot(name) for name in hosts.hosts}


def start(hosts: SshHosts, out, *arguments):
    spec = spec_for(hosts)
    return hosts.start("run", spec, "-i", hosts.inventory, "--out", out, "--tries", "8", *arguments)


def run(hosts: SshHosts, out, *arguments, status: int | None = 0) -> str:
    process = start(hosts, out, *arguments)
    said, _ = process.communicate(timeout=400)
    assert status is None or process.returncode == status, said
    return said


def verdicts(out) -> dict[str, str]:
    found = [Verdict.read(path) for path in out.glob("runs/*/verdict.json")]
    return {verdict.run_id: verdict.status for verdict in found}


def holder(hosts: SshHosts, host: str) -> Holder | None:
    text = hosts.enter(host, "cat", "/run/nagi/holder.json", status=None)
    return Holder.model_validate_json(text) if text else None


def leaves_nothing(hosts: SshHosts, before: dict) -> None:
    for host, now in snapshots(hosts).items():
        assert {k: v for k, v in now.items() if v != before[host][k]} == {}, host
    for host in hosts.hosts:
        assert holder(hosts, host) is None
        assert not hosts.enter(host, "ls", "/var/lib/nagi")
        ours = [p for p in hosts.processes(host).values() if "nagi" in p]
        assert not ours


@needs_our_schemes
@pytest.mark.slow
def test_cells_share_a_campaign_and_are_as_before_when_it_is_over():
    require_ssh_hosts()
    with SshHosts(cells=TWO_CELLS) as hosts:
        before = snapshots(hosts)
        out = hosts.home / "out"
        said = run(hosts, out)
        assert "setting up the physical lab for 2 runs side by side" in said
        assert "4 runs: 4 valid" in said
        assert "s per run for orchestration" in said
        manifests = [Manifest.read(path) for path in out.glob("runs/*/manifest.json")]
        assert {manifest.lab for manifest in manifests} == {"physical"}
        assert {manifest.cell for manifest in manifests} == {"bench1", "bench2"}
        leaves_nothing(hosts, before)
        # The second call of nagi needs no new setup.
        assert "setting up" not in run(hosts, out)


@pytest.mark.slow
@needs_our_schemes
def test_a_host_can_be_a_switch(ssh_hosts):
    before = snapshots(ssh_hosts)
    out = ssh_hosts.home / "out"
    spec = SPEC.replace("N: router", "N: switch").replace(
        "queue: 1 bdp}\nflows", "queue: 1 bdp, forward: {shaped_by: switch}}\nflows"
    )
    path = spec_for(ssh_hosts, spec)
    choice = ["--only", "capacity=4 Mb/s", "--only", "scheme=newreno", "--tries", "8"]
    process = ssh_hosts.start("run", path, "-i", ssh_hosts.inventory, "--out", out, *choice)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0 and "1 run: 1 valid" in said, said
    (directory,) = [each for each in (out / "runs").iterdir() if ".invalid-" not in each.name]
    (switch,) = Switches.read(directory / "switches.json").switches
    assert switch.target == "nagi" and switch.ports[1].counters.sent > 0
    leaves_nothing(ssh_hosts, before)


@pytest.mark.slow
def test_a_host_s_switch_runs_a_program_of_one_s_own_with_its_controller(ssh_hosts):
    before = snapshots(ssh_hosts)
    out = ssh_hosts.home / "out"
    for name in ("router.json", "router_controller.py"):
        shutil.copyfile(P4 / "examples" / name, ssh_hosts.home / name)
    node = (
        "N: {switch: {program: router.json, controller: python3 router_controller.py, "
        "files: [router_controller.py]}}"
    )
    path = spec_for(ssh_hosts, SPEC.replace("N: router", node).replace("tahoe", "cubic"))
    choice = ["--only", "capacity=4 Mb/s", "--only", "scheme=cubic", "--tries", "8"]
    process = ssh_hosts.start("run", path, "-i", ssh_hosts.inventory, "--out", out, *choice)
    said, _ = process.communicate(timeout=400)
    assert process.returncode == 0 and "1 run: 1 valid" in said, said
    (directory,) = [each for each in (out / "runs").iterdir() if ".invalid-" not in each.name]
    assert "N: 2 routes\n198.18.1.2/32: " in (directory / "N.controller.log").read_text()
    leaves_nothing(ssh_hosts, before)


@pytest.fixture
def brought():
    """Provide a directory with the packages that hosts would have installed.

    The hosts see this directory, but neither the checkout nor its Python.
    """
    with tempfile.TemporaryDirectory(prefix="nagi-test-", dir="/var/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        installed = Path(sysconfig.get_path("purelib"))
        for package in ("finsy", "google", "grpc", "parsy", "pyee"):
            shutil.copytree(installed / package, directory / package)
        shutil.copy(installed / "typing_extensions.py", directory)
        for package in ("nagi_p4", "nagi_p4runtime"):
            shutil.copytree(P4_CONTROL / package, directory / package)
        shutil.copy(executable("nagi-switch"), directory)
        shutil.copy(P4 / "edge.json", directory)
        yield directory


SERVE = """
{brought}/nagi-switch run /run/switch.json &
for i in $(seq 300); do test -e /run/switch.sock && break; sleep 0.1; done
PYTHONPATH={brought} /usr/bin/python3 -m nagi_p4runtime --switch nagi:/run/switch.sock
wait
"""


@pytest.mark.slow
def test_a_host_s_switch_is_reached_by_p4runtime(brought):
    """Use nagi-switch behind nagi-p4runtime, which both run before and after the campaign."""
    require_ssh_hosts()
    numbers = {"wired": 17, "radio": 400}
    with SshHosts() as hosts:
        inventory = hosts.make_inventory()
        bob = inventory["all"]["children"]["cells"]["children"]["bench1"]["hosts"]["bob"]
        access = {"address": "127.0.0.1:9559", "ports": numbers, "modules": str(brought)}
        bob["nagi_p4runtime"] = access
        hosts.write_inventory(inventory)
        ports = [
            {"number": number, "interface": bob["nagi_links"][link]}
            for link, number in numbers.items()
        ]
        settings = {
            "schema_version": 1,
            "seed": 1,
            "pipeline": str(brought / "edge.json"),
            "control_socket": "/run/switch.sock",
            "ports": ports,
        }
        hosts.enter("bob", "sh", "-c", f"echo '{json.dumps(settings)}' >/run/switch.json")
        (brought / "serve").write_text(SERVE.format(brought=brought))
        hosts.enter("bob", "sh", "-c", f"sh {brought}/serve >/run/log 2>&1 </dev/null &")
        wait = "for i in $(seq 300); do grep -q 'device 1 at' /run/log && exit; sleep 0.1; done"
        hosts.enter("bob", "sh", "-c", wait)
        out = hosts.home / "out"
        path = spec_for(hosts, SPEC.replace("N: router", "N: switch").replace("tahoe", "cubic"))
        choice = ["--only", "capacity=4 Mb/s", "--only", "scheme=cubic", "--tries", "8"]
        process = hosts.start(
            "run", path, "-i", hosts.inventory, "--switch", "p4runtime", "--out", out, *choice
        )
        said, _ = process.communicate(timeout=400)
        log = hosts.enter("bob", "cat", "/run/log")
        assert process.returncode == 0 and "1 run: 1 valid" in said, said + log
        (directory,) = [each for each in (out / "runs").iterdir() if ".invalid-" not in each.name]
        (switch,) = Switches.read(directory / "switches.json").switches
        assert switch.version == "the switch at 127.0.0.1:9559"
        assert [port.number for port in switch.ports] == [1, 2]
        assert switch.ports[1].counters.sent > 100


@pytest.mark.slow
@needs_our_schemes
def test_whatever_ends_the_controller_no_run_is_lost_and_the_same_command_goes_on(ssh_hosts):
    before = snapshots(ssh_hosts)
    out = ssh_hosts.home / "out"
    # Interrupted, it lets the hosts go.
    process = start(ssh_hosts, out)
    wait_while_running(
        lambda: ssh_hosts.enter("carol", "pgrep", "nagi-traffic", status=None), process, 90
    )
    os.kill(ssh_hosts.find_pid(process), signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command continues" in said
    leaves_nothing(ssh_hosts, before)

    # A killed nagi cannot collect records; the hosts keep the records of finished runs.
    process = start(ssh_hosts, out)
    records = "/var/lib/nagi/*/runs/*/node.json"
    wait_while_running(
        lambda: ssh_hosts.enter("heron", "sh", "-c", f"ls {records}", status=None), process, 90
    )
    os.kill(ssh_hosts.find_pid(process), signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    held = holder(ssh_hosts, "alice")
    assert held is not None and held.owner.startswith("experimenter@")

    # Somebody else is refused, with who has the hosts; nothing of theirs is touched.
    said = " ".join(run(ssh_hosts, ssh_hosts.home / "other", status=2).split())
    assert held.owner in said and "small" in said and "alice" in said
    assert not (ssh_hosts.home / "other").exists()
    # ... unless they take the hosts by force.
    ssh_hosts.run("down", "-i", ssh_hosts.inventory, "--force")
    assert holder(ssh_hosts, "alice") is None
    for host, now in snapshots(ssh_hosts).items():
        assert now == before[host]

    said = run(ssh_hosts, out)
    assert "4 runs: 4 valid" in said
    # What was over on the hosts when the controller died was brought and not run again.
    assert said.split("setting up")[0].count(": valid") + said.count("invalid") >= 1
    leaves_nothing(ssh_hosts, before)


@needs_our_schemes
@pytest.mark.slow
def test_a_cell_that_is_lost_leaves_its_runs_to_the_others():
    require_ssh_hosts()
    with SshHosts(cells=TWO_CELLS) as hosts:
        out = hosts.home / "out"
        process = start(hosts, out)
        wait_while_running(
            lambda: hosts.enter("fred", "pgrep", "nagi-traffic", status=None), process, 90
        )
        hosts.stop_sshd("fred")
        said, _ = process.communicate(timeout=300)
        assert "continuing without bench2" in " ".join(said.split()), said
        # The run that fred was executing is repeated by the other cell.
        statuses = list(verdicts(out).values())
        assert len(statuses) == 4 and "failed" not in statuses, said
        assert process.returncode == 0


@needs_our_schemes
@pytest.mark.slow
def test_a_host_that_falls_silent_is_named_soon():
    """Nobody closes its connections: the cable of its management network is pulled."""
    require_ssh_hosts()
    with SshHosts(cells=TWO_CELLS) as hosts:
        process = start(hosts, hosts.home / "out")
        wait_while_running(
            lambda: hosts.enter("fred", "pgrep", "nagi-traffic", status=None), process, 90
        )
        hosts.unplug("fred", MANAGEMENT)
        begin_s = time.monotonic()
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "lost fred: no answer over SSH" in line:
                break
        assert time.monotonic() - begin_s < 20, said  # 12 s, and time for a busy machine
        rest, _ = process.communicate(timeout=300)
        assert "continuing without bench2" in " ".join(rest.split()), rest
        assert process.returncode == 0


@pytest.mark.slow
def test_hosts_that_cannot_do_it_are_refused_by_name_before_anything_is_run():
    require_ssh_hosts()
    with SshHosts(without_root=["alice"], wrong_key=["bob"]) as hosts:
        hosts.stop_sshd("carol")
        before = snapshots(hosts)
        out = hosts.home / "out"
        said = " ".join(run(hosts, out, status=2).split())
        assert "alice" in said and "not root" in said and "become" in said
        assert "bob" in said and "Permission denied (publickey)" in said
        assert "carol" in said and "Connection refused" in said
        assert not out.exists()
        assert snapshots(hosts) == before


@pytest.mark.slow
def test_what_only_a_look_at_hosts_can_show_is_refused_by_name(ssh_hosts):
    inventory = ssh_hosts.make_inventory()
    cell = inventory["all"]["children"]["cells"]["children"]["bench1"]["hosts"]
    cell["alice"]["nagi_links"] = {"wired": "enp9s0"}
    cell["bob"]["nagi_links"]["radio"] = "eno1"
    ssh_hosts.write_inventory(inventory)
    # A machine of its own, as another boot id says, whose clock is ahead.
    ssh_hosts.enter("carol", "sh", "-c", "echo 00000000-0000-4000-8000-000000000000 > /run/boot_id")
    ssh_hosts.enter("carol", "mount", "--bind", "/run/boot_id", "/proc/sys/kernel/random/boot_id")
    ssh_hosts.enter("carol", "mv", "/usr/bin/date", "/usr/bin/real-date")
    wrapper = """printf '#!/bin/sh\\nexec real-date -d "5 seconds" "$@"\\n' > /usr/bin/date"""
    ssh_hosts.enter("carol", "sh", "-c", f"{wrapper}; chmod 755 /usr/bin/date")
    out = ssh_hosts.home / "out"
    said = " ".join(run(ssh_hosts, out, status=2).split())
    assert "alice" in said and "enp9s0" in said
    assert "bob" in said and "eno1" in said
    assert "carol" in said and "clock" in said
    assert not out.exists()


@pytest.mark.slow
def test_doctor_finds_hosts_fit_and_cables_swapped(ssh_hosts):
    before = snapshots(ssh_hosts)
    said = ssh_hosts.run("doctor", "-i", ssh_hosts.inventory, "--json")
    doctor = Doctor.model_validate_json(said)
    assert doctor.count("failure") == 0
    stages = {finding.stage: finding for finding in doctor.findings if finding.status == "ok"}
    for stage in ("ssh", "versions", "kernel", "paths", "mtu", "capture", "emulator", "disk"):
        assert stage in stages
    spec = spec_for(ssh_hosts)
    said = ssh_hosts.run("plan", spec, "-i", ssh_hosts.inventory)
    assert "4 runs, 4 of them possible in the physical lab; about " in " ".join(said.split())
    leaves_nothing(ssh_hosts, before)

    inventory = ssh_hosts.make_inventory()
    emulator = inventory["all"]["children"]["cells"]["children"]["bench1"]["hosts"]["heron"]
    links = emulator["nagi_links"]
    links["wired"]["N"], links["radio"]["N"] = links["radio"]["N"], links["wired"]["N"]
    ssh_hosts.write_inventory(inventory)
    said = ssh_hosts.run("doctor", "-i", ssh_hosts.inventory, status=2)
    assert "no answer from N on link wired" in " ".join(said.split())
    assert "not ready" in said


@pytest.mark.slow
def test_a_topology_is_kept_up_for_ones_own_programs(ssh_hosts):
    before = snapshots(ssh_hosts)
    said = ssh_hosts.run("up", spec_for(ssh_hosts), "-i", ssh_hosts.inventory)
    assert "198.18.1.2/30" in said
    ping = ("ping", "-q", "-c", "3", "-i", "0.2", "198.18.1.2")
    said = ssh_hosts.run("shell", "S", "--", *ping)
    rtt = float(said.split("= ")[1].split("/")[0])
    assert 20 <= rtt < 25, said  # 8 and 2 ms each way
    assert "small is up already" in ssh_hosts.run(
        "up", spec_for(ssh_hosts), "-i", ssh_hosts.inventory, status=2
    )
    ssh_hosts.run("down")
    leaves_nothing(ssh_hosts, before)
    assert "no topology is up" in ssh_hosts.run("shell", "S", status=2)
