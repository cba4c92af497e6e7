# SPDX-License-Identifier: Apache-2.0
"""The results as a text table, for the terminal; and as plain data, for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

import pandas as pd
from nagi_contracts.records import Campaign
from rich.table import Table

from nagi_reports.applications import APPLICATION_METRICS, summarise_flows
from nagi_reports.summary import Mean, Panel, Summary


def make_tables(summary: Summary) -> Iterator[Table]:
    """One table a panel: AGI of every series at every x, and NAGI."""
    numbers, unit = summary.x.numbers()
    heads = [f"{number:g}" for number in numbers] if unit else summary.x.values
    for panel in summary.panels:
        table = Table(
            title=name_panel(summary, panel),
            title_justify="left",
            caption="\n".join(_below(summary, panel)) or None,
            caption_justify="left",
            show_edge=False,
            pad_edge=False,
        )
        axis = f"{summary.x.in_words}{f' ({unit})' if unit else ''}"
        table.add_column(f"AGI by {axis}")
        for head in heads:
            table.add_column(head, justify="right")
        table.add_column(
            f"NAGI{describe_compared_points(summary, panel)}", justify="right", style="bold"
        )
        for curve in panel.curves:
            table.add_row(curve.series, *(_text(mean) for mean in curve.agi), _text(curve.nagi))
        yield table


def make_application_tables(campaign: Campaign, table: pd.DataFrame) -> Iterator[Table]:
    """One table a flow of an application, and panel."""
    for each in summarise_flows(campaign, table):
        where = f" at {campaign.panels} {each.panel}" if each.panel else ""
        made = Table(
            title=f"Flow {each.flow}{where}", title_justify="left", show_edge=False, pad_edge=False
        )
        for axis in each.axes:
            made.add_column(axis.replace("_", " "))
        for name in each.columns:
            made.add_column(APPLICATION_METRICS[name].title, justify="right")
        for values, means in each.rows:
            numbers = zip(each.columns, means, strict=True)
            made.add_row(
                *values, *(_text(mean, APPLICATION_METRICS[name].digits) for name, mean in numbers)
            )
        yield made


def to_data(summary: Summary) -> dict[str, Any]:
    """What the tables have, a list `panels` of lists `series`."""
    axis = summary.panels_axis
    return {
        "x": summary.x.name,
        "panels": [
            {
                **({axis.name: panel.label} if axis else {}),
                "nagi_points": [summary.x.values[at] for at in panel.compared],
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


def _below(summary: Summary, panel: Panel) -> Iterator[str]:
    if not isnan(panel.ceiling):
        yield f"ceiling {panel.ceiling:.3f} (headers)"
    note = explain_missing_points(summary, panel)
    if note is not None:
        yield note


def describe_compared_points(summary: Summary, panel: Panel) -> str:
    """For the head of NAGI in a panel: the number of points it is over; empty if over all."""
    compared, full = len(panel.compared), len(summary.x.values)
    return "" if compared in (0, full) else f" ({compared} of {full} points)"


def explain_missing_points(summary: Summary, panel: Panel) -> str | None:
    """Which points NAGI leaves out in a panel and why, as a sentence; None if it is over all."""
    missing = []
    for curve in panel.curves:
        without = [
            value for value, mean in zip(summary.x.values, curve.agi, strict=True) if mean is None
        ]
        if without and len(without) < len(summary.x.values):
            missing.append(f"{curve.series} has none at {', '.join(without)}")
    if not missing:
        return None
    of = f" at {name_panel(summary, panel).lower()}" if summary.panels_axis else ""
    if not panel.compared:
        return (
            f"There is no NAGI{of}, as at no {summary.x.in_words} all series have valid runs: "
            f"{'; '.join(missing)}."
        )
    points = f"{len(panel.compared)} of {len(summary.x.values)} points"
    return (
        f"NAGI{of} is over the {points} at which all series have valid runs: {'; '.join(missing)}."
    )


def name_panel(summary: Summary, panel: Panel) -> str:
    """What a panel is called."""
    if summary.panels_axis is None:
        return "Achieved goodput index"
    return f"{summary.panels_axis.title} {panel.label}"


def _text(mean: Mean | None, digits: int = 3) -> str:
    if mean is None:
        return "-"
    if mean.halfwidth == mean.halfwidth:  # not nan
        return f"{mean.value:.{digits}f} ±{mean.halfwidth:.{digits}f}"
    return f"{mean.value:.{digits}f}"


def _data(mean: Mean | None) -> dict[str, Any]:
    """A mean with its 95 % interval; null where there is none."""
    if mean is None:
        return {"mean": None, "halfwidth": None, "runs": 0}
    halfwidth = None if isnan(mean.halfwidth) else mean.halfwidth
    return {"mean": mean.value, "halfwidth": halfwidth, "runs": mean.runs}
