# SPDX-License-Identifier: Apache-2.0
"""Sizes of directories."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def count_bytes(directory: Path, without: str = "") -> int:
    """Return the bytes of all files in a directory, to which others may write at the same time.

    Args:
        directory: The directory.
        without: The name of a file directly in it that does not count.
    """
    total = 0
    for folder, _, names in os.walk(directory):
        for path in (Path(folder, name) for name in names):
            if path != directory / without:
                with suppress(OSError):  # somebody has just removed the file
                    total += path.lstat().st_size
    return total
