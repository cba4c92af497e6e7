# SPDX-License-Identifier: Apache-2.0
"""A testbed of throw-away hosts that an ordinary user's nagi reaches over SSH, each in another way.

    ivy     by an IPv6 address, its only one
    alan    by a name of ~/.ssh/config, which also has the user
    sam     by its second address
    omar    as a user who becomes root by sudo
    heron   by the address of a bridge, whose port is the network card
    june    through heron as a jump host, on a network that the controller does not reach

The name of the management card is eno1 everywhere. heron is the emulator of a star of four links:
the router sam is in its middle, and ivy, alan, omar and june are hosts at its ends.
"""

from __future__ import annotations

import copy
import itertools
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import yaml
from controller import NAMESPACE, USER_ID, Controller
from ssh_hosts import SSHD_OPTIONS, make_key
from throw_away import Host

CARD = "eno1"
NODES = {"ivy": "S", "alan": "A", "sam": "N", "omar": "B", "june": "D", "heron": "emulator"}
# Link -> the host at its end.
_ENDS = {"left": "ivy", "side": "alan", "radio": "june", "spare": "omar"}
_MIDDLE, _EMULATOR = "sam", "heron"
_BRIDGE = "vmbr0"
_JUMP_CARD = "eno2"
_OPERATOR = "visitor"
_CONTROLLER = ("192.0.2.1/24", "2001:db8:77::1/64")
# Host -> the addresses of its management card, the first address first.
_ADDRESSES = {
    "ivy": ["2001:db8:77::11/64"],
    "alan": ["192.0.2.12/24"],
    "sam": ["192.0.2.113/24", "192.0.2.13/24"],
    "omar": ["192.0.2.14/24"],
    "heron": ["192.0.2.15/24"],
    "june": ["198.51.100.16/24"],
}
_TARGETS = {"ivy": "2001:db8:77::11", "alan": "lab-alan", "sam": "192.0.2.13"}
_TARGETS |= {"omar": "192.0.2.14", "heron": "192.0.2.15", "june": "june.lab"}
_SSH_CONFIG = """\
Host lab-alan
    HostName 192.0.2.12
    User root
Host june.lab
    HostName 198.51.100.16
    ProxyJump root@192.0.2.15
Host *
    IdentityFile {home}/id_ed25519
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
"""
_SSHD_CONFIG = f"HostKey /etc/ssh/nagi_host_key\n{SSHD_OPTIONS}"
# $1: the name of the user who is not root.
_PREPARE = """
set -e
mkdir -p -m 0755 /run/sshd
mkdir -p -m 0700 /root/.ssh
cp /run/key.pub /root/.ssh/authorized_keys
usermod -p '*' root
useradd -m -p '*' -s /bin/sh "$1"
mkdir -m 0700 "/home/$1/.ssh"
cp /run/key.pub "/home/$1/.ssh/authorized_keys"
chown -R "$1:" "/home/$1/.ssh"
echo "$1 ALL=(ALL:ALL) NOPASSWD: ALL" >/etc/sudoers.d/visitor
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/nagi_host_key
cp /run/sshd_config /etc/ssh/sshd_config
systemctl restart ssh.service
"""


class ManagedHosts(Controller):
    """The testbed of this module, which exists during a `with` block.

    Args:
        machines: Name -> throw-away host, for all names in NODES.
    """

    def __init__(self, machines: Mapping[str, Host]) -> None:
        super().__init__(root=False)
        self.machines = machines

    def _make(self) -> None:
        super()._make()
        self.inventory = self.home / "lab.yml"
        self._key = self.home / "id_ed25519"
        make_key(self._key)
        (self.home / ".ssh").mkdir(mode=0o700)
        (self.home / "ssh_config").write_text(_SSH_CONFIG.format(home=self.home))
        (self.home / "sshd_config").write_text(_SSHD_CONFIG)
        for path in self.home.iterdir():
            os.chown(path, USER_ID, USER_ID)
        self._ip(NAMESPACE, ["link add lan type bridge", "link set lan up"])
        self._ip(NAMESPACE, [f"address add {address} dev lan nodad" for address in _CONTROLLER[1:]])
        self._ip(NAMESPACE, [f"address add {_CONTROLLER[0]} dev lan"])
        self._plug_in_test_cables()
        for name in NODES:
            self._connect(name, self.machines[name])

    def _plug_in_test_cables(self) -> None:
        """Connect the test cards of all hosts to those of the emulator."""
        # Host -> link -> its card, or for the emulator node -> card.
        self._links: dict[str, dict[str, Any]] = {name: {} for name in NODES}
        emulator = self.machines[_EMULATOR]
        ports = (f"enp{number}s0" for number in itertools.count(2))
        middle_cards = (f"enp{number}s0" for number in itertools.count(2))
        for link, end in _ENDS.items():
            for name, card in ((end, "enp2s0"), (_MIDDLE, next(middle_cards))):
                port = next(ports)
                self.machines[name].join(card, emulator, port)
                self._links[name][link] = card
                self._links[_EMULATOR].setdefault(link, {})[NODES[name]] = port

    def _connect(self, name: str, machine: Host) -> None:
        """Plug in the cables of a host, set its addresses, and start its sshd."""
        if name == "june":
            machine.join(CARD, self.machines["heron"], _JUMP_CARD)
            jump = self.machines["heron"]
            jump.run("ip", "address", "add", "198.51.100.15/24", "dev", _JUMP_CARD)
            jump.run("ip", "link", "set", _JUMP_CARD, "up")
        else:
            cable = ["ip", "link", "add", CARD, "type", "veth", "peer", "name", name]
            controller = ["netns", str(self._firsts[NAMESPACE])]
            prefix = ["nsenter", f"--target={machine.pid}", "--net", "--"]
            subprocess.run([*prefix, *cable, *controller], check=True)
            self._ip(NAMESPACE, [f"link set {name} master lan up"])
        owner = CARD
        if name == "heron":
            owner = _BRIDGE
            machine.run("ip", "link", "add", _BRIDGE, "type", "bridge")
            machine.run("ip", "link", "set", CARD, "master", _BRIDGE)
            machine.run("ip", "link", "set", CARD, "up")
        machine.run("sysctl", "-qw", f"net.ipv6.conf.{owner}.disable_ipv6=0")
        machine.run("ip", "link", "set", owner, "up")
        for address in _ADDRESSES[name]:
            options = ["nodad"] if ":" in address else []
            machine.run("ip", "address", "add", address, "dev", owner, *options)
        machine.copy(self._key.with_suffix(".pub"), "/run/key.pub")
        machine.copy(self.home / "sshd_config", "/run/sshd_config")
        machine.run("sh", "-c", _PREPARE, "prepare", _OPERATOR)

    def unplug(self, name: str) -> None:
        """Pull the management cable of a host other than june."""
        self._ip(NAMESPACE, [f"link set {name} down"])

    def plug(self, name: str) -> None:
        """Undo `unplug()`."""
        self._ip(NAMESPACE, [f"link set {name} up"])

    def write_inventory(self, test_card: str | None = None, **variables: Any) -> None:
        """Write the inventory of all hosts.

        Args:
            test_card: The name that all hosts have for the first of their test cards, if it is not
                the right one.
            **variables: Variables of all hosts.
        """
        cell: dict[str, dict[str, Any]] = {}
        for name, links in self._links.items():
            links = copy.deepcopy(links)
            if test_card is not None:
                first = next(iter(links))
                place, key = (links[first], NODES["ivy"]) if name == _EMULATOR else (links, first)
                place[key] = test_card
            cell[name] = {"ansible_host": _TARGETS[name]}
            if name == "omar":
                cell[name] |= {"ansible_user": _OPERATOR, "ansible_become": True}
            elif name != "alan":
                cell[name]["ansible_user"] = "root"
            cell[name] |= {"nagi_node": NODES[name], "nagi_links": links}
        common = {
            "ansible_ssh_common_args": f"-F {self.home / 'ssh_config'}",
            "ansible_python_interpreter": "/usr/bin/python3",
            "nagi_clock": "none",
            **variables,
        }
        inventory = {
            "all": {
                "vars": common,
                "children": {"cells": {"children": {"bench1": {"hosts": cell}}}},
            }
        }
        self.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))
