# SPDX-License-Identifier: Apache-2.0
"""Build the command lines of nagi-traffic (hosts/traffic), which sends the traffic of flows.

nagi-traffic is part of the agent's zip file. The agent starts it from memory, and leaves no copy on
the host. Client and server each write a result, one line of JSON, when they end or get SIGTERM.
The results of bulk flows are not collected.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import lru_cache
from typing import Optional

from nagi_agent import programs
from nagi_agent.contracts import FlowPlan
from nagi_agent.processes import build_setpriv_prefix

NAGI_TRAFFIC = "nagi-traffic"
# Suffixes of the plan's settings. The options of nagi-traffic have the same units, but no suffix.
_UNITS = ("_bytes", "_ns", "_bps")
_RANDOM = ("request_response", "poisson", "onoff")  # applications that draw random numbers


@lru_cache(maxsize=None)
def _load_executable() -> int:
    """Load nagi-traffic into memory, once per process, and return its file descriptor.

    Raises:
        RuntimeError: The program is missing.
    """
    content = programs.read_program("programs", NAGI_TRAFFIC)
    descriptor = os.memfd_create(NAGI_TRAFFIC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor


def get_executable() -> tuple[str, int]:
    """Return a path of nagi-traffic, and the descriptor that a process must inherit to execute it.

    Raises:
        RuntimeError: The program is missing.
    """
    descriptor = _load_executable()
    return f"/proc/self/fd/{descriptor}", descriptor


def find_problem() -> Optional[str]:
    """Return why nagi-traffic does not run on this host, or None."""
    try:
        path, descriptor = get_executable()
        result = subprocess.run(
            [path, "--version"],
            pass_fds=(descriptor,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except (OSError, RuntimeError) as error:
        return str(error)
    if result.returncode == 0:
        return None
    return f"{NAGI_TRAFFIC} does not run on this host: {result.stderr.strip()}"


def is_udp(flow: FlowPlan) -> bool:
    """Return whether a flow's application sends UDP datagrams."""
    settings = flow.application or {}
    return flow.traffic == "cbr" or settings.get("transport") == "udp"


def waits_for_packets(flow: FlowPlan) -> bool:
    """Return whether a flow's server must continue after its client has ended.

    Datagrams, or the SYN of a new connection, may still be on the path.
    """
    return is_udp(flow) or flow.traffic == "poisson"


def build_command(flow: FlowPlan, role: str, user: str, seed: int = 0) -> tuple[list[str], int]:
    """Return the command line of a flow's client or server, and the descriptor to inherit.

    Args:
        flow: the flow.
        role: "client" or "server".
        user: the user that runs nagi-traffic.
        seed: the run's seed.

    Raises:
        RuntimeError: nagi-traffic is missing.
    """
    path, descriptor = get_executable()
    settings = dict(flow.application or {})
    settings.pop("application", None)
    server_address, client_address = flow.receiver_address, flow.sender_address
    if flow.listening_end == "sender":
        server_address, client_address = client_address, server_address
    # CAP_NET_ADMIN permits restricted congestion controls as well.
    line = [
        *build_setpriv_prefix(user, "net_admin"),
        path,
        flow.traffic.replace("_", "-"),
        role,
    ]
    line += ["--address", server_address, "--port", str(flow.port)]
    if role == "client":
        line += ["--from", client_address]
    # A scheme of nagi is registered on the sender's host only. The receiver uses the congestion
    # control of its route.
    sends = (role == "server") == (flow.listening_end == "sender")
    if sends and not is_udp(flow):
        line += ["--congestion-control", flow.congestion_control]
    if flow.traffic in _RANDOM:
        line += ["--seed", str(seed), "--stream", flow.name]
    for name, value in settings.items():
        unit = next((suffix for suffix in _UNITS if name.endswith(suffix)), "")
        option = "--" + name[: len(name) - len(unit)].replace("_", "-")
        line += [option] if value is True else [option, str(value)]
    return line, descriptor


def check_result(path: str, application: str) -> None:
    """Raise RuntimeError unless the file `path` contains JSON, the result of an application.

    Args:
        path: path of the result.
        application: name of the application for the message.
    """
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
    except (OSError, ValueError):
        raise RuntimeError(f"{application} wrote no valid result") from None
