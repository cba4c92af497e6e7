# SPDX-License-Identifier: Apache-2.0
"""Create hosts of namespaces that nagi reaches over SSH alone, as in a real testbed.

Every host has its own network, mount, PID and UTS namespaces and its own root file system: writes
go to memory, and the checkout, /tmp, /root, /home and /run of the machine are hidden. It has an
sshd on a management network, and network cards that nobody has configured. The controller, on which
an ordinary user runs nagi, has only the management network. All processes live in one keeper and
end with the test.

    with SshHosts() as hosts:                        # or the fixture ssh_hosts
        spec = hosts.home / "small.yaml"             # the user's home; nagi cannot write elsewhere
        done = hosts.run("run", spec, "-i", hosts.inventory)

All hosts share the kernel: its clock, boot ID, modules and processors.
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

MANAGEMENT = "management"  # the name of the management network in `unplug`
LINKS = {"wired": ("S", "N"), "radio": ("N", "D")}
CELLS = {"bench1": {"S": "alice", "N": "bob", "D": "carol", EMULATOR: "heron"}}

_VISITOR, _VISITOR_ID = "visitor", 20078  # the user of hosts on which nagi is not root
_NETWORK = "192.168.77."
_MANAGEMENT_CARD = "eno1"
_SSHD = "/usr/sbin/sshd"
_AS_HOST = ("--mount", "--pid", "--net", "--uts", "--wd=/")

# The first process of a host makes its root file system, then waits and reaps orphans.
# $1: name; $2: directory with host_key, authorized_keys and sshd_config; $3, $4: name and ID of a
# user who is not root; $5...: hidden directories.
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

SSHD_OPTIONS = """\
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile /run/sshd.pid
Subsystem sftp internal-sftp
"""
_SSHD_CONFIG = f"""\
ListenAddress {{address}}
HostKey /etc/ssh/ssh_host_ed25519_key
{SSHD_OPTIONS}"""


@dataclass(frozen=True)
class Host:
    """A host, with its cables."""

    name: str
    cell: str
    node: str
    address: str  # of the management interface
    links: Mapping[str, str] | Mapping[str, Mapping[str, str]]  # in the format of `nagi_links`

    def card_name(self, link: str, towards: str | None = None) -> str:
        """Return the interface on a link; for the emulator, the one towards the node `towards`."""
        if link == MANAGEMENT:
            return _MANAGEMENT_CARD
        card = self.links[link]
        return card if isinstance(card, str) else card[towards or next(iter(card))]


class SshHosts(Controller):
    """Testbeds of hosts, which exist during a `with` block."""

    def __init__(
        self,
        *,
        links: Mapping[str, tuple[str, str]] = LINKS,
        cells: Mapping[str, Mapping[str, str]] = CELLS,
        without_root: Collection[str] = (),
        wrong_key: Collection[str] = (),
        down: Collection[str] = (),
    ) -> None:
        """Name the hosts.

        Args:
            links: link -> the nodes that it connects
            cells: cell -> node or emulator -> name of the host
            without_root: hosts that nagi reaches as a user who is not root
            wrong_key: hosts that do not accept nagi's key
            down: hosts that nagi cannot reach
        """
        super().__init__(root=False)
        self._without_root, self._wrong_key, self._down = without_root, wrong_key, down
        self.hosts: dict[str, Host] = {}
        for cell, nodes in cells.items():
            for node, name in nodes.items():
                address = f"{_NETWORK}{11 + len(self.hosts)}"
                self.hosts[name] = Host(name, cell, node, address, _name_cards(links, node))

    def enter(self, host: str, *command: object, status: int | None = 0) -> str:
        """Execute a command on a host as root, without SSH, and return its output."""
        process = subprocess.run(
            ["nsenter", "--target", str(self._firsts[host]), *_AS_HOST, "--", *map(str, command)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert status is None or process.returncode == status, f"{command}: {process.stderr}"
        return process.stdout

    def unplug(self, host: str, link: str, towards: str | None = None) -> None:
        """Set an interface of a host down, or pull the cable of its management network.

        Without its management network a host keeps addresses and routes. `towards` selects one of
        the emulator's two interfaces on a link.
        """
        self._set(host, link, towards, "down")

    def plug(self, host: str, link: str, towards: str | None = None) -> None:
        """Undo `unplug()`."""
        self._set(host, link, towards, "up")

    def processes(self, host: str) -> dict[int, str]:
        """Return the command lines of all processes of a host, by process ID outside.

        Processes that exist permanently are left out.
        """
        commands = {}
        for process in self._list_processes(host):
            command = read_process(process, "cmdline").replace("\0", " ").strip()
            if command and process != self._firsts[host] and not self._is_permanent(command):
                commands[process] = command
        return commands

    def find_host(self, process: int) -> Host:
        """Return the host on which a process runs."""
        return next(
            host for name, host in self.hosts.items() if process in self._list_processes(name)
        )

    def stop_sshd(self, host: str) -> None:
        """Kill the sshd of a host with all its connections."""
        for process in self._find_sshds(host):
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: not self._find_sshds(host), f"the end of {host}'s sshd")

    def start_sshd(self, host: str) -> None:
        self.enter(host, _SSHD)

    def read_snapshot(self, host: str) -> dict[str, Any]:
        """Return the settings of a host that a run may change.

        They are interfaces with addresses, MTU and offloads, routes and neighbours of IPv4 (those
        of IPv6 change by themselves), queueing, and sysctls of the network.
        """
        cards = [
            {key: card[key] for key in ("ifname", "address", "mtu")} | {"up": "UP" in card["flags"]}
            for card in json.loads(self.enter(host, "ip", "-json", "link"))
        ]
        return {
            "cards": {card["ifname"]: card for card in cards},
            **{
                kind: sorted(self.enter(host, "ip", "-4", "-oneline", *command).splitlines())
                for kind, command in {
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
            # The lists of congestion controls belong to the kernel, not to the host: they have the
            # schemes that other tests register.
            "sysctls": self.enter(
                host,
                "sh",
                "-c",
                "sysctl -a 2>/dev/null | grep ^net | grep -vE 'tcp_available|tcp_allowed'",
            ),
        }

    def _is_permanent(self, command: str) -> bool:
        return super()._is_permanent(command) or command.startswith(f"sshd: {_SSHD}")

    def _make(self) -> None:
        self.inventory = self.home / "inventory.yml"
        self._write_files()
        super()._make()
        self._connect_hosts()
        hidden = {str(path).lstrip("/") for path in (paths.ROOT, Path(sys.prefix))}
        for name in self.hosts:
            visitor = (_VISITOR, str(_VISITOR_ID))
            arguments = (name, str(self._host_directory(name)), *visitor, *sorted(hidden))
            self._start_first_process(name, _HOST_SCRIPT, *arguments, processes=True)
        for name in self._down:
            self.unplug(name, MANAGEMENT)

    def _host_directory(self, name: str) -> Path:
        return self._directory / name

    def _write_files(self) -> None:
        """Write keys and the inventory."""
        key_of_nagi, other_key = self.home / "id_ed25519", self._directory / "unknown"
        for key in (key_of_nagi, other_key):
            make_key(key)
        known_hosts = []
        for host in self.hosts.values():
            files = self._host_directory(host.name)
            files.mkdir()
            make_key(files / "host_key")
            known_hosts.append(f"{host.address} {(files / 'host_key.pub').read_text()}")
            accepted = other_key if host.name in self._wrong_key else key_of_nagi
            shutil.copy(accepted.with_suffix(".pub"), files / "authorized_keys")
            (files / "sshd_config").write_text(_SSHD_CONFIG.format(address=host.address))
        (self.home / "known_hosts").write_text("".join(known_hosts))
        self.write_inventory(self.make_inventory())
        for path in self.home.iterdir():
            os.chown(path, USER_ID, USER_ID)  # ssh refuses a key that belongs to another user

    def make_inventory(self) -> dict[str, Any]:
        """Return a new copy of the inventory of all cells, which the caller may modify."""
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

    def _connect_hosts(self) -> None:
        """Make the network namespaces of the hosts and all cables."""
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
                    port = emulator.card_name(link, host.node)
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
        namespace, card = host, self.hosts[host].card_name(link, towards)
        if link == MANAGEMENT:
            namespace, card = NAMESPACE, host
        self._ip(namespace, [f"link set {card} {state}"])

    def _list_processes(self, host: str) -> list[int]:
        """Return all processes of a host."""
        namespace = Path(f"/proc/{self._firsts[host]}/ns/pid").readlink()
        pids = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "ns/pid").readlink() == namespace:
                    pids.append(int(entry.name))
            except OSError:  # the process has just ended
                continue
        return pids

    def _find_sshds(self, host: str) -> list[int]:
        return [p for p in self._list_processes(host) if read_process(p, "comm").strip() == "sshd"]


def _name_cards(
    links: Mapping[str, tuple[str, str]], node: str
) -> dict[str, str] | dict[str, dict[str, str]]:
    """Return the names of a node's network cards, in the order of the links."""
    slots = iter(range(2, 100))
    if node == EMULATOR:
        return {link: {end: f"enp{next(slots)}s0" for end in ends} for link, ends in links.items()}
    return {link: f"enp{next(slots)}s0" for link, ends in links.items() if node in ends}


def make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def require_ssh_hosts() -> None:
    """Skip the test where such hosts cannot be made, and name what is missing."""
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
    """Yield one cell whose hosts have no faults."""
    require_ssh_hosts()
    with SshHosts() as hosts:
        yield hosts
