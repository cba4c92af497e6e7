# SPDX-License-Identifier: Apache-2.0
"""The Ansible plugins, run by Ansible: netns connections, and configured interfaces."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
import yaml
from nagi.agent_contracts import read_offloads
from nagi.labs.ansible_runs import Playbooks
from nagi.labs.ansible_variables import Template, to_yaml
from nagi.labs.errors import Interrupted, LabError
from nagi.labs.inventory import EXAMPLE, format_example
from nagi_contracts.paths import COLLECTION
from provisioning import list_inventory

INTERFACES = [
    {"name": "eth0", "address": "10.1.0.1/30", "neighbours": {"10.1.0.2": "02:00:00:00:00:09"}}
]


SYSTEMD_OFFLOADS = {
    "TransmitChecksumOffload": "tx-checksumming",
    "TCPSegmentationOffload": "tcp-segmentation-offload",
    "TCP6SegmentationOffload": "tcp-segmentation-offload",
    "GenericSegmentationOffload": "generic-segmentation-offload",
    "GenericReceiveOffload": "generic-receive-offload",
    "GenericReceiveOffloadHardware": "rx-gro-hw",
    "LargeReceiveOffload": "large-receive-offload",
}


def test_all_parts_name_the_same_offloads():
    """Compare the names of offloads in the agent, in the Ansible module and in nagi-link."""
    ask = "import json, interfaces; print(json.dumps(interfaces.OFFLOADS))"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        env={"PYTHONPATH": str(COLLECTION / "plugins" / "modules")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == read_offloads()
    assert "rx-gro-hw" in read_offloads()
    # systemd has names of its own for them, which it takes from when interfaces appear.
    template = COLLECTION / "roles" / "test_interfaces" / "templates" / "nagi.link.j2"
    by_systemd = dict(re.findall(r"^(\w+(?:Offload|Hardware))=(\w+)$", template.read_text(), re.M))
    assert by_systemd == dict.fromkeys(SYSTEMD_OFFLOADS, "no")
    assert set(SYSTEMD_OFFLOADS.values()) == set(read_offloads())


def test_every_module_has_examples_that_are_tasks():
    """Ansible reads the documentation, and the options of the examples exist."""
    names = [path.stem for path in (COLLECTION / "plugins/modules").glob("*.py")]
    done = subprocess.run(
        [f"{sys.prefix}/bin/ansible-doc", "--json", *(f"nagi.testbed.{name}" for name in names)],
        capture_output=True,
        text=True,
        check=True,
    )
    pages = json.loads(done.stdout)
    assert len(pages) == len(names) == 5
    for name, page in pages.items():
        tasks = yaml.safe_load(page["examples"])
        own_tasks = [task for task in tasks if name in task]
        assert own_tasks, name
        for task in own_tasks:
            assert task[name].keys() <= page["doc"]["options"].keys()


@pytest.fixture
def playbooks(namespaces, tmp_path):
    namespaces.add("host", "peer")
    namespaces.join(("host", "eth0"), ("peer", "eth0"))
    namespaces.run("host", "ethtool", "-K", "eth0", "gro", "on", "tso", "on", "tx", "on")
    namespaces.run("host", "ip", "address", "add", "10.9.9.9/24", "dev", "eth0")
    namespaces.run("host", "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=0")
    pid = namespaces.pid
    inventory = {
        "all": {
            "vars": {
                "ansible_connection": "nagi.testbed.netns",
                "ansible_python_interpreter": "/usr/bin/python3",
                "nagi_keeper_pid": pid,
            },
            "hosts": {"there": {"nagi_namespace": "host", "nagi_interfaces": INTERFACES}},
        }
    }
    return Playbooks(tmp_path / "ansible", inventory, lambda: False)


def play(tmp_path, tasks: str) -> str:
    """Write a playbook with the given tasks, and return its path."""
    path = tmp_path / "play.yml"
    path.write_text(f"- name: Test\n  hosts: there\n  tasks:\n{tasks}")
    return str(path)


SHAPE = """
    - name: Shape
      nagi.testbed.interfaces:
        interfaces: "{{ nagi_interfaces }}"
"""


def test_interfaces_are_brought_into_shape_once(playbooks, namespaces, tmp_path):
    shape = play(tmp_path, SHAPE)
    dry = playbooks.run(play(tmp_path, SHAPE + "      check_mode: true\n"))["Shape"]["there"]
    assert dry["changed"]
    assert "10.9.9.9" in namespaces.run("host", "ip", "address", "show", "eth0")

    play(tmp_path, SHAPE)
    first = playbooks.run(shape)["Shape"]["there"]
    assert first["changes"] == dry["changes"]
    addresses = namespaces.run("host", "ip", "-4", "address", "show", "eth0")
    assert "10.1.0.1/30" in addresses and "10.9.9.9" not in addresses
    neighbours = namespaces.run("host", "ip", "neighbour", "show", "nud", "permanent")
    assert "10.1.0.2 dev eth0 lladdr 02:00:00:00:00:09 PERMANENT" in neighbours
    features = namespaces.run("host", "ethtool", "-k", "eth0")
    assert "generic-receive-offload: off" in features
    assert "tcp-segmentation-offload: off" in features
    assert "tx-checksumming: off" in features
    ipv6 = namespaces.run("host", "cat", "/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
    assert ipv6.strip() == "1"

    second = playbooks.run(shape)["Shape"]["there"]
    assert not second["changed"] and second["changes"] == []


NEIGHBOURS = """
    - name: Shape
      nagi.testbed.interfaces:
        interfaces: "{{ nagi_interfaces }}"
        journal: JOURNAL
"""


def test_stale_neighbours_go_and_come_back(playbooks, namespaces, tmp_path):
    """Remove and restore permanent neighbours; both families change, as IPv6 is switched off."""
    namespaces.run("host", "ip", "link", "set", "eth0", "up")
    stale = {"10.9.9.1": "02:00:00:00:00:01", "fd00::1": "02:00:00:00:00:02"}
    # The third is wanted already, and is lost when the interface's address is replaced.
    for address, mac in {**stale, "10.1.0.2": "02:00:00:00:00:09"}.items():
        entry = ("to", address, "lladdr", mac, "dev", "eth0", "nud", "permanent")
        namespaces.run("host", "ip", "neighbour", "add", *entry)

    def permanent() -> dict[str, str]:
        shown = ("ip", "-json", "neighbour", "show", "dev", "eth0", "nud", "permanent")
        found = json.loads(namespaces.run("host", *shown) or "[]")
        return {entry["dst"]: entry["lladdr"] for entry in found}

    before = permanent()
    assert before.items() > stale.items()
    journal = tmp_path / "state" / "journal.json"
    tasks = NEIGHBOURS.replace("JOURNAL", str(journal))
    assert playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changed"]
    assert permanent() == {"10.1.0.2": "02:00:00:00:00:09"}
    assert not playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changed"]
    for command in json.loads(journal.read_text())["undo"]:
        namespaces.run("host", *command)
    assert permanent() == before


def test_the_interface_below_is_set_up_too(playbooks, namespaces, tmp_path):
    """Switch off offloads of the lower interface: it merges segments before its VLAN gets them.

    The test uses a macvlan with a VLAN's name, because some kernels have no VLANs.
    """
    up = ("type", "macvlan", "mode", "private")
    namespaces.run("host", "ip", "link", "add", "link", "eth0", "name", "eth0.101", *up)
    namespaces.run("host", "ip", "link", "set", "eth0", "down")

    def state() -> tuple[str, str]:
        (shown,) = json.loads(namespaces.run("host", "ip", "-json", "link", "show", "eth0"))
        features = namespaces.run("host", "ethtool", "-k", "eth0")
        gro = re.search(r"^generic-receive-offload: (on|off)", features, re.M)
        assert gro is not None
        return "UP" if "UP" in shown["flags"] else "DOWN", gro[1]

    assert state() == ("DOWN", "on")
    journal = tmp_path / "state" / "journal.json"
    tasks = NEIGHBOURS.replace("JOURNAL", str(journal)).replace(
        '"{{ nagi_interfaces }}"', "[{name: eth0.101, address: 10.1.0.1/30}]"
    )
    assert playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changed"]
    assert state() == ("UP", "off")
    (shown,) = json.loads(namespaces.run("host", "ip", "-json", "address", "show", "eth0.101"))
    assert "UP" in shown["flags"] and shown["addr_info"][0]["local"] == "10.1.0.1"
    # A macvlan, unlike a VLAN, always has checksums on: it leaves them to the interface below.
    again = playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changes"]
    assert [change for change in again if " eth0 " in f"{change} "] == []
    for command in json.loads(journal.read_text())["undo"]:
        namespaces.run("host", *command)
    assert state() == ("DOWN", "on")


IPV6 = """
    - name: Shape
      nagi.testbed.interfaces:
        interfaces:
          - name: eth0
            address: fd6e:6167:6900::1/64
            neighbours: {"fd6e:6167:6900::2": "02:00:00:00:00:09"}
            mtu: 1400
        journal: JOURNAL
"""


def test_an_interface_speaks_ipv6_and_is_put_back(playbooks, namespaces, tmp_path):
    """It has only the given address, and undoing the changes restores its state."""

    def state() -> dict[str, object]:
        (shown,) = json.loads(
            namespaces.run("host", "ip", "-json", "address", "show", "dev", "eth0")
        )
        addresses = {
            f"{each['local']}/{each['prefixlen']}"
            for each in shown["addr_info"]
            if each["scope"] == "global"
        }
        settings = "/proc/sys/net/ipv6/conf/eth0"
        names = ("disable_ipv6", "accept_ra", "addr_gen_mode", "router_solicitations")
        values = namespaces.run("host", "cat", *(f"{settings}/{name}" for name in names)).split()
        return {"addresses": addresses, "mtu": shown["mtu"], "settings": values}

    namespaces.run("host", "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1")
    before = state()
    journal = tmp_path / "state" / "journal.json"
    tasks = IPV6.replace("JOURNAL", str(journal))
    assert playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changed"]
    assert state() == {
        "addresses": {"fd6e:6167:6900::1/64"},
        "mtu": 1400,
        "settings": ["0", "0", "1", "0"],
    }
    everything = namespaces.run("host", "ip", "-6", "address", "show", "dev", "eth0")
    assert "fe80" not in everything and "tentative" not in everything
    neighbours = namespaces.run("host", "ip", "-6", "neighbour", "show", "nud", "permanent")
    assert "fd6e:6167:6900::2 dev eth0 lladdr 02:00:00:00:00:09 PERMANENT" in neighbours

    assert not playbooks.run(play(tmp_path, tasks))["Shape"]["there"]["changed"]
    for command in json.loads(journal.read_text())["undo"]:
        namespaces.run("host", *command)
    assert state() == before


def test_files_go_and_come_through_the_connection(playbooks, tmp_path):
    (tmp_path / "origin").write_text("what was sent\n")
    tasks = f"""
    - name: Send
      ansible.builtin.copy:
        src: {tmp_path}/origin
        dest: {tmp_path}/there
        mode: "0640"
    - name: Where
      ansible.builtin.command: ip -brief link show eth0
    - name: Fetch
      ansible.builtin.fetch:
        src: {tmp_path}/there
        dest: {tmp_path}/back
        flat: true
"""
    results = playbooks.run(play(tmp_path, tasks))
    assert (tmp_path / "back").read_text() == "what was sent\n"
    assert results["Where"]["there"]["stdout"].startswith("eth0@if")


def test_failures_name_host_task_and_complaint(playbooks, tmp_path):
    tasks = """
    - name: Fail
      ansible.builtin.command: ip link show eth7
"""
    with pytest.raises(LabError, match=r'there: Fail: Device "eth7" does not exist'):
        playbooks.run(play(tmp_path, tasks))
    with pytest.raises(LabError, match=r"there: Shape: .*interface eth7"):
        playbooks.run(play(tmp_path, SHAPE.replace('"{{ nagi_interfaces }}"', "[{name: eth7}]")))


def test_a_keeper_that_is_gone_is_said(namespaces, tmp_path):
    inventory = {
        "all": {
            "vars": {"ansible_connection": "nagi.testbed.netns", "nagi_keeper_pid": 2**22 - 1},
            "hosts": {"there": {}},
        }
    }
    playbooks = Playbooks(tmp_path / "ansible", inventory, lambda: False)
    with pytest.raises(LabError, match=r"the keeper of the lab .* has ended"):
        playbooks.run(play(tmp_path, "    - name: Try\n      ansible.builtin.command: uptime\n"))


def test_a_text_is_a_template_only_if_it_is_said_to_be(tmp_path):
    """`--out "{{ lookup('pipe', 'touch pwned') }}"` is text, not a template that runs a program."""
    planted = tmp_path / "pwned"
    attack = f"{{{{ lookup('ansible.builtin.pipe', 'touch {planted}') }}}}"
    inventory = {
        "all": {
            "hosts": {
                "there": {
                    "ansible_connection": "local",
                    "ansible_python_interpreter": sys.executable,
                    "from_inventory": [attack, {"within": attack}],
                    "ours": Template("{{ 6 * 7 }}"),
                }
            }
        }
    }
    playbooks = Playbooks(tmp_path / attack.replace("/", "_"), inventory, lambda: False)
    tasks = """
    - name: Show
      ansible.builtin.debug:
        msg: "{{ [from_inventory, from_command_line, ours] }}"
"""
    shown = playbooks.run(play(tmp_path, tasks), from_command_line=attack)["Show"]["there"]
    assert shown["msg"] == [[attack, {"within": attack}], attack, 42]
    assert not planted.exists()
    assert to_yaml({"key": attack}, in_one_line=True).startswith("{key: !unsafe ")


def test_an_interrupted_play_ends_soon(playbooks, tmp_path):
    playbooks._interrupted = lambda: True
    tasks = """
    - name: Wait
      ansible.builtin.command: sleep 30
"""
    with pytest.raises(Interrupted):
        playbooks.run(play(tmp_path, tasks))


def test_the_example_inventory_is_what_a_lab_is_given():
    assert EXAMPLE.read_text() == format_example(), "run: python -m nagi.labs.inventory"
    assert {"keeper", "lab_hosts", "cell0"} <= list_inventory(EXAMPLE).keys()
