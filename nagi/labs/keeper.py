# SPDX-License-Identifier: Apache-2.0
"""The keeper of a netns lab: a process whose namespaces contain all of the lab.

The keeper is the first process of a PID namespace, and has a mount namespace. Only processes in
this mount namespace see the network namespaces that `ip netns` makes there. When the keeper ends,
the kernel kills all processes of the lab, and removes its network namespaces and interfaces with
the last of them. The keeper ends with the process that started it, so that nothing is left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from nagi.labs.errors import LabError

_SCRIPT = """
set -e
mkdir -p /run/netns
mount --make-rprivate /
mount -t tmpfs -o mode=0755 nagi /run/netns
echo ready
# As the first process of its PID namespace the shell inherits orphans. `wait` reaps them.
sleep infinity &
wait $!
"""
_DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
_NEW_NAMESPACES = [
    "unshare",
    "--kill-child",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
]
_TIMEOUT_S = 10.0


class Keeper:
    """A keeper that starts when the block begins. At the end of the block the lab is removed."""

    def __enter__(self) -> Keeper:
        self._process, self.pid = _start([*_DIES_WITH_US, *_NEW_NAMESPACES])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        _wait_for_end(self.pid)


def start_keeper() -> int:
    """Start a keeper that survives this process, and return its process ID. Raises LabError."""
    return _start(_NEW_NAMESPACES)[1]


def end_keeper(pid: int) -> None:
    """End a keeper, and wait until its lab is removed."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _wait_for_end(pid)


def read_start_ticks(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot (proc(5)); None if there is none."""
    try:
        return int(_read_stat(pid)[19])
    except OSError:
        return None


def _start(new_namespaces: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(
        [*new_namespaces, "/bin/sh", "-c", _SCRIPT],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches nagi alone, which then ends the keeper
    )
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        process.kill()
        _, message = process.communicate()
        raise LabError(f"cannot make namespaces: {message.decode().strip() or 'no reason given'}")
    return process, _find_only_child(process.pid)


def _wait_for_end(pid: int) -> None:
    """Wait until the kernel has ended all processes of a keeper's namespace."""
    deadline = time.monotonic() + _TIMEOUT_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _find_only_child(parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(_read_stat(int(entry.name))[1]) == parent:
                    return int(entry.name)
            except OSError:  # the process has just ended
                continue
    raise LabError("the keeper of the lab ended at once")


def _read_stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat (proc(5)), from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
