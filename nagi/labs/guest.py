# SPDX-License-Identifier: Apache-2.0
"""A guest of the virtual lab: User-mode Linux in virtual time.

Its clock advances only when all its processes sleep. It runs in a sandbox (sandbox.py), which lets
it write to one directory and has no network. Its files are below /mnt/nagi, wherever they are
outside, so a guest sees the same on every machine. All its random numbers follow from a seed.
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

INSIDE = Path("/mnt/nagi")
OWN, AGENT, LIBRARY, NAGI_LINK = (INSIDE / name for name in ("own", "agent", "lib", "nagi-link"))
# The time of a guest's clock when it boots, in seconds since the epoch.
BOOT_S = 1_000_000_000
MEMORY_MIB = 1024  # the memory of a guest with few nodes; the guest takes it as it uses it
NEEDED_MIB = 600  # the part of it that a usual run uses
# Per further node: its agent, tcpdump, applications, the emulator's port, and memory of TCP.
_NODE_MIB = 30
_FEW_NODES = 11
CONSOLE, _INIT = "console.log", "init"
STUCK_PROCESSOR_S = 60.0
_WATCHDOG_INTERVAL_S = 2.0
_LAST_LINES, _LAST_BYTES = 4, 2000
_CONSOLE_BYTES = 256 * 1024  # the last part of the console, which is kept


@dataclass(frozen=True)
class GuestExit:
    """The exit of a guest.

    `in_time`: whether it ended before the limit. `console`: the last lines of its console; the file
    CONSOLE has more of them. `stuck`: whether the watchdog ended it. `foreign`: entries of its
    directory that were neither files nor directories, and have been removed.
    """

    in_time: bool
    wall_s: float
    console: str
    stuck: bool = False
    foreign: tuple[str, ...] = ()


# Process 1 of a sandbox. It waits for the guest, so that the guest's processor time is accounted
# (campaign/pace.py): bwrap does not wait. The guest cannot be process 1, as it ends by SIGABRT.
_FIRST = ("sh", "-c", '"$@"; exit $?', "sh")


class Guest:
    """One boot of a guest.

    The guest can write to the directory `own`. `programs` are files and directories that it sees,
    path inside -> path outside. Its first process is a shell that executes `script`.
    """

    def __init__(
        self,
        own: Path,
        programs: dict[Path, Path],
        script: str,
        seed: int,
        processor: int,
        memory_mib: int = MEMORY_MIB,
    ) -> None:
        self._own = own
        shown = {LIBRARY: guest_kernel.find_kernel_directory(), **programs}
        self._sandbox = Sandbox(shown[LIBRARY] / FILTER, {OWN: own}, shown)
        self._processor = processor  # a guest executes one thread at a time
        self._environment = {
            "NAGI_SEED": str(seed),
            "LD_PRELOAD": f"{LIBRARY / guest_kernel.PRELOADED}",
            "TMPDIR": "/dev/shm",
            "HOME": "/dev/shm",
        }
        self._command = [
            *_FIRST,
            str(LIBRARY / "linux"),
            *(f"mem={memory_mib}M", "rootfstype=hostfs", "rootflags=/", "rw", "quiet", "noreboot"),
            *("time-travel=inf-cpu", f"time-travel-start={BOOT_S}000000000", "seccomp=on"),
            *("con=null", "con0=null,fd:1", "con1=null", "panic=-1", "uml_dir=/dev/shm/uml"),
            f"init={OWN / _INIT}",
        ]
        init = own / _INIT
        init.write_text(f"#!/bin/sh\n{script}\n")
        init.chmod(0o755)

    def run(self, limit_s: float, interrupted: Callable[[], bool]) -> GuestExit:
        """Boot the guest and wait until it ends, at most `limit_s` seconds. Raises Interrupted."""
        started = time.monotonic()
        # The console is read from this descriptor: the guest could replace the file.
        with (self._own / CONSOLE).open("w+b") as log:
            process = self._sandbox.start(
                self._command, self._environment, log, processor=self._processor
            )
            watchdog = _Watchdog(process.pid, self._own)
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
                # When the sandbox ends, all its processes end. Just after the start, its first
                # process may not yet be set to die with its parent, so its group is killed.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            wall_s = time.monotonic() - started
            log.seek(max(0, log.seek(0, os.SEEK_END) - _CONSOLE_BYTES))
            console = log.read()
        foreign = _remove_all_but_files(self._own)
        (self._own / CONSOLE).unlink(missing_ok=True)
        (self._own / CONSOLE).write_bytes(console)
        return GuestExit(in_time, wall_s, _join_last_lines(console), stuck, foreign)


class _Watchdog:
    """A watchdog that ends guests which compute without recording anything.

    The clock of such a guest stands still because a scheme or a program in it never sleeps, so it
    would never end. The console does not count as a record: a kernel may repeat one message
    forever. The watchdog measures processor time, not wall time: a busy machine makes a guest slow,
    not stuck.
    """

    def __init__(self, process: int, own: Path) -> None:
        self._process = process
        self._own = own
        self._recorded_bytes = -1
        self._progress_s = 0.0
        self._next_check_s = 0.0

    def is_stuck(self) -> bool:
        """Return whether the guest has recorded nothing for STUCK_PROCESSOR_S of processor time."""
        if time.monotonic() < self._next_check_s:
            return False
        self._next_check_s = time.monotonic() + _WATCHDOG_INTERVAL_S
        processor_s = _read_processor_s(self._process)
        recorded_bytes = count_bytes(self._own, without=CONSOLE)
        if recorded_bytes != self._recorded_bytes:
            self._recorded_bytes, self._progress_s = recorded_bytes, processor_s
        return processor_s - self._progress_s > STUCK_PROCESSOR_S


def _remove_all_but_files(own: Path) -> tuple[str, ...]:
    """Remove what is neither a file nor a directory from a guest's directory; return the names.

    A scheme in the guest can make symbolic links to files of the user, and pipes that block
    readers. The permissions of the remaining entries are set so that they can be read. Sockets are
    removed but not returned: programs that were killed leave sockets.
    """
    removed = []
    for directory, names, files in os.walk(own):
        for name in (*names, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                path.chmod(0o755)
            elif stat.S_ISREG(mode):
                path.chmod(mode | 0o600)
            else:
                path.unlink()
                if not stat.S_ISSOCK(mode):
                    removed.append(str(path.relative_to(own)))
    return tuple(removed)


def _read_processor_s(pid: int) -> float:
    """Return the processor time of a process and its descendants, in seconds."""
    total_s = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total_s += sum(
                    process.cpu_times()[:4]
                )  # its own time, and that of children that have ended
    return total_s


def require_guest_support(free_mib: int | None = None) -> None:
    """Raise InputError, with the cure, if this machine cannot execute guests.

    Args:
        free_mib: the free memory; by default, that of this machine
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
    """Raise InputError if this machine cannot execute guests of any kernel.

    Args:
        filter_: the seccomp filter that is tried; None before it is built
        free_mib: the free memory; by default, that of this machine
    """
    require_sandbox(filter_)
    if shutil.which("taskset") is None:
        raise refuse("the virtual lab needs taskset", "install it: `apt-get install util-linux`")
    free = read_free_memory_mib() if free_mib is None else free_mib
    require_memory(NEEDED_MIB, free)


def choose_memory_mib(nodes: int) -> int:
    """Return the memory that a guest with `nodes` nodes gets, in MiB."""
    return MEMORY_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def estimate_memory_mib(nodes: int) -> int:
    """Return how much memory of this machine a guest with `nodes` nodes uses, in MiB."""
    return NEEDED_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def require_memory(needed: int, free: int) -> None:
    """Raise InputError if less memory is free than a guest needs, both in MiB."""
    if free < needed:
        nodes = _FEW_NODES + max(0, free - NEEDED_MIB) // _NODE_MIB
        fewer = f", or plan {nodes} nodes or fewer" if needed > NEEDED_MIB else ""
        raise refuse(
            f"a guest of the virtual lab takes {needed} MB of memory, and {free} are free",
            f"end other programs{fewer}",
        )


def list_processors() -> list[int]:
    """Return the processors that this process may use."""
    return sorted(os.sched_getaffinity(0))


def read_free_memory_mib() -> int:
    """Return the memory that programs can use without swapping, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def _join_last_lines(console: bytes) -> str:
    """Return the last lines of a console, joined by slashes."""
    lines = console[-_LAST_BYTES:].decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
