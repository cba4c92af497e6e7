# SPDX-License-Identifier: Apache-2.0
"""Tables and values in Markdown, for pages that are generated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, with a line end after it."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    lines += [" | ".join(_cell(each) for each in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def value_of(value: Any) -> str:
    """A value as code; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, str) and value:
        return f"`{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    """A text on one line; what is not code could pass for HTML."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join([p if n % 2 else p.replace("<", "&lt;") for n, p in enumerate(parts)])
