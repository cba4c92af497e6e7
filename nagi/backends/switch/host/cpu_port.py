# SPDX-License-Identifier: Apache-2.0
"""Create the CPU port of bmv2's switch: a veth pair between the switch and the agent.

bmv2 exchanges packets with a controller only over an interface. Here the agent is the controller.
"""

from __future__ import annotations

import os

from nagi_agent.journal import Commands
from nagi_agent.processes import run_command

SWITCH_INTERFACE, AGENT_INTERFACE = "nagi-cpu", "nagi-control"
_IPV6 = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"

# Commands that remove both interfaces. They have no effect if the interfaces do not exist.
UNDO: Commands = [["sh", "-c", f"ip link delete {SWITCH_INTERFACE} 2>/dev/null || true"]]


class CpuPort:
    """A veth pair that exists until close() is called. A pair of an earlier run is removed first.

    Raises:
        RuntimeError: The interfaces cannot be created.
    """

    def __init__(self) -> None:
        self.close()
        names = (SWITCH_INTERFACE, AGENT_INTERFACE)
        run_command(["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]])
        for name in names:
            # Without IPv6, only the controller and the switch send packets over the interfaces.
            if os.path.exists(_IPV6.format(name)):
                with open(_IPV6.format(name), "w", encoding="ascii") as file:
                    file.write("1")
            run_command(["ip", "link", "set", "dev", name, "mtu", "9000", "up"])

    def close(self) -> None:
        for command in UNDO:
            run_command(command)
