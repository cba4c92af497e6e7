# SPDX-License-Identifier: Apache-2.0
"""Recorded runs that tests change."""

from __future__ import annotations

from pathlib import Path

from nagi_contracts.records import FileSum, Manifest


def record_again(run: Path) -> Path:
    """Return a run's directory after its manifest was updated to the current files."""
    manifest = Manifest.read(run / "manifest.json")
    there = (path for path in run.iterdir() if path.name in manifest.files)
    files = {path.name: FileSum.from_file(path) for path in there}
    manifest.model_copy(update={"files": files}).write(run / "manifest.json")
    return run
