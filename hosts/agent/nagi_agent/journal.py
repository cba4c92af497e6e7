# SPDX-License-Identifier: Apache-2.0
"""Write journals of changes to a host, so that the changes can be undone even after a crash.

A journal is a file {"undo": [command, ...]}, with the commands in the order in which they restore
the host. It is written to disk before a change is made. After a crash, the next agent executes the
journal. Ansible's module nagi.testbed.interfaces writes such a journal as well.
"""

from __future__ import annotations

import json
import os

from nagi_agent.processes import run_command

Commands = list[list[str]]


def write_json(path: str, value: object) -> None:
    """Write a value as JSON. After a crash the file has either the old or the new content."""
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def create(journal: str, undo: Commands) -> None:
    """Write a new journal.

    Args:
        journal: path of the journal.
        undo: commands that restore the current settings.

    Raises:
        RuntimeError: The journal exists already, so it must be restored first.
    """
    if os.path.exists(journal):
        raise RuntimeError(f"{journal}: the changes of an earlier agent have not been undone")
    write_json(journal, {"undo": undo})


def restore(journal: str) -> bool:
    """Execute the commands of a journal, and remove the journal.

    Returns:
        Whether there was a journal.

    Raises:
        RuntimeError: A command failed. All other commands were executed. The journal still exists.
    """
    try:
        with open(journal, encoding="utf-8") as file:
            undo: Commands = json.load(file)["undo"]
    except FileNotFoundError:
        return False
    failures = []
    for command in undo:
        try:
            run_command(command)
        except (OSError, RuntimeError) as error:
            failures.append(str(error))
    if failures:
        raise RuntimeError("; ".join(failures))
    os.unlink(journal)
    return True
