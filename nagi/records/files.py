# SPDX-License-Identifier: Apache-2.0
"""Copies files of agents to run directories."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_file(source: Path, target: Path, name: str, new_name: str = "") -> None:
    """Copy the file `name` from the directory `source` to the directory `target`, if it exists.

    The copy is a hard link if the file system supports hard links. It is called `new_name`, if
    given.
    """
    if (source / name).exists():
        copy = target / (new_name or name)
        try:
            copy.hardlink_to(source / name)
        except OSError:
            shutil.copyfile(source / name, copy)
