# SPDX-License-Identifier: Apache-2.0
"""A guest of the virtual lab: User-mode Linux in virtual time.

The guest's clock advances only when all processes of the guest sleep. The guest runs in a sandbox
(sandbox.py) without a network, and can write to one directory only. The guest sees nagi's files
below /mnt/nagi, whatever their paths on the host are, so paths in guests are equal everywhere. All
random numbers of the guest follow from a seed.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from nagi_contracts.errors import refuse

from nagi.disk import count_bytes
from nagi.labs import guest_kernel
from nagi.labs.errors import Interrupted
from nagi.sandbox import FILTER, Sandbox, require_sandbox

MOUNT_POINT = Path("/mnt/nagi")  # the directory in which guests see nagi's files
WRITABLE, AGENT, LIBRARY, NAGI_LINK = (
    MOUNT_POINT / name for name in ("own", "agent", "lib", "nagi-link")
)
# The time of a guest's clock when it boots, in seconds since the epoch.
BOOT_S = 1_000_000_000
# The memory of a guest with up to _FEW_NODES nodes. The host allocates it when the guest uses it.
MEMORY_MIB = 1024
NEEDED_MIB = 600  # the memory that such a guest usually uses
# Per further node: its agent, tcpdump, applications, the emulator's port, and memory of TCP.
_NODE_MIB = 30
_FEW_NODES = 11
CONSOLE, _INIT = "console.log", "init"
STUCK_PROCESSOR_S = 60.0  # processor time without a record after which a guest is ended
_WATCHDOG_INTERVAL_S = 2.0
_LAST_LINES, _LAST_BYTES = 4, 2000  # the end of the console, for messages
_CONSOLE_BYTES = 256 * 1024  # the end of the console, for the file


@dataclass(frozen=True)
class GuestExit:
    """The exit of a guest.

    Attributes:
        in_time: Whether the guest ended by itself before the limit.
        wall_s: How long the guest ran, in seconds of wall time.
        console: The last lines of its console; the file CONSOLE has more lines.
        stuck: Whether the watchdog ended the guest.
        removed: The paths of entries of the guest's directory that were removed, because they were
            neither files nor directories, such as symbolic links.
    """

    in_time: bool
    wall_s: float
    console: str
    stuck: bool = False
    removed: tuple[str, ...] = ()


# Process 1 of a sandbox, a shell. It waits for the guest, so that the guest's processor time counts
# as time of nagi's children (campaign/pace.py), because bwrap does not wait. The guest itself
# cannot be process 1, because it ends by SIGABRT.
_SHELL = ("sh", "-c", '"$@"; exit $?', "sh")


class Guest:
    """One boot of a guest."""

    def __init__(
        self,
        directory: Path,
        mounts: dict[Path, Path],
        script: str,
        seed: int,
        processor: int,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        """Write the script to the guest's directory.

        Args:
            directory: The directory to which the guest can write; the guest sees it as WRITABLE.
            mounts: Path in the guest -> file or directory of the host that the guest can read.
            script: Shell commands, which the guest's first process executes.
            seed: The seed of the guest's random numbers.
            processor: The host's processor on which the guest runs. The guest executes only one
                thread at a time.
            memory_mib: The memory of the guest.
        """
        self._directory = directory
        readable = {LIBRARY: guest_kernel.find_kernel_directory(), **mounts}
        self._sandbox = Sandbox(readable[LIBRARY] / FILTER, {WRITABLE: directory}, readable)
        self._processor = processor
        self._environment = {
            "NAGI_SEED": str(seed),
            "LD_PRELOAD": f"{LIBRARY / guest_kernel.PRELOADED}",
            "TMPDIR": "/dev/shm",
            "HOME": "/dev/shm",
        }
        self._command = [
            *_SHELL,
            str(LIBRARY / "linux"),
            *(f"mem={memory_mib}M", "rootfstype=hostfs", "rootflags=/", "rw", "quiet", "noreboot"),
            *("time-travel=inf-cpu", f"time-travel-start={BOOT_S}000000000", "seccomp=on"),
            *("con=null", "con0=null,fd:1", "con1=null", "panic=-1", "uml_dir=/dev/shm/uml"),
            f"init={WRITABLE / _INIT}",
        ]
        init = directory / _INIT
        init.write_text(f"#!/bin/sh\n{script}\n")
        init.chmod(0o755)

    def run(self, limit_s: float, interrupted: Callable[[], bool]) -> GuestExit:
        """Boot the guest and wait for its end.

        The guest is killed after `limit_s`, if it is stuck, or if the user asks to stop. After its
        end, entries of its directory that are neither files nor directories are removed, and the
        file CONSOLE gets the end of its console. Neither is done after a stop by the user.

        Args:
            limit_s: The limit, in seconds of wall time.
            interrupted: A function that returns whether the user asked to stop.

        Raises:
            Interrupted: The user asked to stop.
        """
        started = time.monotonic()
        # The console is read by this descriptor, because the guest could replace the file.
        with (self._directory / CONSOLE).open("w+b") as log:
            process = self._sandbox.start(
                self._command, self._environment, log, processor=self._processor
            )
            watchdog = _Watchdog(process.pid, self._directory)
            stuck = False
            try:
                while process.poll() is None and time.monotonic() - started < limit_s:
                    if interrupted():
                        raise Interrupted
                    stuck = watchdog.is_stuck()
                    if stuck:
                        break
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(0.05)
                in_time = process.poll() is not None
            finally:
                # At the end of the sandbox, the kernel ends all its processes. Just after the
                # start, this may not be set up yet, so the whole process group is killed.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            wall_s = time.monotonic() - started
            log.seek(max(0, log.seek(0, os.SEEK_END) - _CONSOLE_BYTES))
            console = log.read()
        removed = _remove_special_files(self._directory)
        (self._directory / CONSOLE).unlink(missing_ok=True)
        (self._directory / CONSOLE).write_bytes(console)
        return GuestExit(in_time, wall_s, _join_last_lines(console), stuck, removed)


class _Watchdog:
    """Detects a guest that computes without writing records.

    The clock of such a guest stands still because a scheme or a program in the guest never sleeps,
    so the guest would never end. Output on the console does not count as a record, because a kernel
    may repeat one message forever. The watchdog measures processor time and not wall time, because
    a guest on a busy machine is slow, but not stuck.
    """

    def __init__(self, pid: int, directory: Path) -> None:
        self._pid = pid
        self._directory = directory
        self._recorded_bytes = -1
        self._progress_s = 0.0
        self._next_check_s = 0.0

    def is_stuck(self) -> bool:
        """Return whether the guest has recorded nothing for STUCK_PROCESSOR_S of processor time.

        The guest is checked every _WATCHDOG_INTERVAL_S. Calls between two checks return False.
        """
        if time.monotonic() < self._next_check_s:
            return False
        self._next_check_s = time.monotonic() + _WATCHDOG_INTERVAL_S
        processor_s = _read_processor_s(self._pid)
        recorded_bytes = count_bytes(self._directory, without=CONSOLE)
        if recorded_bytes != self._recorded_bytes:
            self._recorded_bytes, self._progress_s = recorded_bytes, processor_s
        return processor_s - self._progress_s > STUCK_PROCESSOR_S


def _remove_special_files(directory: Path) -> tuple[str, ...]:
    """Remove all entries of a guest's directory that are neither files nor directories.

    A scheme in the guest can make symbolic links to files of the user, and pipes that block
    readers. The permissions of the remaining entries are set so that they can be read.

    Returns:
        The relative paths of removed entries, without sockets, which killed programs leave.
    """
    removed = []
    for parent, names, files in os.walk(directory):
        for name in (*names, *files):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                path.chmod(0o755)
            elif stat.S_ISREG(mode):
                path.chmod(mode | 0o600)
            else:
                path.unlink()
                if not stat.S_ISSOCK(mode):
                    removed.append(str(path.relative_to(directory)))
    return tuple(removed)


def _read_processor_s(pid: int) -> float:
    """Return the processor time of a process and its descendants, in seconds."""
    total_s = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                # User and system time of the process and of its children that have ended.
                total_s += sum(process.cpu_times()[:4])
    return total_s


def require_guest_support(free_mib: int | None = None) -> None:
    """Raise InputError, with the cure, if this machine cannot execute guests.

    Args:
        free_mib: The free memory, in MiB; by default, that of this machine.
    """
    guest_kernel.require_installed()
    require_machine(require_filter(), free_mib)


def require_filter() -> Path:
    """Return the file with the seccomp filter of guests. Raises InputError if it does not exist."""
    file = guest_kernel.find_kernel_directory() / FILTER
    if not file.exists():
        raise refuse(
            f"the virtual lab's sandbox has no filter {file}",
            "build it: `make virtual-lab`, or install nagi again",
        )
    return file


def require_machine(filter_: Path | None = None, free_mib: int | None = None) -> None:
    """Raise InputError if this machine cannot execute guests. The guest kernel is not checked.

    Args:
        filter_: The seccomp filter to try, or None to try the sandbox without a filter.
        free_mib: The free memory, in MiB; by default, that of this machine.
    """
    require_sandbox(filter_)
    if shutil.which("taskset") is None:
        raise refuse("the virtual lab needs taskset", "install it: `apt-get install util-linux`")
    require_memory(NEEDED_MIB, read_free_memory_mib() if free_mib is None else free_mib)


def choose_memory_mib(nodes: int) -> int:
    """Return the memory to give to a guest with `nodes` nodes, in MiB."""
    return MEMORY_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def estimate_memory_mib(nodes: int) -> int:
    """Return the memory that a guest with `nodes` nodes is expected to use, in MiB."""
    return NEEDED_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def require_memory(needed_mib: int, free_mib: int) -> None:
    """Raise InputError if less memory is free than a guest needs."""
    if free_mib < needed_mib:
        max_nodes = _FEW_NODES + max(0, free_mib - NEEDED_MIB) // _NODE_MIB
        fewer = f", or plan {max_nodes} nodes or fewer" if needed_mib > NEEDED_MIB else ""
        raise refuse(
            f"a guest of the virtual lab needs {needed_mib} MB of memory, and {free_mib} MB "
            "are free",
            f"end other programs{fewer}",
        )


def list_processors() -> list[int]:
    """Return the numbers of the processors that this process may use, in ascending order."""
    return sorted(os.sched_getaffinity(0))


def read_free_memory_mib() -> int:
    """Return the available memory of this machine (MemAvailable), in MiB; 0 if not known."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def _join_last_lines(console: bytes) -> str:
    """Return the last lines of a console, joined by slashes."""
    lines = console[-_LAST_BYTES:].decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
