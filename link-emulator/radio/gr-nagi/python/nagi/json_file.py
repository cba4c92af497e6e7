# SPDX-License-Identifier: Apache-2.0
"""Writes JSON files that other programs may read at any time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file atomically: readers see the old file or the complete new one."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
