# SPDX-License-Identifier: Apache-2.0
"""Create a CPU port for a switch that exchanges packets with its controller by an interface (bmv2).

The CPU port is a veth pair. The switch has one end, the agent has the other.
"""

from __future__ import annotations

import os

from nagi_agent.journal import Commands
from nagi_agent.processes import run_command

SWITCH_END, OWN_END = "nagi-cpu", "nagi-control"
_IPV6 = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"

# Commands that remove the interfaces if the agent could not. They do nothing if both are gone.
UNDO: Commands = [["sh", "-c", f"ip link delete {SWITCH_END} 2>/dev/null || true"]]


class CpuPort:
    """A pair of interfaces that exists until close() is called.

    Raises:
        RuntimeError: the interfaces cannot be created.
    """

    def __init__(self) -> None:
        self.close()
        run_command(["ip", "link", "add", SWITCH_END, "type", "veth", "peer", "name", OWN_END])
        for name in (SWITCH_END, OWN_END):
            if os.path.exists(_IPV6.format(name)):  # so that only the controller sends packets
                with open(_IPV6.format(name), "w", encoding="ascii") as file:
                    file.write("1")
            run_command(["ip", "link", "set", "dev", name, "mtu", "9000", "up"])

    def close(self) -> None:
        for command in UNDO:
            run_command(command)
