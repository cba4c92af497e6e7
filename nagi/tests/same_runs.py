# SPDX-License-Identifier: Apache-2.0
"""Runs made twice, held to each other."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts.records import compute_sha256


def list_differing_files(first: Path, second: Path) -> list[str]:
    """Return the names of the files that differ between two run directories.

    The manifest is ignored, because it contains the time and the machine of the run. The function
    returns only names: pytest takes minutes to compare two captures line by line.
    """
    sums = [
        {path.name: compute_sha256(path) for path in run.iterdir() if path.is_file()}
        for run in (first, second)
    ]
    names = (sums[0].keys() | sums[1].keys()) - {"manifest.json"}
    return sorted(name for name in names if sums[0].get(name) != sums[1].get(name))
