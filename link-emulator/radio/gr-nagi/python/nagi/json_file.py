# SPDX-License-Identifier: Apache-2.0
"""JSON files that others read while they are written anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, document: Any) -> None:
    """Whole or not at all."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
