# SPDX-License-Identifier: Apache-2.0
"""The keeper of a netns lab: the process in whose namespaces everything of the lab lives.

It is the first process of a PID namespace and of a mount namespace of its own. Namespaces made by
`ip netns` beside it are visible to nobody else, and when it ends, the kernel ends every process and
with the last one every network namespace and interface of the lab. It ends with the process that
started it, however that ends; so nothing can be left behind.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from nagi.ansible_runs import LabError

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
_NEW_NAMESPACES = [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    "--kill-child",
    "--mount",
    "--pid",
    "--fork",
    "--mount-proc",
]
_PATIENCE = 10.0


class Keeper:
    """Starts on entry; on exit the lab is gone."""

    def __enter__(self) -> Keeper:
        self._process = subprocess.Popen(
            [*_NEW_NAMESPACES, "/bin/sh", "-c", _SCRIPT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for nagi, which then ends the keeper
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self._process.kill()
            _, said = self._process.communicate()
            raise LabError(f"cannot make namespaces: {said.decode().strip() or 'no reason given'}")
        self.pid = _only_child(self._process.pid)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        # The kernel takes the namespace's processes down; wait until the last is gone.
        deadline = time.monotonic() + _PATIENCE
        while Path(f"/proc/{self.pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


def _only_child(parent: int) -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[1]) == parent:
                return int(entry.name)
    raise LabError("the keeper of the lab ended at once")
