# SPDX-License-Identifier: Apache-2.0
"""Tables and values in Markdown, for generated pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, with a newline at its end."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    lines += [" | ".join(_format_cell(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def format_value(value: Any) -> str:
    """Return a value as code in Markdown; return an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, str) and value:
        return f"`{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _format_cell(text: str) -> str:
    """Return a text as a cell of a table: on one line, with `<` and `|` escaped.

    `<` within code needs no escape.
    """
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join([p if n % 2 else p.replace("<", "&lt;") for n, p in enumerate(parts)])
