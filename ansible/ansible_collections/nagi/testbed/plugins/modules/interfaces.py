# SPDX-License-Identifier: Apache-2.0
"""Ansible module: configures test interfaces."""

from __future__ import annotations

DOCUMENTATION = r"""
module: interfaces
short_description: configure test interfaces
description:
  - Sets each interface up, with exactly the given address (or none) and the given permanent
    neighbours. Switches off all offloads that merge segments or leave checksums to hardware.
  - Switches IPv6 off, unless the address is an IPv6 address. With an IPv6 address, the kernel sends
    no router solicitations and generates no addresses.
  - If the interface is a VLAN or macvlan, sets the interface below it up, and switches the same
    offloads off there.
  - With O(hardware), sets the number of queues, and the largest rings that the driver allows, and
    does not change addresses and neighbours.
  - Changes only what differs, and supports check mode.
author: the nagi authors
options:
  interfaces:
    description: the interfaces
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: name of the interface
        type: str
        required: true
      address:
        description: address with prefix length; not given for the emulator's interfaces
        type: str
      neighbours:
        description: permanent neighbours, IP address to MAC address, so that the link has no ARP
        type: dict
        default: {}
      mtu:
        description: MTU in bytes; unchanged if not given
        type: int
  journal:
    description: file with the commands that undo all changes, written before the changes;
      nagi-agent runs these commands
    type: path
  journals:
    description: directory for one such file per interface, NAME.json, in place of O(journal)
    type: path
  hardware:
    description: provision the interfaces as hardware, not with a lab's addresses
    type: bool
    default: false
  queues:
    description: with O(hardware), the number of queues in each direction; 0 leaves it unchanged
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Give a node its address and neighbour
  nagi.testbed.interfaces:
    interfaces:
      - name: enp2s0
        address: 198.18.0.1/30
        neighbours: {198.18.0.2: "02:00:00:00:00:02"}
        mtu: 1500
    journal: /run/nagi/interfaces.json

- name: Set up the hardware of an emulator's interfaces
  nagi.testbed.interfaces:
    interfaces: [{name: enp2s0}, {name: enp3s0}]
    hardware: true
    queues: 1
    journals: /var/lib/nagi-testbed/interfaces
"""

RETURN = r"""
changes:
  description: the commands that were run, or would be in check mode
  type: list
  elements: str
  returned: always
cards:
  description: >-
    for each interface its name, its MAC address, whether this is the permanent address of the
    hardware, the interface below a VLAN or macvlan, and the kinds of queues (combined, or rx and
    tx) and rings (rx, tx) that the driver can resize
  type: list
  elements: dict
  returned: with O(hardware)
"""

import json
import os
import shlex

from ansible.module_utils.basic import AnsibleModule

# The offloads of runtime/io/offloads.json: long names, as `ethtool -k` prints them, and the short
# names for -K. This is a copy, because Ansible sends modules to hosts without data files.
OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-gro-hw": "rx-gro-hw",
}


# The sysctls of an interface with IPv6, in this order. They prevent the kernel from sending its own
# packets, which would be in the captures of runs.
QUIET_IPV6 = {
    "addr_gen_mode": "1",  # no link-local addresses
    "accept_ra": "0",
    "router_solicitations": "0",
    "disable_ipv6": "0",
}

# Kinds of interfaces on top of another interface. The interface below must be up, and its offloads
# must be off, because it would merge segments before the upper interface receives them.
STACKED_KINDS = ("vlan", "macvlan")

Command = list  # of words
Change = tuple  # (command, the commands that undo it, in order)


class Interface:
    """One interface: its current state, and the commands that change it to the settings."""

    def __init__(self, module: AnsibleModule, settings: dict) -> None:
        self._module = module
        self._settings = settings
        self.name = settings["name"]
        (self._state,) = json.loads(
            self._run("ip", "-details", "-json", "address", "show", self.name)
        )
        kind = self._state.get("linkinfo", {}).get("info_kind")
        self._below = self._state["link"] if kind in STACKED_KINDS else None

    def _run(self, *command: str) -> str:
        """Run a command, and return its output. End the module with an error if it fails."""
        status, out, error = self._module.run_command(list(command))
        if status != 0:
            self._module.fail_json(
                msg=f"interface {self.name}: {shlex.join(command)}: {(error or out).strip()}"
            )
        return out

    def plan_changes(self) -> list[Change]:
        """Return the commands that are needed, in order, each with the commands that undo it."""
        return [
            *self._plan_ipv6(),
            *self._plan_offloads(),
            *self._plan_mtu(),
            *self._plan_up(),
            *self._plan_neighbours(self._plan_address()),
        ]

    def _plan_ipv6(self) -> list[Change]:
        """Return the changes that disable IPv6, or that enable it without automatic packets."""
        if ":" in (self._settings.get("address") or ""):
            return [
                change
                for key, value in QUIET_IPV6.items()
                for change in self._plan_sysctl(f"net/ipv6/conf/{self.name}/{key}", value)
            ]
        key = f"net/ipv6/conf/{self.name}/disable_ipv6"
        if not os.path.exists(f"/proc/sys/{key}"):  # a kernel without IPv6
            return []
        if self._read_sysctl(key) == "1":
            return []
        # When IPv6 is disabled, the kernel removes the interface's IPv6 addresses and neighbours.
        # When IPv6 is enabled again, it restores only link-local addresses.
        restore_commands = [
            ["ip", "address", "replace", f"{info['local']}/{info['prefixlen']}", "dev", self.name]
            for info in self._state["addr_info"]
            if info["family"] == "inet6" and info["scope"] != "link" and not info.get("dynamic")
        ]
        restore_commands += [
            self._replace_neighbour(address, mac)
            for address, mac in self._read_permanent_neighbours().items()
            if ":" in address
        ]
        write = ["sysctl", "-q", "-w"]
        return [([*write, f"{key}=1"], [[*write, f"{key}=0"], *restore_commands])]

    def _read_sysctl(self, key: str) -> str:
        """Return the value of an IPv6 sysctl. End the module with an error without IPv6."""
        try:
            with open(f"/proc/sys/{key}", encoding="ascii") as file:
                return file.read().strip()
        except OSError as error:
            self._module.fail_json(
                msg=f"interface {self.name}: cannot read {key}: {error.strerror}; "
                "the experiment has `ip_version: 6`, which needs a kernel with IPv6"
            )
            raise

    def _plan_sysctl(self, key: str, value: str) -> list[Change]:
        current_value = self._read_sysctl(key)
        if current_value == value:
            return []
        write = ["sysctl", "-q", "-w"]
        return [([*write, f"{key}={value}"], [[*write, f"{key}={current_value}"]])]

    def _plan_mtu(self) -> list[Change]:
        mtu, current_mtu = self._settings.get("mtu"), self._state["mtu"]
        if mtu is None or mtu == current_mtu:
            return []
        resize, restore = (
            ["ip", "link", "set", "dev", self.name, "mtu", str(size)] for size in (mtu, current_mtu)
        )
        return [(resize, [restore])]

    def _plan_offloads(self) -> list[Change]:
        # The interface below comes last, because an offload that is off there can no longer be
        # switched off on its VLANs.
        below = self._plan_offloads_of(self._below) if self._below else []
        return [*self._plan_offloads_of(self.name), *below]

    def _plan_offloads_of(self, interface: str) -> list[Change]:
        """Return the change that switches off the offloads of `interface` that can be changed."""
        enabled = []
        for line in self._run("ethtool", "-k", interface).splitlines():
            name, _, value = line.strip().partition(":")
            if name in OFFLOADS and value.split() == ["on"]:  # not [fixed]
                enabled.append(OFFLOADS[name])
        if not enabled:
            return []

        def switch(state: str) -> Command:
            words = (word for offload in enabled for word in (offload, state))
            return ["ethtool", "-K", interface, *words]

        return [(switch("off"), [switch("on")])]

    def _plan_up(self) -> list[Change]:
        """Return the changes that set the interface up, and first the interface below it."""
        flags = {self.name: self._state["flags"]}
        if self._below:
            (state,) = json.loads(self._run("ip", "-json", "link", "show", self._below))
            flags = {self._below: state["flags"], **flags}
        changes = []
        for interface in (name for name in flags if "UP" not in flags[name]):
            up, down = (["ip", "link", "set", "dev", interface, state] for state in ("up", "down"))
            changes.append((up, [down]))
        return changes

    def _plan_address(self) -> list[Change]:
        """Return the changes after which the interface has only the address of the settings.

        The commands that undo the changes also restore routes.
        """
        address = self._settings.get("address")
        # When IPv6 is disabled, the kernel removes IPv6 addresses itself.
        families = ("inet", "inet6") if ":" in (address or "") else ("inet",)
        broadcasts = {
            f"{info['local']}/{info['prefixlen']}": info.get("broadcast")
            for info in self._state["addr_info"]
            if info["family"] in families and info["scope"] != "link"
        }
        changes = []
        for old in sorted(set(broadcasts) - {address}):
            add = ["ip", "address", "replace", old, "dev", self.name]
            if broadcasts[old]:
                add += ["broadcast", broadcasts[old]]
            # When the kernel removes the address, it also removes routes through the interface.
            ip = ["ip", "-6"] if ":" in old else ["ip"]
            lines = self._run(*ip, "route", "show", "dev", self.name).splitlines()
            routes = [
                [*ip, "route", "replace", *route.split(), "dev", self.name]
                for route in lines
                if "proto kernel" not in route and "linkdown" not in route
            ]
            changes.append((["ip", "address", "del", old, "dev", self.name], [add, *routes]))
        if address and address not in broadcasts:
            nodad = ["nodad"] if ":" in address else []
            changes.append(
                (
                    ["ip", "address", "add", address, "dev", self.name, *nodad],
                    [["ip", "address", "del", address, "dev", self.name]],
                )
            )
        return changes

    def _plan_neighbours(self, address_changes: list[Change]) -> list[Change]:
        """Return the changes of neighbours, with `address_changes` between deletions and additions.

        The kernel removes an interface's neighbours together with its last address. Old neighbours
        are therefore removed before the addresses change. The undo commands, in reverse order, then
        restore the neighbours after the addresses.
        """
        neighbours, current = self._settings["neighbours"], self._read_permanent_neighbours()
        if ":" not in (self._settings.get("address") or ""):
            # IPv6 is disabled, so the kernel removes IPv6 neighbours itself.
            current = {address: mac for address, mac in current.items() if ":" not in address}
        unchanged = {
            address
            for address, mac in current.items()
            if neighbours.get(address) == mac and (not address_changes or ":" in address)
        }
        delete, flush = (["ip", "neighbour", verb] for verb in ("del", "flush"))
        device = ["dev", self.name]
        return [
            *(
                ([*delete, address, *device], [self._replace_neighbour(address, mac)])
                for address, mac in sorted(current.items())
                if address not in unchanged
            ),
            *address_changes,
            *(
                (
                    self._replace_neighbour(address, mac),
                    [[*flush, "to", address, *device, "nud", "all"]],
                )
                for address, mac in neighbours.items()
                if address not in unchanged
            ),
        ]

    def _read_permanent_neighbours(self) -> dict[str, str]:
        """Read the permanent neighbours of both families: IP address -> MAC address."""
        output = self._run("ip", "-json", "neighbour", "show", "dev", self.name, "nud", "permanent")
        entries = json.loads(output or "[]")
        return {entry["dst"]: entry["lladdr"] for entry in entries if "lladdr" in entry}

    def _replace_neighbour(self, address: str, mac: str) -> Command:
        tail = f"lladdr {mac} dev {self.name} nud permanent"
        return f"ip neighbour replace {address} {tail}".split()

    def apply(self, changes: list[Change]) -> None:
        """Run the commands of changes."""
        for command, _ in changes:
            self._run(*command)


class Card(Interface):
    """An interface whose hardware is set up (queues, rings), and whose addresses do not change."""

    def __init__(self, module: AnsibleModule, settings: dict) -> None:
        super().__init__(module, settings)
        queues = self._read_sizes("-l", ("combined", "rx", "tx"))
        # A card with combined queues may also report separate queues, which it could have instead.
        self._queues = {"combined": queues["combined"]} if "combined" in queues else queues
        self._rings = self._read_sizes("-g", ("rx", "tx"))

    def _read_sizes(self, option: str, kinds: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """Read `ethtool -l` or `-g`: kind -> (current size, maximum).

        Kinds that the driver cannot set are not in the result.
        """
        status, out, _ = self._module.run_command(["ethtool", option, self.name])
        numbers: dict[str, list[int]] = {}
        for line in out.splitlines() if status == 0 else []:
            kind, _, value = line.partition(":")
            if value.strip().isdigit():  # otherwise it is a heading, or n/a
                numbers.setdefault(kind.strip().lower(), []).append(int(value))
        return {
            kind: (numbers[kind][1], numbers[kind][0])  # ethtool prints the maxima first
            for kind in kinds
            if len(numbers.get(kind, [])) == 2 and numbers[kind][0] > 0
        }

    def describe(self) -> dict[str, object]:
        """Return an item of the result `cards` (see RETURN), which describes the card."""
        permanent_mac = self._run("ethtool", "-P", self.name).rpartition(" ")[2].strip()
        is_permanent = permanent_mac.count(":") == 5 and permanent_mac.strip("0:") != ""
        return {
            "name": self.name,
            "mac": permanent_mac if is_permanent else self._state["address"],
            "mac_is_own": is_permanent,
            "below": self._below or "",
            "queues": list(self._queues),
            "rings": list(self._rings),
        }

    def plan_changes(self) -> list[Change]:
        """Return the commands that are needed, in order, each with the commands that undo it.

        The card gets as many queues as the module's parameter `queues` says, but not more than its
        driver allows, and rings of maximum size.
        """
        count = self._module.params["queues"]
        queues = {kind: min(count, limit) for kind, (_, limit) in self._queues.items() if count}
        rings = {kind: limit for kind, (_, limit) in self._rings.items()}
        return [
            *self._plan_ipv6(),
            *self._plan_resize("-L", self._queues, queues),
            *self._plan_resize("-G", self._rings, rings),
            *self._plan_offloads(),
            *self._plan_up(),
        ]

    def _plan_resize(
        self, option: str, sizes: dict[str, tuple[int, int]], targets: dict[str, int]
    ) -> list[Change]:
        """Return the change of the queues or rings whose size differs from the target.

        Args:
            option: The option of ethtool: "-L" for queues, "-G" for rings.
            sizes: The result of _read_sizes().
            targets: kind -> size to set.
        """
        kinds = [kind for kind, size in targets.items() if sizes[kind][0] != size]

        def resize(values: dict[str, int]) -> Command:
            pairs = [(kind, str(values[kind])) for kind in kinds]
            return ["ethtool", option, self.name, *sum(pairs, ())]

        current_sizes = {kind: current for kind, (current, _) in sizes.items()}
        return [(resize(targets), [resize(current_sizes)])] if kinds else []


def record_undo(journal: str, changes: list[Change]) -> None:
    """Insert the commands that undo `changes` at the beginning of the journal.

    The journal is on disk when this function returns. nagi_agent/journal.py reads it.
    """
    earlier_commands = []
    if os.path.exists(journal):
        with open(journal, encoding="utf-8") as file:
            earlier_commands = json.load(file)["undo"]
    undo = [command for _, commands in reversed(changes) for command in commands]
    os.makedirs(os.path.dirname(journal), mode=0o755, exist_ok=True)
    partial = journal + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump({"undo": undo + earlier_commands}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, journal)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "interfaces": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "name": {"type": "str", "required": True},
                    "address": {"type": "str"},
                    "neighbours": {"type": "dict", "default": {}},
                    "mtu": {"type": "int"},
                },
            },
            "journal": {"type": "path"},
            "journals": {"type": "path"},
            "hardware": {"type": "bool", "default": False},
            "queues": {"type": "int", "default": 0},
        },
        mutually_exclusive=[("journal", "journals")],
        supports_check_mode=True,
    )
    if module.check_mode and module.get_bin_path("ethtool") is None:
        # Without check mode, another role would have installed the package before.
        names = [settings["name"] for settings in module.params["interfaces"]]
        notes = [f"{name}: changes unknown until ethtool is installed" for name in names]
        module.exit_json(changed=True, changes=notes, cards=[])
    interface_type = Card if module.params["hardware"] else Interface
    interfaces = [interface_type(module, settings) for settings in module.params["interfaces"]]
    plans = [(interface, interface.plan_changes()) for interface in interfaces]
    all_changes = [change for _, changes in plans for change in changes]
    if all_changes and not module.check_mode:
        if module.params["journal"]:
            record_undo(module.params["journal"], all_changes)
        for interface, changes in plans:
            if module.params["journals"] and changes:
                journal = os.path.join(module.params["journals"], f"{interface.name}.json")
                record_undo(journal, changes)
        for interface, changes in plans:
            interface.apply(changes)
    commands = [shlex.join(command) for command, _ in all_changes]
    cards = [interface.describe() for interface in interfaces if isinstance(interface, Card)]
    module.exit_json(changed=bool(commands), changes=commands, cards=cards)


if __name__ == "__main__":
    main()
