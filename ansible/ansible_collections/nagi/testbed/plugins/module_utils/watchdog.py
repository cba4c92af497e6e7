# SPDX-License-Identifier: Apache-2.0
"""Undo changes of a host's network unless the controller comes back: the watchdog.

save_plan() saves the state to return to. Then this file is started as a program on the host
(programs.py), which waits for the deadline and undoes the changes. disarm() prevents that.
plan.json exists as long as the changes may be undone. A lock beside the directory prevents that two
processes use it at once.

Standard library only, for Python 3.9.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

DIRECTORY = "/var/lib/nagi-testbed/watchdog"
# Services that configure networks, and read their files again when they are reloaded.
_SERVICES = ("systemd-networkd", "NetworkManager")


def save_plan(seconds: float, files: list, journals: str, directory: str) -> None:
    """Save the current state, to which undo() returns. Replace an earlier plan.

    Args:
        seconds: The time until the changes are undone, if the program runs.
        files: The paths of files that may change. They need not exist.
        journals: A directory of journals, to which the module interfaces may add commands.
        directory: The watchdog's directory, which is made anew.
    """
    with _lock(directory):
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory, mode=0o700)
        copies = {}
        for number, path in enumerate(files):
            copies[path] = None
            if os.path.lexists(path):
                copies[path] = os.path.join(directory, f"file-{number}")
                _copy(path, copies[path])
        plan = {
            "deadline": _read_clock() + seconds,
            "files": copies,
            "journals": journals,
            "counts": {path: len(_read_journal(path)) for path in _list_journals(journals)},
        }
        partial = _plan_path(directory) + ".partial"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        os.rename(partial, _plan_path(directory))


def is_armed(directory: str) -> bool:
    """Return whether changes will be undone, unless disarm() prevents it."""
    return os.path.exists(_plan_path(directory))


def disarm(directory: str) -> bool:
    """Keep the changes. Return False if they have already been undone.

    Changes that were made after that are undone now. The directory of the watchdog is removed.
    """
    if not os.path.isdir(directory):
        return True
    with _lock(directory):
        undone = _read_plan(_undone_path(directory))
        if undone is not None:
            _undo_plan(undone)
        shutil.rmtree(directory, ignore_errors=True)
    return undone is None


def undo(directory: str) -> None:
    """Undo the changes since save_plan(), unless disarm() has prevented it."""
    if not is_armed(directory):
        return
    with _lock(directory):
        plan = _read_plan(_plan_path(directory))
        if plan is not None:
            os.rename(_plan_path(directory), _undone_path(directory))
            _undo_plan(plan)


def _undo_plan(plan: dict) -> None:
    """Restore the state of a plan. What fails does not prevent the rest."""
    for path in _list_journals(plan["journals"]):
        with suppress(OSError, ValueError):
            _undo_commands(path, plan["counts"].get(path, 0))
    for path, copy in plan["files"].items():
        with suppress(OSError):
            if copy is not None:
                _copy(copy, path)
            elif os.path.lexists(path):
                os.unlink(path)
    for service in _SERVICES:
        if _run("systemctl", "--quiet", "is-active", service):
            _run("systemctl", "reload", service)


def wait_and_undo(directory: str) -> None:
    """Wait for the deadline of the plan, then undo the changes. End at once without a plan."""
    while (plan := _read_plan(_plan_path(directory))) is not None:
        left = plan["deadline"] - _read_clock()
        if left <= 0:
            undo(directory)
            return
        time.sleep(min(left, 1.0))


def _plan_path(directory: str) -> str:
    return os.path.join(directory, "plan.json")


def _undone_path(directory: str) -> str:
    return os.path.join(directory, "undone.json")


def _read_plan(path: str) -> dict | None:
    """Return a plan, or None if there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


@contextmanager
def _lock(directory: str):
    """Hold the lock of the watchdog, and wait for it if another process holds it."""
    os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
    with open(directory + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read_clock() -> float:
    """Return the seconds since the host was booted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _list_journals(directory: str) -> list:
    if not os.path.isdir(directory):
        return []
    names = sorted(name for name in os.listdir(directory) if name.endswith(".json"))
    return [os.path.join(directory, name) for name in names]


def _read_journal(path: str) -> list:
    """Return the commands of a journal; the newest changes are undone first."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["undo"]


def _undo_commands(path: str, count: int) -> None:
    """Run the commands that a journal has in addition to the last `count`, and remove them.

    A command that fails does not prevent the next.
    """
    commands = _read_journal(path)
    remaining = commands[len(commands) - count :]
    for command in commands[: len(commands) - count]:
        _run(*command)
    if not remaining:
        os.unlink(path)
        return
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump({"undo": remaining}, file, indent=1)
    os.rename(partial, path)


def _run(*command: str) -> bool:
    """Run a command, and return whether it succeeded."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


def _copy(source: str, target: str) -> None:
    """Copy a file with mode, times and owner. The new file replaces the old one at once."""
    partial = target + ".nagi-partial"
    shutil.copy2(source, partial, follow_symlinks=False)
    status = os.lstat(source)
    os.chown(partial, status.st_uid, status.st_gid, follow_symlinks=False)
    os.rename(partial, target)


if __name__ == "__main__":
    wait_and_undo(sys.argv[1])
