# SPDX-License-Identifier: Apache-2.0
"""Compute the sizes of directories."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def count_bytes(directory: Path, without: str = "") -> int:
    """Return the total size of all files below a directory, in bytes.

    A file that another process removes during the call counts 0 bytes. Symbolic links are not
    followed.

    Args:
        directory: The directory.
        without: The name of a file directly in `directory` that is not counted; "" counts all.
    """
    total = 0
    for folder, _, names in os.walk(directory):
        for path in (Path(folder, name) for name in names):
            if path != directory / without:
                with suppress(OSError):  # another process has just removed the file
                    total += path.lstat().st_size
    return total
