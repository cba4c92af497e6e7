# SPDX-License-Identifier: Apache-2.0
"""Find the processes of a campaign in the netns lab, for tests that kill or stop them.

Other campaigns may run the same programs on this machine, and the campaign may run them for other
purposes (`nagi-traffic --version`).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from controller import read_process


def find_processes(out: Path, *command: str) -> list[int]:
    """Return the processes of a campaign that execute `command`.

    Args:
        out: the directory of the campaign; the working directory or output of a process is below it
        *command: the program, by its file or by the name that it has set, and its first arguments
    """
    program, *arguments = command
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        words = read_process(int(entry.name), "cmdline").split(
            "\0"
        )  # empty if the process has ended
        names = Path(words[0]).name, read_process(int(entry.name), "comm").strip()
        if program in names and words[1 : len(command)] == arguments:
            with suppress(OSError):  # the process has ended
                paths = (entry / "cwd").readlink(), (entry / "fd" / "1").readlink()
                if any(path.is_relative_to(out) for path in paths):
                    pids.append(int(entry.name))
    return pids


def find_emulators(out: Path) -> list[int]:
    """Return the emulators of a campaign."""
    return find_processes(out, "nagi-link", "run")


def has_traffic(out: Path) -> bool:
    """Return whether both ends of a bulk flow of the campaign exist."""
    return all(find_bulk_ends(out, role) for role in ("server", "client"))


def find_bulk_ends(out: Path, role: str) -> list[int]:
    """Return the ends of bulk flows with this role: server or client."""
    return find_processes(out, "nagi-traffic", "bulk", role)
