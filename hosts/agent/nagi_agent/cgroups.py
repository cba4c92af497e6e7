# SPDX-License-Identifier: Apache-2.0
"""Open the cgroup v2 hierarchy, and read how often CPU limits have throttled processes.

This also works in programs that `ip netns exec` starts, although it hides /sys/fs/cgroup from them.
"""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from typing import Optional


def open_root(root: str = "/") -> int:
    """Return a file descriptor of the topmost cgroup that this process can see.

    Args:
        root: the directory that contains /proc, for tests.

    Raises:
        OSError: There is no cgroup v2.
    """
    with open(os.path.join(root, "proc/self/mountinfo"), encoding="utf-8") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2" and fields[3] == "/":
                try:
                    return os.open(fields[4], os.O_RDONLY | os.O_DIRECTORY)
                except OSError:
                    continue  # hidden below another mount
    # `ip netns exec` hides /sys/fs/cgroup. So the hierarchy is mounted for a moment; the descriptor
    # stays valid after the unmount.
    mount_point = tempfile.mkdtemp(prefix="nagi-cgroup-")
    try:
        subprocess.run(
            ["mount", "-t", "cgroup2", "none", mount_point], check=True, capture_output=True
        )
        try:
            return os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
        finally:
            subprocess.run(["umount", "--lazy", mount_point], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip()
        raise OSError(errno.ENODEV, f"there is no cgroup v2: {reason}") from None
    finally:
        os.rmdir(mount_point)


class Throttling:
    """Counters of how often and how long CPU limits (cpu.max) have throttled processes.

    The limits are those of this process's cgroup and of all cgroups above it.

    Args:
        root: the directory that contains /proc, for tests.
    """

    def __init__(self, root: str = "/") -> None:
        self._root: Optional[int] = None
        try:
            self._path = _read_own_path(root)
            self._root = open_root(root)
        except OSError:
            pass

    def close(self) -> None:
        if self._root is not None:
            os.close(self._root)
            self._root = None

    def read(self) -> tuple[Optional[int], Optional[int]]:
        """Return how often, and for how many microseconds, limits have throttled processes.

        The counts are sums over this process's cgroup and all cgroups above it, since they were
        created. Both are None without cgroup v2, or if none of the cgroups can have a limit.
        """
        counters = []
        path = self._path if self._root is not None else None
        while path is not None:
            stat = self._read_stat(path)
            if "nr_throttled" in stat and "throttled_usec" in stat:
                counters.append((stat["nr_throttled"], stat["throttled_usec"]))
            path = os.path.dirname(path) if path else None
        if not counters:
            return None, None
        return sum(times for times, _ in counters), sum(us for _, us in counters)

    def _read_stat(self, path: str) -> dict[str, int]:
        """Return the values of a cgroup's cpu.stat; empty if the file cannot be read."""
        name = os.path.join(path, "cpu.stat")
        try:
            with open(os.open(name, os.O_RDONLY, dir_fd=self._root), encoding="ascii") as file:
                return {key: int(value) for key, value in map(str.split, file)}
        except (OSError, ValueError):
            return {}


def _read_own_path(root: str) -> str:
    """Return the path of this process's cgroup, relative to the root of the hierarchy.

    Raises:
        OSError: There is no cgroup v2.
    """
    with open(os.path.join(root, "proc/self/cgroup"), encoding="utf-8") as file:
        for line in file:
            number, _, path = line.rstrip("\n").split(":", 2)
            # "/.." is a cgroup outside this process's cgroup namespace, which cannot be read.
            if number == "0" and not path.startswith("/.."):
                return path.strip("/")
    raise OSError(errno.ENODEV, "there is no cgroup v2")
