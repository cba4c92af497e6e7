# SPDX-License-Identifier: Apache-2.0
"""Ansible module: test interfaces as nagi needs them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: interfaces
short_description: bring test interfaces into the state that nagi needs
description:
  - Each interface is up, with all offloads off that merge segments or leave checksums to hardware,
    and has exactly the given address (or none) and the given permanent neighbours.
  - IPv6 is off, unless the address is one of IPv6. Then the kernel sends no router solicitations
    and makes no addresses of its own.
  - If it is a VLAN or macvlan, the interface below is up, too, with the same offloads off.
  - With O(hardware) it has the wanted number of queues and the largest rings that its driver
    allows, and its addresses and neighbours are left alone.
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
        description: its name
        type: str
        required: true
      address:
        description: its address with prefix length; none for the ends of emulated links
        type: str
      neighbours:
        description: IP address to MAC address, permanent, so that no ARP crosses the link
        type: dict
        default: {}
      mtu:
        description: its MTU in bytes; as it is if not given
        type: int
  journal:
    description: a file that says how to undo everything that was changed, written before it is;
      nagi-agent carries it out
    type: path
  hardware:
    description: provision the interfaces as hardware, not with a lab's addresses
    type: bool
    default: false
  queues:
    description: with O(hardware), the number of queues in each direction; 0 leaves it
    type: int
    default: 0
"""

RETURN = r"""
changes:
  description: the commands that were (or would be) carried out
  type: list
  elements: str
  returned: always
cards:
  description: >-
    of each interface its name, its MAC address, whether that is the hardware's own, the interface
    below a VLAN or macvlan, and for which kinds of queues (combined, or rx and tx) and rings
    (rx, tx) the driver can set number or size
  type: list
  elements: dict
  returned: with O(hardware)
"""

import json
import os
import shlex

from ansible.module_utils.basic import AnsibleModule

# ethtool's long names, as `ethtool -k` prints them, and the short ones that -K wants: those of
# runtime/io/offloads.json. Ansible sends a module to hosts without data files, so it has a
# list of its own.
OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
    "rx-gro-hw": "rx-gro-hw",
}


# Of an interface that speaks IPv6, in this order: no packets of the kernel's own, which runs would
# have in them.
QUIET_IPV6 = {
    "addr_gen_mode": "1",  # no link-local addresses
    "accept_ra": "0",
    "router_solicitations": "0",
    "disable_ipv6": "0",
}

# Kinds of interfaces that are upon another, which merges segments before they have them, and must
# be up for them.
UPON_ANOTHER = ("vlan", "macvlan")

Command = list  # of words
Change = tuple  # (command, the commands that undo it, in order)


class Interface:
    """One interface: what it is, and the commands that make it what it should be."""

    def __init__(self, module: AnsibleModule, wanted: dict) -> None:
        self._module = module
        self._wanted = wanted
        self._name = wanted["name"]
        (self._state,) = json.loads(
            self._output("ip", "-details", "-json", "address", "show", self._name)
        )
        kind = self._state.get("linkinfo", {}).get("info_kind")
        self._below = self._state["link"] if kind in UPON_ANOTHER else None

    def _output(self, *command: str) -> str:
        status, out, error = self._module.run_command(list(command))
        if status != 0:
            self._module.fail_json(
                msg=f"interface {self._name}: {shlex.join(command)}: {(error or out).strip()}"
            )
        return out

    def changes(self) -> list[Change]:
        """Commands still needed, in order, each with what undoes it."""
        return [
            *self._ipv6(),
            *self._offloads(),
            *self._mtu(),
            *self._up(),
            *self._neighbours(self._address()),
        ]

    def _ipv6(self) -> list[Change]:
        if ":" in (self._wanted.get("address") or ""):
            return [
                change
                for key, value in QUIET_IPV6.items()
                for change in self._sysctl(f"net/ipv6/conf/{self._name}/{key}", value)
            ]
        key = f"net/ipv6/conf/{self._name}/disable_ipv6"
        if not os.path.exists(f"/proc/sys/{key}"):  # a kernel without IPv6
            return []
        if self._read_sysctl(key) == "1":
            return []
        # The kernel forgets the interface's addresses and neighbours; addresses of the link come
        # back by themselves.
        lost = [
            ["ip", "address", "replace", f"{info['local']}/{info['prefixlen']}", "dev", self._name]
            for info in self._state["addr_info"]
            if info["family"] == "inet6" and info["scope"] != "link" and not info.get("dynamic")
        ]
        lost += [
            self._replace_neighbour(address, mac)
            for address, mac in self._permanent_neighbours().items()
            if ":" in address
        ]
        return [(["sysctl", "-q", "-w", f"{key}=1"], [["sysctl", "-q", "-w", f"{key}=0"], *lost])]

    def _read_sysctl(self, key: str) -> str:
        try:
            with open(f"/proc/sys/{key}", encoding="ascii") as file:
                return file.read().strip()
        except OSError as error:
            self._module.fail_json(
                msg=f"interface {self._name}: cannot read {key}: {error.strerror}; "
                "the experiment has `ip_version: 6`, which needs a kernel with IPv6"
            )
            raise

    def _sysctl(self, key: str, value: str) -> list[Change]:
        before = self._read_sysctl(key)
        if before == value:
            return []
        write = ["sysctl", "-q", "-w"]
        return [([*write, f"{key}={value}"], [[*write, f"{key}={before}"]])]

    def _mtu(self) -> list[Change]:
        wanted, before = self._wanted.get("mtu"), self._state["mtu"]
        if wanted is None or wanted == before:
            return []
        resize, back = (
            ["ip", "link", "set", "dev", self._name, "mtu", str(size)] for size in (wanted, before)
        )
        return [(resize, [back])]

    def _offloads(self) -> list[Change]:
        # The interface below last: what it has not, its VLANs cannot be told to be without.
        below = self._offloads_of(self._below) if self._below else []
        return [*self._offloads_of(self._name), *below]

    def _offloads_of(self, interface: str) -> list[Change]:
        on = []
        for line in self._output("ethtool", "-k", interface).splitlines():
            name, _, value = line.strip().partition(":")
            if name in OFFLOADS and value.split() == ["on"]:  # not [fixed]
                on.append(OFFLOADS[name])
        if not on:
            return []

        def switch(state: str) -> Command:
            return ["ethtool", "-K", interface, *(word for each in on for word in (each, state))]

        return [(switch("off"), [switch("on")])]

    def _up(self) -> list[Change]:
        flags = {self._name: self._state["flags"]}
        if self._below:
            (state,) = json.loads(self._output("ip", "-json", "link", "show", self._below))
            flags = {self._below: state["flags"], **flags}
        changes = []
        for interface in (name for name in flags if "UP" not in flags[name]):
            up, down = (["ip", "link", "set", "dev", interface, way] for way in ("up", "down"))
            changes.append((up, [down]))
        return changes

    def _address(self) -> list[Change]:
        wanted = self._wanted.get("address")
        # Where IPv6 is off, its addresses have gone with it.
        families = ("inet", "inet6") if ":" in (wanted or "") else ("inet",)
        found = {
            f"{info['local']}/{info['prefixlen']}": info.get("broadcast")
            for info in self._state["addr_info"]
            if info["family"] in families and info["scope"] != "link"
        }
        changes = []
        for address in sorted(set(found) - {wanted}):
            add = ["ip", "address", "replace", address, "dev", self._name]
            if found[address]:
                add += ["broadcast", found[address]]
            # What leads through the interface goes with its address.
            ip = ["ip", "-6"] if ":" in address else ["ip"]
            shown = self._output(*ip, "route", "show", "dev", self._name).splitlines()
            routes = [
                [*ip, "route", "replace", *route.split(), "dev", self._name]
                for route in shown
                if "proto kernel" not in route and "linkdown" not in route
            ]
            changes.append((["ip", "address", "del", address, "dev", self._name], [add, *routes]))
        if wanted and wanted not in found:
            nodad = ["nodad"] if ":" in wanted else []
            changes.append(
                (
                    ["ip", "address", "add", wanted, "dev", self._name, *nodad],
                    [["ip", "address", "del", wanted, "dev", self._name]],
                )
            )
        return changes

    def _neighbours(self, addresses: list[Change]) -> list[Change]:
        """With the changes of addresses between: neighbours that are not to stay go before, and so
        come back after. With its last address the kernel forgets an interface's neighbours."""
        wanted, found = self._wanted["neighbours"], self._permanent_neighbours()
        if ":" not in (self._wanted.get("address") or ""):
            # IPv6 is off, and its neighbours have gone with it.
            found = {address: mac for address, mac in found.items() if ":" not in address}
        stay = {
            address
            for address, mac in found.items()
            if wanted.get(address) == mac and (not addresses or ":" in address)
        }
        delete, flush = (["ip", "neighbour", verb] for verb in ("del", "flush"))
        device = ["dev", self._name]
        return [
            *(
                ([*delete, address, *device], [self._replace_neighbour(address, mac)])
                for address, mac in sorted(found.items())
                if address not in stay
            ),
            *addresses,
            *(
                (
                    self._replace_neighbour(address, mac),
                    [[*flush, "to", address, *device, "nud", "all"]],
                )
                for address, mac in wanted.items()
                if address not in stay
            ),
        ]

    def _permanent_neighbours(self) -> dict[str, str]:
        """IP address -> MAC address, of both families."""
        shown = self._output(
            "ip", "-json", "neighbour", "show", "dev", self._name, "nud", "permanent"
        )
        entries = json.loads(shown or "[]")
        return {entry["dst"]: entry["lladdr"] for entry in entries if "lladdr" in entry}

    def _replace_neighbour(self, address: str, mac: str) -> Command:
        tail = f"lladdr {mac} dev {self._name} nud permanent"
        return f"ip neighbour replace {address} {tail}".split()

    def carry_out(self, changes: list[Change]) -> None:
        for command, _ in changes:
            self._output(*command)


class Card(Interface):
    """An interface as the hardware it is: its addresses are left alone."""

    def __init__(self, module: AnsibleModule, wanted: dict) -> None:
        super().__init__(module, wanted)
        queues = self._sizes("-l", ("combined", "rx", "tx"))
        # A card whose queues are pairs may say that it could have single ones instead.
        self._queues = {"combined": queues["combined"]} if "combined" in queues else queues
        self._rings = self._sizes("-g", ("rx", "tx"))

    def _sizes(self, option: str, kinds: tuple[str, ...]) -> dict[str, tuple[int, int]]:
        """What `ethtool -l` or `-g` says: kind -> (now, at most). What the driver cannot set is
        left out, which may be everything."""
        status, out, _ = self._module.run_command(["ethtool", option, self._name])
        found: dict[str, list[int]] = {}
        for line in out.splitlines() if status == 0 else []:
            kind, _, value = line.partition(":")
            if value.strip().isdigit():  # else it is a heading, or n/a
                found.setdefault(kind.strip().lower(), []).append(int(value))
        return {
            kind: (found[kind][1], found[kind][0])  # the maxima are printed first
            for kind in kinds
            if len(found.get(kind, [])) == 2 and found[kind][0] > 0
        }

    def describe(self) -> dict[str, object]:
        """What is needed to know the card again after a boot, and to set it then."""
        own = self._output("ethtool", "-P", self._name).rpartition(" ")[2].strip()
        has_own = own.count(":") == 5 and own.strip("0:") != ""
        return {
            "name": self._name,
            "mac": own if has_own else self._state["address"],
            "mac_is_own": has_own,
            "below": self._below or "",
            "queues": list(self._queues),
            "rings": list(self._rings),
        }

    def changes(self) -> list[Change]:
        """Commands still needed, in order, each with what undoes it."""
        count = self._module.params["queues"]
        queues = {kind: min(count, most) for kind, (_, most) in self._queues.items() if count}
        rings = {kind: most for kind, (_, most) in self._rings.items()}
        return [
            *self._ipv6(),
            *self._resize("-L", self._queues, queues),
            *self._resize("-G", self._rings, rings),
            *self._offloads(),
            *self._up(),
        ]

    def _resize(
        self, option: str, sizes: dict[str, tuple[int, int]], wanted: dict[str, int]
    ) -> list[Change]:
        differ = [kind for kind, size in wanted.items() if sizes[kind][0] != size]

        def resize(to: dict[str, int]) -> Command:
            pairs = [(kind, str(to[kind])) for kind in differ]
            return ["ethtool", option, self._name, *sum(pairs, ())]

        before = {kind: now for kind, (now, _) in sizes.items()}
        return [(resize(wanted), [resize(before)])] if differ else []


def note(journal: str, changes: list[Change]) -> None:
    """Puts what undoes `changes` in front of what the journal has already, on disk when this
    returns. nagi_agent/journal.py reads it."""
    before = []
    if os.path.exists(journal):
        with open(journal, encoding="utf-8") as file:
            before = json.load(file)["undo"]
    undo = [command for _, commands in reversed(changes) for command in commands]
    os.makedirs(os.path.dirname(journal), mode=0o755, exist_ok=True)
    partial = journal + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump({"undo": undo + before}, file, indent=1)
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
            "hardware": {"type": "bool", "default": False},
            "queues": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    if module.check_mode and module.get_bin_path("ethtool") is None:
        # As on a fresh host: the package would have been installed before.
        names = [wanted["name"] for wanted in module.params["interfaces"]]
        said = [f"{name}: what can only be seen when ethtool is installed" for name in names]
        module.exit_json(changed=True, changes=said, cards=[])
    kind = Card if module.params["hardware"] else Interface
    interfaces = [kind(module, wanted) for wanted in module.params["interfaces"]]
    planned = [(interface, interface.changes()) for interface in interfaces]
    everything = [change for _, changes in planned for change in changes]
    if everything and not module.check_mode:
        if module.params["journal"]:
            note(module.params["journal"], everything)
        for interface, changes in planned:
            interface.carry_out(changes)
    done = [shlex.join(command) for command, _ in everything]
    cards = [interface.describe() for interface in interfaces if isinstance(interface, Card)]
    module.exit_json(changed=bool(done), changes=done, cards=cards)


if __name__ == "__main__":
    main()
