# SPDX-License-Identifier: Apache-2.0
"""Copies what agents recorded to run directories."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_file(source: Path, target: Path, name: str, new_name: str = "") -> None:
    """Copy a recorded file from one directory to another, if it exists.

    The copy is a hard link where the file system has them. The record remains until the run
    directory is complete.
    """
    if (source / name).exists():
        copy = target / (new_name or name)
        try:
            copy.hardlink_to(source / name)
        except OSError:
            shutil.copyfile(source / name, copy)
