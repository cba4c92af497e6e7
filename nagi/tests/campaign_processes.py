# SPDX-License-Identifier: Apache-2.0
"""What runs for one campaign in the netns lab, for tests that strike it. The machine may have the
same programs at work for others; and for the campaign, at other work (`nagi-traffic --version`)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from controller import read_process


def processes(out: Path, *command: str) -> list[int]:
    """Return those whose command line begins with `command` (a program by the name that it has or
    has given itself, then its first arguments), and whose directory or standard output is below
    `out`, the campaign's directory."""
    program, *arguments = command
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        words = read_process(int(entry.name), "cmdline").split("\0")  # none once it has ended
        names = Path(words[0]).name, read_process(int(entry.name), "comm").strip()
        if program in names and words[1 : len(command)] == arguments:
            with suppress(OSError):  # it has ended meanwhile
                places = (entry / "cwd").readlink(), (entry / "fd" / "1").readlink()
                if any(place.is_relative_to(out) for place in places):
                    found.append(int(entry.name))
    return found


def emulators(out: Path) -> list[int]:
    return processes(out, "nagi-link", "run")


def has_traffic(out: Path) -> bool:
    """Return whether a run of the campaign is under way that far, and both ends of its flow are
    there."""
    return all(bulk_ends(out, role) for role in ("server", "client"))


def bulk_ends(out: Path, role: str) -> list[int]:
    """Return the ends of bulk flows, by their role: server or client."""
    return processes(out, "nagi-traffic", "bulk", role)
