# SPDX-License-Identifier: Apache-2.0
"""What kind of host this is: kernel, programs, offloads, how busy its processors are."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
from typing import NamedTuple, Optional

from nagi_agent.contracts import OFFLOADS, HostFacts
from nagi_agent.processes import output_of


def harmful_offloads(interface: str, *, fixed_only: bool = False) -> list[str]:
    """Those of the harmful offloads that are on, or that are on and cannot be switched off."""
    on = []
    for line in output_of(["ethtool", "-k", interface]).splitlines():
        name, _, value = line.partition(":")
        if name not in OFFLOADS or value.split()[:1] != ["on"]:
            continue
        if not fixed_only or "[fixed]" in value:
            on.append(name)
    return on


def require_up(interfaces: list[str]) -> None:
    """Raises RuntimeError if an interface is down, or has no carrier."""
    state = {
        link["ifname"]: link["flags"] for link in json.loads(output_of(["ip", "-json", "link"]))
    }
    for name in interfaces:
        if "UP" not in state.get(name, []):
            raise RuntimeError(f"interface {name} is {'down' if name in state else 'missing'}")
        if "LOWER_UP" not in state[name]:
            raise RuntimeError(f"interface {name} has no carrier: is its cable plugged in?")


def version_of(program: str, *arguments: str) -> str:
    """The first line with which a program says its version; 'missing' if it is not there."""
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError:
        return "missing"
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines else "unknown"


@functools.lru_cache(maxsize=None)
def facts() -> HostFacts:
    """What does not change from run to run."""
    return HostFacts(
        kernel=platform.release(),
        machine=platform.machine(),
        processors=os.cpu_count() or 1,
        python=platform.python_version(),
        programs={
            "iperf": version_of("iperf", "-v"),
            "tcpdump": version_of("tcpdump", "--version"),
            "ip": version_of("ip", "-V"),
            "ethtool": version_of("ethtool", "--version"),
        },
        boot_id=boot_id(),
    )


def boot_id() -> str:
    """Names this boot of this machine's kernel."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Ticks(NamedTuple):
    """Clock ticks of all processors since boot, from /proc/stat; see proc(5)."""

    all: int
    busy: int  # with programs of ordinary priority, the kernel and interrupts
    nice: int  # with programs that give way to others: nice 1 to 19
    stolen: Optional[int]  # which a hypervisor gave to others; None: the kernel does not tell


def memory_pressures() -> int:
    """How often TCP of this network namespace has run short of memory since it was made."""
    with open("/proc/net/netstat", encoding="ascii") as file:
        names, values = (line.split() for line in file if line.startswith("TcpExt:"))
    return int(values[names.index("TCPMemoryPressures")])


def processor_ticks(root: str = "/") -> Ticks:
    """Those of now. `root`: where /proc is."""
    with open(os.path.join(root, "proc/stat"), encoding="ascii") as file:
        fields = [int(value) for value in file.readline().split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, *stolen = fields
    return Ticks(
        all=sum(fields),
        busy=user + system + interrupts + soft_interrupts,
        nice=nice,
        stolen=stolen[0] if stolen else None,
    )
