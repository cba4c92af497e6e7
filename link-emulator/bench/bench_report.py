# SPDX-License-Identifier: Apache-2.0
"""The benchmark's result: rows of a plain table, and a JSON file with everything behind them."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OK = "ok"
MISS = "miss"
GENERATOR = "generator"  # the source did not reach the rate asked for: no verdict
NO_TARGET = "-"


@dataclass(frozen=True)
class Row:
    """One line: a figure, what it is held against, and whether it is good enough."""

    what: str
    measured: str
    reference: str = ""
    ratio: float | None = None  # measured / reference
    target: str = ""
    verdict: str = NO_TARGET


def verdict(good: bool, generator_kept_up: bool = True) -> str:
    if not generator_kept_up:
        return GENERATOR
    return OK if good else MISS


def table(rows: list[Row]) -> str:
    head = ("what", "measured", "reference", "ratio", "target", "verdict")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        lines.append((row.what, row.measured, row.reference, ratio, row.target, row.verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def machine() -> dict[str, Any]:
    """What the figures are worth anything for."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "kernel": platform.release(),
        "processor": model,
        "processors": os.cpu_count(),
        "load_before": os.getloadavg()[0],
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def report(
    rows: list[Row], notes: str, path: Path | None, about: dict[str, Any], details: dict[str, Any]
) -> int:
    """How a benchmark ends: table and notes are printed, everything is written to `path`, if there
    is one. Returns the exit status: 1 if a target was missed, else 0."""
    print(f"{table(rows)}\n\n{notes}")
    if path:
        write(path, about, rows, details)
    return 1 if any(row.verdict == MISS for row in rows) else 0


def write(path: Path, about: dict[str, Any], rows: list[Row], details: dict[str, Any]) -> None:
    result = {
        "schema_version": 1,
        **about,
        "rows": [asdict(row) for row in rows],
        "details": details,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
