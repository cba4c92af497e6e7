# SPDX-License-Identifier: Apache-2.0
"""The CPU port of a switch that has no other way for packets of its controller (bmv2): a pair of
interfaces, of which the switch has one and the agent the other."""

from __future__ import annotations

import os

from nagi_agent.journal import Commands
from nagi_agent.processes import output_of

SWITCH_END, OWN_END = "nagi-cpu", "nagi-control"
_IPV6 = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"

# What removes them where an agent could not; nothing happens where they are gone.
UNDO: Commands = [["sh", "-c", f"ip link delete {SWITCH_END} 2>/dev/null || true"]]


class CpuPort:
    """They are there until it is closed. Raises RuntimeError."""

    def __init__(self) -> None:
        self.close()
        output_of(["ip", "link", "add", SWITCH_END, "type", "veth", "peer", "name", OWN_END])
        for name in (SWITCH_END, OWN_END):
            if os.path.exists(_IPV6.format(name)):  # nothing but the controller's packets
                with open(_IPV6.format(name), "w", encoding="ascii") as file:
                    file.write("1")
            output_of(["ip", "link", "set", "dev", name, "mtu", "9000", "up"])

    def close(self) -> None:
        for command in UNDO:
            output_of(command)
