# SPDX-License-Identifier: Apache-2.0
"""The keeper of a netns lab: the process in whose namespaces everything of the lab lives.

It is the first process of a PID namespace and of a mount namespace of its own. Namespaces made by
`ip netns` beside it are visible to nobody else, and when it ends, the kernel ends every process and
with the last one every network namespace and interface of the lab. It ends with the process that
started it, however that ends; so nothing can be left behind.
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
# As the first process of its PID namespace the shell inherits orphans; waiting, it buries them.
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
    """Starts on entry; on exit the lab is gone."""

    def __enter__(self) -> Keeper:
        self._process, self.pid = _start([*_DIES_WITH_US, *_NEW_NAMESPACES])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        _wait_for_end(self.pid)


def start_keeper() -> int:
    """Starts a keeper that stays when this process ends, and returns its number."""
    return _start(_NEW_NAMESPACES)[1]


def end_keeper(pid: int) -> None:
    """Ends a keeper; then the lab is gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _wait_for_end(pid)


def read_start_ticks(pid: int) -> int | None:
    """When a process began, in clock ticks since boot (proc(5)); None if there is none."""
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
        start_new_session=True,  # Ctrl-C is for nagi, which then ends the keeper
    )
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        process.kill()
        _, said = process.communicate()
        raise LabError(f"cannot make namespaces: {said.decode().strip() or 'no reason given'}")
    return process, _find_only_child(process.pid)


def _wait_for_end(pid: int) -> None:
    """The kernel takes a namespace's processes down; waits until the last is gone."""
    deadline = time.monotonic() + _TIMEOUT_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)


def _find_only_child(parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int(_read_stat(int(entry.name))[1]) == parent:
                    return int(entry.name)
            except OSError:  # it has just ended
                continue
    raise LabError("the keeper of the lab ended at once")


def _read_stat(pid: int) -> list[str]:
    """What proc(5) says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
