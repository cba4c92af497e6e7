# SPDX-License-Identifier: Apache-2.0
"""A guest of the virtual lab: User-mode Linux, whose clock moves only when everything in it sleeps.

It runs in a sandbox (sandbox.py) that lets it write to one directory of its own and reach no
network. In there, and so in the guest, what it needs is below /mnt/nagi, wherever it is outside: a
guest sees the same on every machine. What it draws at random follows from a seed.
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
OWN, AGENT, LIBRARY, NAGI_LINK, NAGI_SWITCH, NAGI_FPGA = (
    INSIDE / name for name in ("own", "agent", "lib", "nagi-link", "nagi-switch", "nagi-fpga")
)
# What a guest's clock says when it boots, seconds since the epoch.
BOOT_S = 1_000_000_000
MEMORY_MIB = 1024  # of a guest of few nodes; taken as it is used
NEEDED_MIB = 600  # of them are, of a usual run
# What a node more takes: its agent, tcpdump, applications, the emulator's port, and TCP's part.
_NODE_MIB = 30
_FEW_NODES = 11
CONSOLE, _INIT = "console.log", "init"
STUCK_PROCESSOR_S = 60.0
_LOOK_EVERY_S = 2.0
_LAST_LINES, _LAST_BYTES = 4, 2000
_CONSOLE_BYTES = 256 * 1024  # that are kept, from the end


@dataclass(frozen=True)
class Ended:
    """The end of a guest.

    `console`: its last lines; CONSOLE has more of them. `stuck`: the watchdog ended it. `planted`:
    what it left that is neither a file nor a directory, and has been removed."""

    in_time: bool
    wall_s: float
    console: str
    stuck: bool = False
    planted: tuple[str, ...] = ()


# A sandbox's process 1. bwrap does not wait for one of its own, so that nobody would know what the
# guest took of the processors (campaign/pace.py); the guest cannot be it, as it ends by SIGABRT.
_FIRST = ("sh", "-c", '"$@"; exit $?', "sh")


class Guest:
    """One boot. `own` is the directory it may write to, `programs` what else it sees below
    /mnt/nagi: name -> file or directory outside. Its first process is a shell with `script`."""

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
        shown = {LIBRARY: guest_kernel.directory(), **programs}
        self._sandbox = Sandbox(shown[LIBRARY] / FILTER, {OWN: own}, shown)
        self._processor = processor  # it is one thread at a time
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

    def run(self, limit_s: float, interrupted: Callable[[], bool]) -> Ended:
        """Boots it and waits for its end, or ends it after `limit_s`. Raises Interrupted."""
        started = time.monotonic()
        # The console is read from this descriptor: the guest may put something else in its place.
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
                # Its end is that of the sandbox, and so of everything in it. Just after the start,
                # the sandbox's first process may not yet have asked to die with its parent: it is
                # in the same group.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            wall_s = time.monotonic() - started
            log.seek(max(0, log.seek(0, os.SEEK_END) - _CONSOLE_BYTES))
            console = log.read()
        planted = _remove_all_but_files(self._own)
        (self._own / CONSOLE).unlink(missing_ok=True)
        (self._own / CONSOLE).write_bytes(console)
        return Ended(in_time, wall_s, _last_lines(console), stuck, planted)


class _Watchdog:
    """A watchdog that ends guests which compute without recording anything.

    The clock of such a guest stands still, because a scheme or a program in it never sleeps, and it
    will never end. Its console is no record: a kernel says one thing for ever. Processor time
    counts, not time on the wall: a busy machine makes a guest slow, not stuck.
    """

    def __init__(self, process: int, own: Path) -> None:
        self._process = process
        self._own = own
        self._seen = -1
        self._since_s = 0.0
        self._next = 0.0

    def is_stuck(self) -> bool:
        """Return whether STUCK_PROCESSOR_S of processor time brought no record."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _LOOK_EVERY_S
        spent_s = _processor_s(self._process)
        seen = count_bytes(self._own, without=CONSOLE)
        if seen != self._seen:
            self._seen, self._since_s = seen, spent_s
        return spent_s - self._since_s > STUCK_PROCESSOR_S


def _remove_all_but_files(own: Path) -> tuple[str, ...]:
    """Remove what a guest left in its directory but files and directories, and return its names.

    A scheme in the guest can make symbolic links, which would lead whoever reads its records to
    files of the user, and pipes, which would have him wait. All that is left can be read. Sockets
    are not named: programs that are ended by force leave theirs.
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


def _processor_s(pid: int) -> float:
    """Return the processor time of a process and all that it has started, seconds."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])  # its own, and of children that have ended
    return total


def require_able(free_mib: int | None = None) -> None:
    """Raises InputError if this machine cannot run guests, with what would help. `free_mib`: of
    memory; None: what there is."""
    guest_kernel.require_installed()
    require_machine(required_filter(), free_mib)


def required_filter() -> Path:
    """Return the file with the seccomp filter of guests. Raises InputError if there is none."""
    found = guest_kernel.directory() / FILTER
    if not found.exists():
        raise refuse(
            f"the virtual lab's sandbox has no filter {found}",
            "build it: `make virtual-lab`, or install nagi again",
        )
    return found


def require_machine(filter_: Path | None = None, free_mib: int | None = None) -> None:
    """Raise InputError if this machine cannot run guests of any kernel. `filter_`: the seccomp
    filter to try; None: none, before it is built. `free_mib`: as require_able()."""
    require_sandbox(filter_)
    if shutil.which("taskset") is None:
        raise refuse("the virtual lab needs taskset", "install it: `apt-get install util-linux`")
    free = free_memory_mib() if free_mib is None else free_mib
    require_memory(NEEDED_MIB, free)


def memory_mib(nodes: int) -> int:
    """Return the memory that a guest with that many nodes has."""
    return MEMORY_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def needed_mib(nodes: int) -> int:
    """Return how much of this machine's memory a guest with that many nodes takes."""
    return NEEDED_MIB + _NODE_MIB * max(0, nodes - _FEW_NODES)


def require_memory(needed: int, free: int) -> None:
    """Raise InputError if less memory is free than a guest takes, both in MiB."""
    if free < needed:
        nodes = _FEW_NODES + max(0, free - NEEDED_MIB) // _NODE_MIB
        fewer = f", or plan {nodes} nodes or fewer" if needed > NEEDED_MIB else ""
        raise refuse(
            f"a guest of the virtual lab takes {needed} MB of memory, and {free} are free",
            f"end other programs{fewer}",
        )


def processors() -> list[int]:
    """Those this process may use."""
    return sorted(os.sched_getaffinity(0))


def free_memory_mib() -> int:
    """What programs can have without others being swapped out, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


def _last_lines(console: bytes) -> str:
    lines = console[-_LAST_BYTES:].decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
