# SPDX-License-Identifier: Apache-2.0
"""Flows of nagi-traffic (hosts/traffic), which comes in the agent's own file and is handed
on in memory, so a host keeps nothing of it.

An end writes its result, a line of JSON, when it is over or gets SIGTERM. The agent collects none
of bulk flows.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import lru_cache
from typing import Optional

from nagi_agent import programs
from nagi_agent.contracts import FlowPlan
from nagi_agent.processes import unprivileged

NAGI_TRAFFIC = "nagi-traffic"
# Names of settings end with their unit, those of options do not: bare numbers count the same units.
_UNITS = ("_bytes", "_ns", "_bps")
_DRAWING = ("request_response", "poisson", "onoff")  # they take a seed


@lru_cache(maxsize=None)
def _in_memory() -> int:
    """A descriptor of the executable. Raises RuntimeError."""
    found = programs.read("programs", NAGI_TRAFFIC)
    descriptor = os.memfd_create(NAGI_TRAFFIC)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(found)
    return descriptor


def executable() -> tuple[str, int]:
    """Its path for a process that is given the descriptor, and the descriptor."""
    descriptor = _in_memory()
    return f"/proc/self/fd/{descriptor}", descriptor


def problem() -> Optional[str]:
    """Why nagi-traffic does not run on this host; None if it does."""
    try:
        path, descriptor = executable()
        done = subprocess.run(
            [path, "--version"],
            pass_fds=(descriptor,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except (OSError, RuntimeError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    return f"{NAGI_TRAFFIC} does not run here: {done.stderr.strip()}"


def is_udp(flow: FlowPlan) -> bool:
    """Whether an application sends datagrams."""
    settings = flow.application or {}
    return flow.traffic == "cbr" or settings.get("transport") == "udp"


def waits_for_packets(flow: FlowPlan) -> bool:
    """Whether its server goes on when its client has ended: datagrams may still be on the way, or a
    connection that was just asked for."""
    return is_udp(flow) or flow.traffic == "poisson"


def command(flow: FlowPlan, role: str, user: str, seed: int = 0) -> tuple[list[str], int]:
    """Return the command line of an end, and the descriptor that it needs. `seed`: the run's."""
    path, descriptor = executable()
    settings = dict(flow.application or {})
    settings.pop("application", None)
    listener, other = flow.receiver_address, flow.sender_address
    if flow.listens == "sender":
        listener, other = other, listener
    # Any congestion control that the kernel has, also one that is restricted.
    line = [
        *unprivileged(user, "net_admin"),
        path,
        flow.traffic.replace("_", "-"),
        role,
    ]
    line += ["--address", listener, "--port", str(flow.port)]
    if role == "client":
        line += ["--from", other]
    # A scheme of ours is registered where data come from; the other end has its route's.
    sends = (role == "server") == (flow.listens == "sender")
    if sends and not is_udp(flow):
        line += ["--congestion-control", flow.congestion_control]
    if flow.traffic in _DRAWING:
        line += ["--seed", str(seed), "--stream", flow.name]
    for name, value in settings.items():
        unit = next((each for each in _UNITS if name.endswith(each)), "")
        option = "--" + name[: len(name) - len(unit)].replace("_", "-")
        line += [option] if value is True else [option, str(value)]
    return line, descriptor


def check_result(path: str, who: str) -> None:
    """Raises RuntimeError if an end has left no result."""
    try:
        with open(path, encoding="utf-8") as file:
            json.load(file)
    except (OSError, ValueError):
        raise RuntimeError(f"{who} left no result") from None
