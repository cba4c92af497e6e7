# SPDX-License-Identifier: Apache-2.0
"""Provisioning of real hosts by the playbook, as engineers run it, with throw-away hosts."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time

import pytest
from nagi.labs.host_pool import APART
from nagi_contracts.paths import AGENT, P4, ROOT
from provisioning import Provision

# Hosts boot, and are provisioned from nothing.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
HOST = {"nagi_node": "S", "nagi_links": {"wired": "enp2s0"}}
EMULATOR = {"nagi_node": "emulator", "nagi_links": {"wired": {"S": "enp2s0", "N": "enp3s0"}}}
PROVISIONED = EMULATOR | {"nagi_capture_group": "capture", "nagi_congestion_controls": ["reno"]}
SWITCH = HOST | {
    "nagi_switch_target": "nagi",
    "nagi_switch_pipeline": str(P4 / "edge.json"),
    "nagi_switch_entries": str(P4 / "tests/programs/edge.entries.jsonl"),
    "nagi_switch_ports": [{"number": 1, "interface": "enp2s0", "rate_bps": 10_000_000}],
}
# What provisioning may change.
STATE = """
find /etc /usr/local /var/lib/nagi /run/nagi /usr/bin/tcpdump -printf '%p %m %u %g %s %T@\\n' 2>&1
for interface in enp2s0 enp3s0; do
    ethtool -k $interface
    ethtool -l $interface
    cat /proc/sys/net/ipv6/conf/$interface/disable_ipv6
done 2>&1
getcap /usr/bin/tcpdump
cat /proc/irq/default_smp_affinity
"""
# What deprovisioning must restore, except the copies that tools for accounts keep (`passwd-`).
CONTENT = r"""
for place in /etc /usr/local /var/lib/nagi* /run/nagi /usr/bin/tcpdump; do
    find $place ! -name '*-' -printf '%p %m %u %g %l\n'
done 2>&1 | sort
find /etc /usr/local -type f ! -name '*-' -exec sha256sum {} + | sort
systemctl list-units --all --plain --no-legend --type=service '*nagi*' | grep -v not-found
for interface in enp2s0 enp3s0; do
    ethtool -k $interface
    ethtool -l $interface
    cat /proc/sys/net/ipv6/conf/$interface/disable_ipv6
done 2>&1
getcap /usr/bin/tcpdump
dpkg-statoverride --list
cat /proc/irq/default_smp_affinity
"""


@pytest.fixture(scope="module")
def hosts(boot_host):
    """Boot a host and an emulator, with the default queues, offloads and IPv6 of interfaces."""
    machines = {"alice": boot_host(), "heron": boot_host()}
    for name, interface in (("alice", "enp2s0"), ("heron", "enp2s0"), ("heron", "enp3s0")):
        queues = "numtxqueues 2 numrxqueues 2"
        machines[name].run(
            *f"ip link add {interface} {queues} type veth peer name far-{interface}".split()
        )
        machines[name].run("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=0")
    return machines


@pytest.fixture(scope="module")
def provision(hosts, tmp_path_factory):
    return Provision(hosts, tmp_path_factory.mktemp("ansible"))


@pytest.fixture(scope="module")
def provisioned(provision):
    """Provision the emulator and a switch for the first time."""
    return provision(heron=PROVISIONED, alice=SWITCH)


@pytest.fixture
def emulator(hosts, provisioned):
    """Return the provisioned emulator."""
    assert provisioned.status == 0, provisioned.output
    return hosts["heron"]


def test_check_mode_on_fresh_hosts_says_everything_and_changes_nothing(hosts, provision):
    before = {name: machine.run("sh", "-c", STATE) for name, machine in hosts.items()}
    # With what is missing here, as on a fresh host: it would need a package server.
    chrony = {"nagi_clock": "chrony"}
    outcome = provision("--check", "--diff", alice=SWITCH | chrony, heron=EMULATOR | chrony)
    assert outcome.status == 0, outcome.output
    assert outcome.changed["alice"] > 5 and outcome.changed["heron"] > 5
    for expected in (
        r"^package chrony$",
        r"\+GenericReceiveOffload=no",
        r"\+AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN CAP_BPF CAP_SYS_NICE CAP_IPC_LOCK",
        r"\+-net/ipv6/conf/enp2s0/disable_ipv6 = 1",
    ):
        assert re.search(expected, outcome.output, re.M), f"{expected}: {outcome.output}"
    assert {name: machine.run("sh", "-c", STATE) for name, machine in hosts.items()} == before


def test_the_first_run_provisions_and_the_second_changes_nothing(provisioned, provision, emulator):
    assert provisioned.changed["heron"] > 5
    state = emulator.run("sh", "-c", STATE)
    offloads = "tx-checksumming|(tcp-segmentation|generic-(segmentation|receive))-offload"
    assert len(re.findall(rf"^({offloads}): off$", state, re.M)) == 2 * 4, state
    assert len(re.findall(r"settings:\nRX:\s+1\nTX:\s+1\n", state)) == 2, state
    assert emulator.run("sh", "-c", "cat /proc/sys/net/ipv6/conf/enp?s0/disable_ipv6") == "1\n1\n"
    assert ":/nonexistent:/usr/sbin/nologin" in emulator.run("getent", "passwd", "nagi")
    assert "root capture 750" in emulator.run("stat", "-c", "%U %G %a", "/usr/bin/tcpdump")
    link = emulator.run("cat", "/etc/systemd/network/10-nagi-enp2s0.link")
    assert re.search(r"^MACAddress=[0-9a-f:]{17}$", link, re.M) and "RxChannels=1\nTxCh" in link

    second = provision(heron=PROVISIONED, alice=SWITCH)
    assert second.status == 0, second.output
    assert second.changed == {"heron": 0, "alice": 0, "localhost": 0}, second.output
    assert emulator.run("sh", "-c", STATE) == state


def test_units_are_what_systemd_wants(emulator):
    units = emulator.run("sh", "-c", "ls /etc/systemd/system/nagi-*").split()
    assert len(units) == 2
    assert emulator.run("systemd-analyze", "verify", *units) == ""
    assert emulator.run("systemctl", "is-enabled", "nagi-interrupts") == "enabled\n"


def test_interrupts_stay_off_the_processor_of_nagi_link(emulator):
    last = int(re.findall(r"\d+", emulator.run("cat", "/sys/devices/system/cpu/online"))[-1])
    mask = int(emulator.run("cat", "/proc/irq/default_smp_affinity").replace(",", ""), 16)
    assert mask == (1 << last) - 1 or last == 0
    drop_in = emulator.run("cat", "/etc/systemd/system/irqbalance.service.d/nagi.conf")
    assert f"\nEnvironment=IRQBALANCE_BANNED_CPULIST={last}\n" in drop_in


def test_interrupts_of_a_card_are_moved(emulator):
    online = emulator.run("cat", "/sys/devices/system/cpu/online").strip()
    # A card with two interrupts, in place of what the kernel says of its interfaces.
    script = """
        mount -t tmpfs none /sys/class/net
        mkdir -p /sys/class/net/card/device/msi_irqs
        for number in 40 41; do
            touch /sys/class/net/card/device/msi_irqs/$number
            mkdir -p /proc/irq/$number
        done
        nagi-interrupts 0 card && cat /proc/irq/4[01]/smp_affinity
    """
    said = emulator.run("unshare", "--mount", "sh", "-c", script)
    if online == "0":
        assert "there is only one processor" in said
    else:
        masks = re.fullmatch(r"card: 2 of 2 interrupts kept off processor 0\n(.+)", said)
        assert masks and int(masks[1][: len(masks[1]) // 2].replace(",", ""), 16) & 1 == 0


def test_members_of_the_group_may_capture_and_others_not(emulator):
    emulator.run("useradd", "--groups", "capture", "eve")
    emulator.run("useradd", "mallory")
    capture = "tcpdump -i lo -c 2 -w /dev/null & while kill -0 $!; do ping -c 1 127.0.0.1; done"
    seen = emulator.run("runuser", "-u", "eve", "--", "sh", "-c", f"{{ {capture}; }} 2>&1")
    assert "2 packets captured" in seen
    said = emulator.fail("runuser", "-u", "mallory", "--", "tcpdump", "--version")
    assert "Permission denied" in said


def test_a_permanent_emulator_has_what_it_needs_and_no_more(emulator):
    directions = {"rate_bps": 10**8, "delay_ns": 10**6, "queue": {"packets": 100}}
    configuration = {
        "schema_version": 1,
        "seed": 1,
        "account": "account.json",
        "control_socket": "/run/nagi-link/bench/socket",
        "links": [
            {
                "name": "wired",
                "id": 1,
                "a": "enp2s0",
                "b": "enp3s0",
                "forward": directions,
                "backward": directions,
            }
        ],
    }
    emulator.run("sh", "-c", f"echo '{json.dumps(configuration)}' >/etc/nagi/bench.json")
    emulator.run("systemctl", "start", "nagi-link@bench")
    pid = emulator.run("systemctl", "show", "--property=MainPID", "--value", "nagi-link@bench")
    show = "until nagi-link show /run/nagi-link/bench/socket; do sleep 0.05; done 2>/dev/null"
    account = json.loads(emulator.run("timeout", "10", "sh", "-c", show))
    assert account["scheduling"] == "SCHED_FIFO" and account["memory_locked"]
    assert account["links"][0]["a"]["io"].startswith("af_xdp")
    assert account["links"][0]["a"]["offloads_switched_off"] == []
    status = emulator.run("cat", f"/proc/{pid.strip()}/status")
    assert re.search(r"^CapEff:\t0+5000$", status, re.M)  # CAP_NET_ADMIN and CAP_IPC_LOCK
    assert not re.search(r"^Uid:\t0\b", status, re.M)
    emulator.run("systemctl", "stop", "nagi-link@bench")
    assert json.loads(emulator.run("cat", "/var/lib/nagi-link/bench/account.json"))["complete"]


def test_a_permanent_switch_has_what_it_needs_and_nobody_else_reaches_it(emulator, hosts):
    alice, socket = hosts["alice"], "/run/nagi-switch/switch/socket"
    account = json.loads(alice.run("nagi-switch", "show", socket))
    assert account["scheduling"] == "SCHED_FIFO" and account["memory_locked"]
    (port,) = account["ports"]
    assert port["number"] == 1 and port["queue"]["rate_bps"] == 10_000_000
    assert port["interface"]["io"].startswith("af_xdp")
    assert alice.run("stat", "-c", "%U %a", socket) == "nagi 600\n"
    assert alice.run("ss", "-Hltun") == ""
    assert alice.run("systemctl", "is-enabled", "nagi-switch@switch") == "enabled\n"
    units = "/etc/systemd/system/nagi-switch@.service"
    assert alice.run("systemd-analyze", "verify", units) == ""


def test_agents_are_units_of_their_own(emulator, tmp_path):
    """Check that an agent started over SSH survives the end of connection and session."""
    agent, state = "/root/nagi-agent.pyz", "/run/nagi"
    made = tmp_path / "nagi-agent.pyz"
    subprocess.run([sys.executable, AGENT / "bundle.py", made], check=True)
    emulator.copy(made, agent)
    batch = {"schema_version": 1, "node": "S", "is_emulator": False, "interfaces": {}, "runs": []}
    batch |= {
        "spool": "/root/runs",
        "state": state,
        "user": "nobody",
        "nagi_link": "",
        "virtual": False,
    }
    batch |= {"collected": []}
    holder = {"owner": "me", "campaign": "test", "token": "mine", "since_s": 0}
    holder["expires_s"] = time.time() + 60
    emulator.run("sh", "-c", f"echo '{json.dumps(batch)}' >/root/batch.json")
    command = [*APART, "/usr/bin/python3", agent, "hold", "/root/batch.json", json.dumps(holder)]
    assert json.loads(emulator.run(*command)) == {"restored": False}
    listed = "systemctl list-units --plain --no-legend nagi-agent-*.scope"
    (scope,) = emulator.run(*listed.split()).splitlines()
    guard = json.loads(emulator.run("cat", f"{state}/holder.json"))["guard"]
    assert scope.split()[0] in emulator.run("cat", f"/proc/{guard}/cgroup")
    emulator.run("/usr/bin/python3", agent, "release", "/root/batch.json")
    ends = f"while systemctl --quiet is-active {scope.split()[0]}; do sleep 0.05; done"
    emulator.run("timeout", "10", "sh", "-c", ends)


def test_an_emulator_that_becomes_a_node_loses_what_it_had_and_deprovision_the_rest(
    boot_host, tmp_path
):
    """Files (to the byte), accounts, units, interfaces and interrupts are restored."""
    machine = boot_host()
    for interface in ("enp2s0", "enp3s0"):
        queues = "numtxqueues 2 numrxqueues 2"
        machine.run(
            *f"ip link add {interface} {queues} type veth peer name far-{interface}".split()
        )
        machine.run("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=0")
    machine.run("sh", "-c", "mkdir -p /etc/nagi; echo mine >/etc/nagi/mine.json")
    before = machine.run("sh", "-c", CONTENT)
    provision = Provision({"robin": machine}, tmp_path)

    assert provision(robin=PROVISIONED).status == 0
    machine.run("sh", "-c", "echo '{}' >/etc/nagi/bench.json; systemctl enable nagi-link@bench")
    changed = provision(robin=SWITCH)
    assert changed.status == 0, changed.output
    own = machine.run("sh", "-c", "ls /etc/systemd/system /usr/local/bin /usr/local/sbin /etc/nagi")
    assert "nagi-switch@" in own and "mine.json" in own
    for gone in ("nagi-interrupts", "irqbalance", "nagi-link"):
        assert gone not in own, own
    assert machine.run("systemctl", "is-active", "nagi-switch@switch") == "active\n"
    assert provision(robin=SWITCH).changed["robin"] == 0

    checked = provision.deprovision("--check", "--diff")
    assert checked.changed["robin"] == 1 and "restore: unit nagi-switch@switch" in checked.output
    assert machine.run("systemctl", "is-active", "nagi-switch@switch") == "active\n"
    back = provision.deprovision()
    assert back.status == 0, back.output
    machine.run("rm", "/etc/nagi/bench.json")
    assert machine.run("sh", "-c", CONTENT) == before
    assert provision.deprovision().changed["robin"] == 0


@pytest.mark.parametrize("role", ["service_user", "processors", "switch"])
def test_killed_in_the_middle_a_second_run_completes_it(boot_host, tmp_path, role):
    machine = boot_host()
    machine.run("ip", "link", "add", "enp2s0", "type", "veth", "peer", "name", "enp3s0")
    before = machine.run("sh", "-c", CONTENT)
    provision = Provision({"robin": machine}, tmp_path)
    running = provision.start(robin=SWITCH)
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith(f"TASK [nagi.testbed.{role} : Have") or "Keep processors" in line:
            break
    else:
        pytest.fail("it ended before it was killed")
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    completed = provision(robin=SWITCH)
    assert completed.status == 0, completed.output
    assert provision(robin=SWITCH).changed["robin"] == 0
    assert provision.deprovision().status == 0
    assert machine.run("sh", "-c", CONTENT) == before


def test_a_host_that_a_campaign_holds_is_left_alone(boot_host, tmp_path):
    machine = boot_host()
    machine.run("ip", "link", "add", "enp2s0", "type", "veth", "peer", "name", "far")
    holder = {"owner": "ada@desk", "campaign": "fairness", "token": "x", "since_s": 0}
    holder |= {"expires_s": 2_000_000_000, "guard": 1}
    text = json.dumps(holder)
    machine.run("sh", "-c", f"mkdir -p /run/nagi; echo '{text}' >/run/nagi/holder.json")
    holding = machine.command("flock", "/run/nagi/lock", "sh", "-c", "echo held; read line")
    provision = Provision({"robin": machine}, tmp_path)
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guard:
        assert guard.stdin and guard.stdout and guard.stdout.readline() == b"held\n"
        for outcome in (provision(robin=HOST), provision.deprovision()):
            assert outcome.status != 0 and outcome.changed["robin"] == 0
            assert (
                "the host is reserved by ada@desk (fairness), until 2033-05-18 03:33 UTC"
                in outcome.output
            )
            assert "nagi down -i INVENTORY --force" in outcome.output
        guard.stdin.close()
    assert provision.deprovision().status == 0


MISSING = {
    "node": ({}, "missing required arguments: nagi_node"),
    "links": ({"nagi_links": "enp2s0"}, "'nagi_links' is of type str and we were unable"),
}
CHOICES = {"clock": ({"nagi_clock": "sundial"}, "value of nagi_clock must be one of: chrony, ptp")}
LINKS = {
    "link": ({"nagi_links": {"wired": None}}, "nagi_links.wired: null is not the name of an inter"),
    "ends": ({"nagi_node": "emulator"}, "nagi_links.wired: .*enp2s0.* is not two nodes with the"),
}
TOGETHER = {
    "twice": (
        {"nagi_links": {"wired": "enp2s0", "radio": "enp2s0"}, "nagi_node": ""},
        "nagi_links: give at least one link, and use each interface for one link only",
    ),
    "ptp": ({"nagi_clock": "ptp"}, "nagi_ptp_interface: nagi_clock is ptp; name the interface"),
    "built": (
        EMULATOR | {"nagi_link_source": "/proc/nowhere/nagi-link"},
        "nagi_link_source: /proc/nowhere/nagi-link does not exist; run `make` first",
    ),
    "between": (
        EMULATOR | {"nagi_switch_target": "bmv2"},
        "nagi_switch_target: the emulator cannot be a switch",
    ),
    "shipped": (
        {"nagi_switch_target": "nagi", "nagi_switch_source": "/proc/nowhere/nagi-switch"},
        "nagi_switch_source: /proc/nowhere/nagi-switch does not exist; run `make` first",
    ),
    "unsigned": (
        {"nagi_switch_target": "bmv2", "nagi_bmv2_repository": "http://192.0.2.1/bmv2/"},
        "nagi_bmv2_repository_key: '' is no file .asc or .gpg on the controller; give the key that",
    ),
    "idle": (
        {"nagi_switch_pipeline": SWITCH["nagi_switch_pipeline"]},
        "nagi_switch_pipeline: no switch runs this pipeline; set nagi_switch_target to nagi or",
    ),
    "compiled": (
        SWITCH | {"nagi_switch_pipeline": "/proc/nowhere/edge.json"},
        "nagi_switch_pipeline: /proc/nowhere/edge.json does not exist on the controller",
    ),
    "entries": (
        SWITCH | {"nagi_switch_entries": "/proc/nowhere/entries.jsonl"},
        "nagi_switch_entries: /proc/nowhere/entries.jsonl does not exist on the controller",
    ),
    "ports": (
        SWITCH | {"nagi_switch_ports": [{"number": 1, "interface": "eno1"}]},
        "nagi_switch_ports: give at least one port, each with an `interface` of nagi_links .enp",
    ),
}
THERE = {
    "there": ({"nagi_links": {"wired": "eth7"}}, "nagi_links: there is no interface eth7; there"),
    "account": ({"nagi_user": "root"}, "nagi_user: there is an account root that nagi has"),
    "card": (
        {"nagi_clock": "ptp", "nagi_ptp_interface": "enp2s0"},
        "nagi_ptp_interface: enp2s0 has no hardware clock",
    ),
    "processor": ({"nagi_link_cpu": 8192}, "nagi_link_cpu: there is no processor 8192; the last"),
    "managed": ({}, r"nagi_links: enp2s0 has the default route \(IPv4\); a test interface must be"),
    "ifupdown": ({}, "/etc/network/interfaces brings up a test interface"),
    # Another machine, which says that it runs something else.
    "heron": (
        EMULATOR,
        "the host runs Fedora, but this playbook provisions only Debian and Ubuntu",
    ),
}


@pytest.mark.parametrize("wrong", [MISSING, CHOICES, LINKS, TOGETHER, THERE], ids=" ".join)
def test_what_is_wrong_is_refused_by_name_before_anything_is_changed(hosts, provision, wrong):
    kinds = {"emulator": hosts["heron"]}
    machines = {
        name: kinds.get(given.get("nagi_node"), hosts["alice"])
        for name, (given, _) in wrong.items()
    } | hosts
    if wrong is THERE:
        hosts["alice"].run("ip", "link", "set", "enp2s0", "up")
        hosts["alice"].run("ip", "route", "add", "default", "dev", "enp2s0")
        interfaces = "mkdir -p /etc/network; echo auto lo enp2s0 >/etc/network/interfaces"
        hosts["alice"].run("sh", "-c", interfaces)
        hosts["heron"].run("sh", "-c", "printf 'ID=fedora\nNAME=Fedora\n' >/etc/os-release")
        hosts["heron"].run("sh", "-c", "echo Fedora release 42 >/etc/redhat-release")
        hosts["heron"].run("rm", "-f", "/etc/debian_version")
    variables = {name: HOST | given for name, (given, _) in wrong.items()}
    if wrong is MISSING:
        del variables["node"]["nagi_node"]
    outcome = provision(machines=machines, **variables)
    assert outcome.status != 0
    assert set(outcome.changed.values()) == {0}
    for name, (_, complaint) in wrong.items():
        refusals = re.findall(rf"^(?:fatal|failed): \[{name}\].*", outcome.output, re.M)
        assert any(re.search(complaint, each) for each in refusals), f"{name}: {outcome.output}"


def test_hosts_have_programs_from_packages_of_their_release(boot_host, tmp_path):
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    if not list((ROOT / "build/deb" / release).glob("nagi-traffic_*.deb")):
        pytest.skip("needs nagi's packages: make deb")
    machines = {"alice": boot_host(), "heron": boot_host()}
    for name, interface in (("alice", "enp2s0"), ("heron", "enp2s0"), ("heron", "enp3s0")):
        machines[name].run(
            "ip", "link", "add", interface, "type", "veth", "peer", "name", f"far-{interface}"
        )
    (tmp_path / "deb").symlink_to(ROOT / "build/deb")
    packaged = {"nagi_packages": "deb"}  # from where the playbook is run
    provision = Provision(machines, tmp_path)
    first = provision(alice=HOST | packaged, heron=EMULATOR | packaged)
    assert first.status == 0, first.output
    version = machines["heron"].run("/usr/bin/nagi-link", "--version").split()[-1]
    for host, programs in {"heron": ["nagi-link"], "alice": ["nagi-tcp", "nagi-traffic"]}.items():
        for program in programs:
            assert version in machines[host].run(f"/usr/bin/{program}", "--version")
            machines[host].fail("ls", f"/usr/local/bin/{program}")
    assert "/usr/bin/nagi-link run" in machines["heron"].run("systemctl", "cat", "nagi-link@x")
    again = provision(alice=HOST | packaged, heron=EMULATOR | packaged)
    assert again.changed == {"alice": 0, "heron": 0, "localhost": 0}, again.output
    lacking = provision(alice=HOST | {"nagi_packages": str(tmp_path)})
    assert f"make deb RELEASE={release}" in lacking.output and lacking.changed["alice"] == 0
    provision(alice=HOST | packaged, heron=EMULATOR | packaged)
    back = provision.deprovision()
    assert back.status == 0, back.output
    for host in machines:
        machines[host].fail("sh", "-c", "ls /usr/bin/nagi-*")
