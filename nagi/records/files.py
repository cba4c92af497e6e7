# SPDX-License-Identifier: Apache-2.0
"""Copies files of agents to run directories."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_file(source: Path, target: Path, name: str, new_name: str = "") -> None:
    """Copy the file `name` from the directory `source` to the directory `target`.

    If the file does not exist, nothing is copied. The copy is called `new_name`, or `name` if
    `new_name` is empty. It is a hard link if the file system supports hard links.
    """
    if (source / name).exists():
        copy = target / (new_name or name)
        try:
            copy.hardlink_to(source / name)
        except OSError:
            shutil.copyfile(source / name, copy)
