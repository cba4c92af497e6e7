# SPDX-License-Identifier: Apache-2.0
"""The results as a text table, for the terminal; and as plain data, for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from rich.table import Table

from nagi_reports.summary import Mean, Panel, Summary


def tables(summary: Summary) -> Iterator[Table]:
    """One table a panel: AGI of every series at every x, and NAGI."""
    numbers, unit = summary.x.numbers()
    heads = [f"{number:g}" for number in numbers] if unit else summary.x.values
    for panel in summary.panels:
        table = Table(
            title=title(summary, panel),
            title_justify="left",
            caption=None if isnan(panel.ceiling) else f"ceiling {panel.ceiling:.3f} (headers)",
            caption_justify="left",
            show_edge=False,
            pad_edge=False,
        )
        axis = f"{summary.x.in_words}{f' ({unit})' if unit else ''}"
        table.add_column(f"AGI by {axis}")
        for head in heads:
            table.add_column(head, justify="right")
        table.add_column("NAGI", justify="right", style="bold")
        for curve in panel.curves:
            nagi = _text(curve.nagi)
            if curve.nagi is not None and curve.nagi.runs < len(numbers):
                nagi += f" ({curve.nagi.runs} of {len(numbers)})"
            table.add_row(curve.series, *(_text(mean) for mean in curve.agi), nagi)
        yield table


def as_data(summary: Summary) -> dict[str, Any]:
    """What the tables have, a list `panels` of lists `series`."""
    axis = summary.panels_axis
    return {
        "x": summary.x.name,
        "panels": [
            {
                **({axis.name: panel.label} if axis else {}),
                "agi_ceiling": None if isnan(panel.ceiling) else panel.ceiling,
                "series": [
                    {
                        "name": curve.series,
                        "agi": [
                            {summary.x.name: value, **_data(mean)}
                            for value, mean in zip(summary.x.values, curve.agi, strict=True)
                        ],
                        "nagi": _data(curve.nagi),
                    }
                    for curve in panel.curves
                ],
            }
            for panel in summary.panels
        ],
    }


def title(summary: Summary, panel: Panel) -> str:
    """What a panel is called."""
    if summary.panels_axis is None:
        return "Achieved goodput index"
    return f"{summary.panels_axis.title} {panel.label}"


def _text(mean: Mean | None) -> str:
    if mean is None:
        return "-"
    if mean.halfwidth == mean.halfwidth:  # not nan
        return f"{mean.value:.3f} ±{mean.halfwidth:.3f}"
    return f"{mean.value:.3f}"


def _data(mean: Mean | None) -> dict[str, Any]:
    """A mean with its 95 % interval; null where there is none."""
    if mean is None:
        return {"mean": None, "halfwidth": None, "runs": 0}
    halfwidth = None if isnan(mean.halfwidth) else mean.halfwidth
    return {"mean": mean.value, "halfwidth": halfwidth, "runs": mean.runs}
