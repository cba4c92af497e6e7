# SPDX-License-Identifier: Apache-2.0
"""Ansible module: test interfaces as nagi needs them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nagi_interfaces
short_description: bring test interfaces into the state that nagi needs
description:
  - Each interface is up, without IPv6, with all offloads off that merge segments or leave checksums
    to hardware, and has exactly the given address (or none) and the given permanent neighbours.
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
        description: its IPv4 address with prefix length; none for the ends of emulated links
        type: str
      neighbours:
        description: IPv4 address to MAC address, permanent, so that no ARP crosses the link
        type: dict
        default: {}
"""

RETURN = r"""
changes:
  description: the commands that were (or would be) carried out
  type: list
  elements: str
  returned: always
"""

import json
import shlex

from ansible.module_utils.basic import AnsibleModule

# ethtool's long names, as `ethtool -k` prints them, and the short ones that -K wants.
OFFLOADS = {
    "tx-checksumming": "tx",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}


class Interface:
    """One interface: what it is, and the commands that make it what it should be."""

    def __init__(self, module: AnsibleModule, wanted: dict) -> None:
        self._module = module
        self._wanted = wanted
        self._name = wanted["name"]

    def _output(self, *command: str) -> str:
        status, out, error = self._module.run_command(list(command))
        if status != 0:
            self._module.fail_json(
                msg=f"interface {self._name}: {shlex.join(command)}: {(error or out).strip()}"
            )
        return out

    def changes(self) -> list[list[str]]:
        """Commands still needed, in order."""
        (state,) = json.loads(self._output("ip", "-json", "address", "show", "dev", self._name))
        return [
            *self._ipv6(),
            *self._offloads(),
            *([] if "UP" in state["flags"] else [["ip", "link", "set", self._name, "up"]]),
            *self._address(state),
            *self._neighbours(),
        ]

    def _ipv6(self) -> list[list[str]]:
        key = f"net/ipv6/conf/{self._name}/disable_ipv6"
        try:
            with open(f"/proc/sys/{key}", encoding="ascii") as file:
                disabled = file.read().strip() == "1"
        except FileNotFoundError:  # a kernel without IPv6
            return []
        return [] if disabled else [["sysctl", "-q", "-w", f"{key}=1"]]

    def _offloads(self) -> list[list[str]]:
        on = []
        for line in self._output("ethtool", "-k", self._name).splitlines():
            name, _, value = line.strip().partition(":")
            if name in OFFLOADS and value.split()[:1] == ["on"]:
                on += [OFFLOADS[name], "off"]
        return [["ethtool", "-K", self._name, *on]] if on else []

    def _address(self, state: dict) -> list[list[str]]:
        wanted = self._wanted.get("address")
        found = {
            f"{info['local']}/{info['prefixlen']}"
            for info in state["addr_info"]
            if info["family"] == "inet"
        }
        commands = [
            ["ip", "address", "del", address, "dev", self._name]
            for address in sorted(found - {wanted})
        ]
        if wanted and wanted not in found:
            commands.append(["ip", "address", "add", wanted, "dev", self._name])
        return commands

    def _neighbours(self) -> list[list[str]]:
        shown = json.loads(
            self._output("ip", "-json", "neighbour", "show", "dev", self._name, "nud", "permanent")
            or "[]"
        )
        found = {entry["dst"]: entry.get("lladdr") for entry in shown}
        return [
            f"ip neighbour replace {address} lladdr {mac} dev {self._name} nud permanent".split()
            for address, mac in self._wanted["neighbours"].items()
            if found.get(address) != mac
        ]

    def carry_out(self, commands: list[list[str]]) -> None:
        for command in commands:
            self._output(*command)


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
                },
            }
        },
        supports_check_mode=True,
    )
    done = []
    for wanted in module.params["interfaces"]:
        interface = Interface(module, wanted)
        commands = interface.changes()
        if not module.check_mode:
            interface.carry_out(commands)
        done += [shlex.join(command) for command in commands]
    module.exit_json(changed=bool(done), changes=done)


if __name__ == "__main__":
    main()
