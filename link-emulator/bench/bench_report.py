# SPDX-License-Identifier: Apache-2.0
"""Reports the results of a benchmark: a plain table, and a JSON file with all measurements."""

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
GENERATOR = "generator"  # no verdict: the source did not reach the requested rate
NO_TARGET = "-"


@dataclass(frozen=True)
class Row:
    """One line of the table: a measurement, the value to compare it with, and its target.

    Attributes:
        what: Label of the measurement.
        ratio: Measured value over reference value; None if there is no reference.
    """

    what: str
    measured: str
    reference: str = ""
    ratio: float | None = None
    target: str = ""
    verdict: str = NO_TARGET


def judge(is_good: bool, generator_kept_up: bool = True) -> str:
    """Return the verdict of a measurement: OK, MISS, or GENERATOR if the source was too slow."""
    if not generator_kept_up:
        return GENERATOR
    return OK if is_good else MISS


def format_table(rows: list[Row]) -> str:
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


def describe_machine() -> dict[str, Any]:
    """Return the properties of this machine, which the results depend on."""
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


def report_results(
    rows: list[Row], notes: str, path: Path | None, about: dict[str, Any], details: dict[str, Any]
) -> int:
    """Print table and notes to standard output, and write all results to `path` unless it is None.

    Returns:
        The exit status: 1 if a target was missed, else 0. A row without a verdict counts as met.
    """
    print(f"{format_table(rows)}\n\n{notes}")
    if path:
        write_results(path, about, rows, details)
    return 1 if any(row.verdict == MISS for row in rows) else 0


def write_results(
    path: Path, about: dict[str, Any], rows: list[Row], details: dict[str, Any]
) -> None:
    result = {
        "schema_version": 1,
        **about,
        "rows": [asdict(row) for row in rows],
        "details": details,
    }
    path.write_text(json.dumps(result, indent=1) + "\n")
