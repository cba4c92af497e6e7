# SPDX-License-Identifier: Apache-2.0
"""Runs made twice, held to each other."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts.records import compute_sha256


def differing(first: Path, second: Path) -> list[str]:
    """The files of a run that another has not, or has otherwise; but for the manifest, which says
    when and where it was made. They are only named: pytest takes minutes to tell two captures
    apart, line by line.
    """
    sums = [
        {path.name: compute_sha256(path) for path in run.iterdir() if path.is_file()}
        for run in (first, second)
    ]
    names = (sums[0].keys() | sums[1].keys()) - {"manifest.json"}
    return sorted(name for name in names if sums[0].get(name) != sums[1].get(name))
