# SPDX-License-Identifier: Apache-2.0
"""Read facts about this host: kernel, programs, offloads, interfaces and processor time."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from typing import NamedTuple, Optional

from nagi_agent.contracts import OFFLOADS, HostFacts
from nagi_agent.processes import run_command

_IFF_UP = 0x1  # linux/if.h


def list_harmful_offloads(interface: str, *, fixed_only: bool = False) -> list[str]:
    """Return the names of the offloads in OFFLOADS that are switched on at an interface.

    Args:
        interface: name of the interface.
        fixed_only: return only the offloads that cannot be switched off.
    """
    offloads = []
    for line in run_command(["ethtool", "-k", interface]).splitlines():
        name, _, value = line.partition(":")
        if name not in OFFLOADS or value.split()[:1] != ["on"]:
            continue
        if not fixed_only or "[fixed]" in value:
            offloads.append(name)
    return offloads


def require_up(interfaces: list[str]) -> None:
    """Raise RuntimeError if an interface is missing, is down, or has no carrier."""
    for name in interfaces:
        directory = f"/sys/class/net/{name}"
        try:
            with open(f"{directory}/flags", encoding="ascii") as file:
                flags = int(file.read(), 16)
        except FileNotFoundError:
            raise RuntimeError(f"interface {name} is missing") from None
        if not flags & _IFF_UP:
            raise RuntimeError(f"interface {name} is down")
        with open(f"{directory}/carrier", encoding="ascii") as file:  # of an interface that is up
            has_carrier = file.read().strip() == "1"
        if not has_carrier:
            raise RuntimeError(f"interface {name} has no carrier; check its cable")


def read_mtu(interface: str) -> int:
    """Return the MTU of an interface, in bytes of IP packets."""
    with open(f"/sys/class/net/{interface}/mtu", encoding="ascii") as file:
        return int(file.read())


def read_version(program: str, *arguments: str) -> str:
    """Return the first line that a program prints about its version.

    Args:
        program: the program.
        arguments: arguments with which the program prints its version.

    Returns:
        The line; "missing" if the program does not exist, "unknown" if it prints nothing.
    """
    try:
        result = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except OSError:
        return "missing"
    lines = result.stdout.splitlines()
    return lines[0].strip() if lines else "unknown"


def try_to_read_version(program: str) -> tuple[Optional[str], Optional[str]]:
    """Return (version, None), or (None, error) if the program cannot print its version."""
    try:
        return run_command([program, "--version"]).strip(), None
    except (OSError, RuntimeError) as error:
        return None, str(error)


@functools.lru_cache(maxsize=None)
def read_facts() -> HostFacts:
    """Return the facts about this host that do not change between runs; read once per process."""
    return HostFacts(
        kernel=platform.release(),
        machine=platform.machine(),
        processors=os.cpu_count() or 1,
        python=platform.python_version(),
        programs={
            "iperf": read_version("iperf", "-v"),
            "tcpdump": read_version("tcpdump", "--version"),
            "ip": read_version("ip", "-V"),
            "ethtool": read_version("ethtool", "--version"),
        },
        boot_id=read_boot_id(),
    )


def read_boot_id() -> str:
    """Return the identifier that Linux gives to each boot of this machine."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class Ticks(NamedTuple):
    """Clock ticks of all processors since boot, from /proc/stat. See proc(5)."""

    all: int
    busy: int  # programs of ordinary priority, the kernel, and interrupts
    nice: int  # programs with a nice value of 1 to 19
    stolen: Optional[int]  # time that a hypervisor gave to other guests; None if not counted


def count_memory_pressures() -> int:
    """Return how often TCP entered memory pressure since this network namespace was created."""
    with open("/proc/net/netstat", encoding="ascii") as file:
        names, values = (line.split() for line in file if line.startswith("TcpExt:"))
    return int(values[names.index("TCPMemoryPressures")])


def read_processor_ticks(root: str = "/") -> Ticks:
    """Return the current counters of processor time.

    Args:
        root: the directory that contains /proc, for tests.
    """
    with open(os.path.join(root, "proc/stat"), encoding="ascii") as file:
        fields = [int(value) for value in file.readline().split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, *stolen = fields
    return Ticks(
        all=sum(fields),
        busy=user + system + interrupts + soft_interrupts,
        nice=nice,
        stolen=stolen[0] if stolen else None,
    )
