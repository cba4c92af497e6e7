# SPDX-License-Identifier: Apache-2.0
"""The keeper of a netns lab: a process whose namespaces contain the whole lab.

The keeper is the first process of a PID namespace, and has its own mount namespace. `ip netns`
makes the network namespaces of the lab in this mount namespace, so other processes do not see them.
When the keeper ends, the kernel kills all processes of the lab, and then removes its network
namespaces and interfaces. `Keeper` ends with the process that started it; `start_keeper()` starts a
keeper that does not.
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
_DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"]
_UNSHARE = [
    "unshare",
    "--kill-child",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
]
_TIMEOUT_S = 10.0


class Keeper:
    """A keeper process that runs during a `with` block. At the end, its lab is removed.

    `pid` is the process ID of the keeper.
    """

    def __enter__(self) -> Keeper:
        self._process, self.pid = _start([*_DIE_WITH_PARENT, *_UNSHARE])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        _wait_for_end(self.pid)


def start_keeper() -> int:
    """Start a keeper that survives this process, and return its process ID. Raises LabError."""
    _, pid = _start(_UNSHARE)
    return pid


def end_keeper(pid: int) -> None:
    """End a keeper, and wait up to _TIMEOUT_S until the processes of its lab have ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _wait_for_end(pid)


def read_start_ticks(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot (proc(5)).

    Return None if there is no such process.
    """
    try:
        return int(_read_stat(pid)[19])
    except OSError:
        return None


def _start(unshare_command: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a keeper by `unshare_command`, which executes a program in new namespaces.

    Returns:
        The process of the command, and the process ID of the keeper, which is its child.

    Raises:
        LabError: Namespaces could not be made.
    """
    process = subprocess.Popen(
        [*unshare_command, "/bin/sh", "-c", _SCRIPT],
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
    """Wait until a keeper has ended, but no longer than _TIMEOUT_S.

    The kernel ends all processes in the keeper's PID namespace before the keeper itself.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _find_only_child(parent: int) -> int:
    """Return the process ID of the only child of a process. Raises LabError if there is none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(_read_stat(int(entry.name))[1]) == parent:
                    return int(entry.name)
            except OSError:  # the process has just ended
                continue
    raise LabError("the keeper of the lab ended at once")


def _read_stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat (proc(5)) from the third field (state) on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
