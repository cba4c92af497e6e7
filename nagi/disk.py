# SPDX-License-Identifier: Apache-2.0
"""How much of the disk directories take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def bytes_below(directory: Path, without: str = "") -> int:
    """Return the bytes of all files below a directory, to which others may write at the same time.
    `without`: the name of a file directly in it that does not count."""
    total = 0
    for place, _, names in os.walk(directory):
        for path in (Path(place, name) for name in names):
            if path != directory / without:
                with suppress(OSError):  # it has just gone
                    total += path.lstat().st_size
    return total
