# SPDX-License-Identifier: Apache-2.0
"""Journals: how to undo what is about to be changed, on disk before it is changed.

A journal is {"undo": [command, ...]}, commands in the order in which they are to be carried out.
Who finds one after a crash carries it out. Ansible's module nagi.testbed.interfaces keeps one, too.
"""

from __future__ import annotations

import json
import os

from nagi_agent.processes import output_of

Commands = list[list[str]]


def write_json(path: str, value: object) -> None:
    """Writes a file whole or not at all."""
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def note(journal: str, undo: Commands) -> None:
    """Begins a journal. Raises RuntimeError if there is one: restore it first."""
    if os.path.exists(journal):
        raise RuntimeError(f"{journal}: another agent's settings have not been put back")
    write_json(journal, {"undo": undo})


def restore(journal: str) -> bool:
    """Carries a journal out, and removes it. False if there is none. Raises RuntimeError if a
    command fails; the journal then stays."""
    try:
        with open(journal, encoding="utf-8") as file:
            undo: Commands = json.load(file)["undo"]
    except FileNotFoundError:
        return False
    failures = []
    for command in undo:
        try:
            output_of(command)
        except (OSError, RuntimeError) as error:
            failures.append(str(error))
    if failures:
        raise RuntimeError("; ".join(failures))
    os.unlink(journal)
    return True
