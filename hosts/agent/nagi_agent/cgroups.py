# SPDX-License-Identifier: Apache-2.0
"""The cgroup v2 hierarchy, also where `ip netns exec` hides it, and how often its limits stopped
programs."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from typing import Optional


def open_root(root: str = "/") -> int:
    """A descriptor of the root of the hierarchy, as this process sees it. `root`: where /proc is.
    Raises OSError."""
    with open(os.path.join(root, "proc/self/mountinfo"), encoding="utf-8") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2" and fields[3] == "/":
                try:
                    return os.open(fields[4], os.O_RDONLY | os.O_DIRECTORY)
                except OSError:
                    continue  # hidden below another mount
    # `ip netns exec` hides /sys/fs/cgroup; a mount of our own is gone once it is opened.
    place = tempfile.mkdtemp(prefix="nagi-cgroup-")
    try:
        subprocess.run(["mount", "-t", "cgroup2", "none", place], check=True, capture_output=True)
        try:
            return os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        finally:
            subprocess.run(["umount", "--lazy", place], check=True, capture_output=True)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise OSError(errno.ENODEV, f"there is no cgroup v2: {said}") from None
    finally:
        os.rmdir(place)


class Throttling:
    """How often and for how long the bandwidth limits (cpu.max) of this process's cgroup, and of
    those above it, have stopped processes. Nothing is known without cgroup v2. `root`: where
    /proc is."""

    def __init__(self, root: str = "/") -> None:
        self._root: Optional[int] = None
        try:
            self._path = _own_path(root)
            self._root = open_root(root)
        except OSError:
            pass

    def close(self) -> None:
        if self._root is not None:
            os.close(self._root)
            self._root = None

    def read(self) -> tuple[Optional[int], Optional[int]]:
        """(times, microseconds) since the cgroups were made; None: no limit can be set there."""
        found = []
        path = self._path if self._root is not None else None
        while path is not None:
            stat = self._stat(path)
            if "nr_throttled" in stat and "throttled_usec" in stat:
                found.append((stat["nr_throttled"], stat["throttled_usec"]))
            path = os.path.dirname(path) if path else None
        if not found:
            return None, None
        return sum(times for times, _ in found), sum(us for _, us in found)

    def _stat(self, path: str) -> dict[str, int]:
        """cpu.stat of a cgroup; nothing if it cannot be read."""
        name = os.path.join(path, "cpu.stat")
        try:
            with open(os.open(name, os.O_RDONLY, dir_fd=self._root), encoding="ascii") as file:
                return {key: int(value) for key, value in map(str.split, file)}
        except (OSError, ValueError):
            return {}


def _own_path(root: str) -> str:
    """This process's cgroup, relative to the root of the hierarchy. Raises OSError."""
    with open(os.path.join(root, "proc/self/cgroup"), encoding="utf-8") as file:
        for line in file:
            number, _, path = line.rstrip("\n").split(":", 2)
            # A path above the root of our cgroup namespace cannot be read from here.
            if number == "0" and not path.startswith("/.."):
                return path.strip("/")
    raise OSError(errno.ENODEV, "there is no cgroup v2")
