# SPDX-License-Identifier: Apache-2.0
"""Hosts that are only SSH addresses: what a real testbed is to nagi, made of namespaces.

Every host has network, mount, PID and UTS namespaces of its own, a root file system of its own
(what is written goes to memory; the checkout, /tmp, /root, /home and /run of the machine are not
there), an sshd on a management network, and network cards that nobody has configured. The
controller, from which nagi runs as an ordinary user, has only the management network. Everything
lives in one keeper and ends with the test.

    with SshHosts() as hosts:                        # or the fixture ssh_hosts
        spec = hosts.home / "small.yaml"             # the user's home; nagi cannot write elsewhere
        done = hosts.run("run", spec, "-i", hosts.inventory)

What the hosts share with each other is the kernel: its clock, boot id, modules and processors.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from controller import NAMESPACE, USER_ID, Controller, read_process, wait_for
from nagi.labs.shape import EMULATOR
from nagi_contracts import paths

MANAGEMENT = "management"  # what `unplug` calls the link that sshd is reached over
LINKS = {"wired": ("S", "N"), "radio": ("N", "D")}
CELLS = {"bench1": {"S": "alice", "N": "bob", "D": "carol", EMULATOR: "heron"}}

_VISITOR, _VISITOR_ID = "visitor", 20078  # on a host, where nagi is to have no root
_NETWORK = "192.168.77."
_MANAGEMENT_CARD = "eno1"
_SSHD = "/usr/sbin/sshd"
_AS_HOST = ("--mount", "--pid", "--net", "--uts", "--wd=/")

# The first process of a host: makes its root file system, then stays, and buries orphans.
# $1 name, $2 directory with host_key, authorized_keys and sshd_config, $3 and $4 a user who is not
# root, $5... what hosts do not see.
_HOST_SCRIPT = """
set -e
name=$1 files=$2 visitor=$3 visitor_id=$4
shift 4
hostname "$name"
mount -t tmpfs -o mode=0755 host /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work host /mnt/root
cd /mnt/root
mount --rbind /dev dev
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mkdir -p var/lib/nagi
for directory in run tmp root home var/lib/nagi mnt "$@"; do
    test -d "./$directory" && mount -t tmpfs -o mode=0755 host "./$directory"
done
chmod 1777 tmp
mkdir -p run/sshd run/nagi old
echo "$name" >etc/hostname
cp "$files/host_key" etc/ssh/ssh_host_ed25519_key
cp "$files/sshd_config" etc/ssh/sshd_config
chroot . usermod -p '*' root
chroot . useradd -u "$visitor_id" -m -p '*' -s /bin/sh "$visitor"
for user in root "home/$visitor"; do
    mkdir -m 0700 "$user/.ssh"
    cp "$files/authorized_keys" "$user/.ssh/authorized_keys"
done
chroot . chown -R "$visitor:" "/home/$visitor"
pivot_root . old
umount -l /old
rmdir /old
ip link set lo up
/usr/sbin/sshd -e
echo ready
exec >/dev/null
sleep infinity &
wait $!
"""

_SSHD_CONFIG = """\
ListenAddress {address}
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class Host:
    """A host, as the one who wired it up knows it."""

    name: str
    cell: str
    node: str
    address: str  # of the management interface
    links: Mapping[str, str] | Mapping[str, Mapping[str, str]]  # as `nagi_links` has them

    def card(self, link: str, towards: str | None = None) -> str:
        """The interface on a link; the emulator's that faces the node `towards`."""
        if link == MANAGEMENT:
            return _MANAGEMENT_CARD
        found = self.links[link]
        return found if isinstance(found, str) else found[towards or next(iter(found))]


class SshHosts(Controller):
    """Testbeds. They exist from entry to exit.

    `links`: link -> the nodes it joins. `cells`: cell -> node (and emulator) -> name of the host.
    The others name hosts that are not as they should be: reached as a user without root, with a key
    that they do not know, or not at all.
    """

    def __init__(
        self,
        *,
        links: Mapping[str, tuple[str, str]] = LINKS,
        cells: Mapping[str, Mapping[str, str]] = CELLS,
        without_root: Collection[str] = (),
        wrong_key: Collection[str] = (),
        down: Collection[str] = (),
    ) -> None:
        super().__init__(root=False)
        self._without_root, self._wrong_key, self._down = without_root, wrong_key, down
        self.hosts: dict[str, Host] = {}
        for cell, nodes in cells.items():
            for node, name in nodes.items():
                address = f"{_NETWORK}{11 + len(self.hosts)}"
                self.hosts[name] = Host(name, cell, node, address, _cards(links, node))

    def enter(self, host: str, *command: object, status: int | None = 0) -> str:
        """Runs a command on a host as root, not by SSH; what it prints."""
        done = subprocess.run(
            ["nsenter", "--target", str(self._firsts[host]), *_AS_HOST, "--", *map(str, command)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert status is None or done.returncode == status, f"{command}: {done.stderr}"
        return done.stdout

    def unplug(self, host: str, link: str, towards: str | None = None) -> None:
        """Takes a host off a link of the tests (its interface goes down), or pulls the cable of its
        management network (the host keeps address and routes). An emulator has two interfaces on a
        link: `towards` says which."""
        self._set(host, link, towards, "down")

    def plug(self, host: str, link: str, towards: str | None = None) -> None:
        self._set(host, link, towards, "up")

    def processes(self, host: str) -> dict[int, str]:
        """Process id (the machine's) -> command line of all that runs on a host, but for what was
        there from the beginning."""
        found = {}
        for process in self._all_of(host):
            command = read_process(process, "cmdline").replace("\0", " ").strip()
            if command and process != self._firsts[host] and not self._is_ours(command):
                found[process] = command
        return found

    def host_of(self, process: int) -> Host:
        """On which host a process runs."""
        return next(host for name, host in self.hosts.items() if process in self._all_of(name))

    def stop_sshd(self, host: str) -> None:
        """Kills the sshd of a host, and everyone's connections."""
        for process in self._sshds(host):
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: not self._sshds(host), f"the end of {host}'s sshd")

    def start_sshd(self, host: str) -> None:
        self.enter(host, _SSHD)

    def snapshot(self, host: str) -> dict[str, Any]:
        """What a run may change on a host: its interfaces, their addresses, MTU and offloads,
        routes and neighbours (of IPv4; IPv6 makes its own as time goes by), queueing, sysctls of
        the network."""
        cards = [
            {key: card[key] for key in ("ifname", "address", "mtu")} | {"up": "UP" in card["flags"]}
            for card in json.loads(self.enter(host, "ip", "-json", "link"))
        ]
        return {
            "cards": {card["ifname"]: card for card in cards},
            **{
                what: sorted(self.enter(host, "ip", "-4", "-oneline", *command).splitlines())
                for what, command in {
                    "addresses": ("address",),
                    "routes": ("route", "show", "table", "all"),
                    "rules": ("rule",),
                    "neighbours": ("neighbour", "show", "nud", "permanent"),
                }.items()
            },
            "offloads": {
                card["ifname"]: self.enter(host, "ethtool", "-k", card["ifname"]) for card in cards
            },
            # An interface that was up once has `noqueue` instead of none.
            "queueing": self.enter(host, "sh", "-c", "tc qdisc | grep -v noqueue || true"),
            # Which congestion controls there are is the kernel's matter, not the host's.
            "sysctls": self.enter(
                host, "sh", "-c", "sysctl -a 2>/dev/null | grep ^net | grep -v tcp_available"
            ),
        }

    def _is_ours(self, command: str) -> bool:
        return super()._is_ours(command) or command.startswith(f"sshd: {_SSHD}")

    def _make(self) -> None:
        self.inventory = self.home / "inventory.yml"
        self._write_files()
        super()._make()
        self._wire()
        hidden = {str(path).lstrip("/") for path in (paths.ROOT, Path(sys.prefix))}
        for name in self.hosts:
            visitor = (_VISITOR, str(_VISITOR_ID))
            arguments = (name, str(self._files(name)), *visitor, *sorted(hidden))
            self._begin(name, _HOST_SCRIPT, *arguments, processes=True)
        for name in self._down:
            self.unplug(name, MANAGEMENT)

    def _files(self, name: str) -> Path:
        return self._directory / name

    def _write_files(self) -> None:
        """Keys and the inventory."""
        ours, unknown = self.home / "id_ed25519", self._directory / "unknown"
        for key in (ours, unknown):
            _make_key(key)
        known = []
        for host in self.hosts.values():
            files = self._files(host.name)
            files.mkdir()
            _make_key(files / "host_key")
            known.append(f"{host.address} {(files / 'host_key.pub').read_text()}")
            accepted = unknown if host.name in self._wrong_key else ours
            shutil.copy(accepted.with_suffix(".pub"), files / "authorized_keys")
            (files / "sshd_config").write_text(_SSHD_CONFIG.format(address=host.address))
        (self.home / "known_hosts").write_text("".join(known))
        self.write_inventory(self.as_inventory())
        for path in self.home.iterdir():
            os.chown(path, USER_ID, USER_ID)  # ssh refuses a key that is another's

    def as_inventory(self) -> dict[str, Any]:
        """The inventory of all cells; a fresh copy, to be changed and written."""
        cells: dict[str, Any] = {}
        for host in self.hosts.values():
            cells.setdefault(host.cell, {"hosts": {}})["hosts"][host.name] = {
                "ansible_host": host.address,
                "ansible_user": _VISITOR if host.name in self._without_root else "root",
                "ansible_ssh_private_key_file": str(self.home / "id_ed25519"),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.home / 'known_hosts'}",
                "ansible_python_interpreter": "/usr/bin/python3",
                "nagi_node": host.node,
                "nagi_links": json.loads(json.dumps(host.links)),
            }
        return {"all": {"children": {"cells": {"children": cells}}}}

    def write_inventory(self, inventory: dict[str, Any]) -> None:
        self.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))

    def _wire(self) -> None:
        """The hosts' network namespaces and all cables."""
        bridge, end = "bridge", _MANAGEMENT_CARD
        commands = [f"netns add {name}" for name in self.hosts]
        commands.append(f"link add {bridge} netns {NAMESPACE} type bridge")
        for host in self.hosts.values():
            cable = f"type veth peer name {host.name} netns {NAMESPACE}"
            commands.append(f"link add {end} netns {host.name} {cable}")
            for link, card in host.links.items():
                if isinstance(card, str):
                    emulator = next(
                        other
                        for other in self.hosts.values()
                        if other.cell == host.cell and other.node == EMULATOR
                    )
                    port = emulator.card(link, host.node)
                    cable = f"type veth peer name {port} netns {emulator.name}"
                    commands.append(f"link add {card} netns {host.name} {cable}")
        self._ip(None, commands)
        self._ip(
            NAMESPACE,
            [
                f"link set {bridge} up",
                f"address add {_NETWORK}1/24 dev {bridge}",
                *(f"link set {name} master {bridge} up" for name in self.hosts),
            ],
        )
        for host in self.hosts.values():
            self._ip(host.name, [f"address add {host.address}/24 dev {end}", f"link set {end} up"])

    def _set(self, host: str, link: str, towards: str | None, state: str) -> None:
        namespace, card = host, self.hosts[host].card(link, towards)
        if link == MANAGEMENT:
            namespace, card = NAMESPACE, host
        self._ip(namespace, [f"link set {card} {state}"])

    def _all_of(self, host: str) -> list[int]:
        """All processes of a host."""
        namespace = Path(f"/proc/{self._firsts[host]}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "ns/pid").readlink() == namespace:
                    found.append(int(entry.name))
            except OSError:  # it has just ended
                continue
        return found

    def _sshds(self, host: str) -> list[int]:
        return [p for p in self._all_of(host) if read_process(p, "comm").strip() == "sshd"]


def _cards(
    links: Mapping[str, tuple[str, str]], node: str
) -> dict[str, str] | dict[str, dict[str, str]]:
    """Names of network cards, in the order of the links."""
    slots = iter(range(2, 100))
    if node == EMULATOR:
        return {link: {end: f"enp{next(slots)}s0" for end in ends} for link, ends in links.items()}
    return {link: f"enp{next(slots)}s0" for link, ends in links.items() if node in ends}


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def require_ssh_hosts() -> None:
    """Skips the test where there can be no such hosts, and says what is missing."""
    if os.geteuid() != 0:
        pytest.skip("needs root for namespaces: run `sudo make test`")
    if not Path(_SSHD).exists():
        pytest.skip("needs sshd: run `make setup`")
    for path in (paths.ROOT, Path(sys.prefix)):
        closed = [p for p in (path, *path.parents) if not p.stat().st_mode & 0o001]
        if closed:
            pytest.skip(f"an ordinary user cannot enter {closed[0]}: put the checkout elsewhere")


@pytest.fixture
def ssh_hosts() -> Iterator[SshHosts]:
    """One cell whose hosts are all in order."""
    require_ssh_hosts()
    with SshHosts() as hosts:
        yield hosts
