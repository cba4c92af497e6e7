# SPDX-License-Identifier: Apache-2.0
"""The results as text tables for the terminal, and as plain data for JSON."""

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
    """Yield one table per panel: AGI of every series at every x, and NAGI."""
    numbers, unit = summary.x.to_numbers()
    heads = [f"{number:g}" for number in numbers] if unit else summary.x.values
    for panel in summary.panels:
        table = Table(
            title=name_panel(summary, panel),
            title_justify="left",
            caption="\n".join(_make_caption_lines(summary, panel)) or None,
            caption_justify="left",
            show_edge=False,
            pad_edge=False,
        )
        axis = f"{summary.x.phrase}{f' ({unit})' if unit else ''}"
        table.add_column(f"AGI by {axis}")
        for head in heads:
            table.add_column(head, justify="right")
        table.add_column(
            f"NAGI{describe_compared_points(summary, panel)}", justify="right", style="bold"
        )
        for curve in panel.curves:
            table.add_row(
                curve.series, *(_format_mean(mean) for mean in curve.agi), _format_mean(curve.nagi)
            )
        yield table


def make_application_tables(campaign: Campaign, table: pd.DataFrame) -> Iterator[Table]:
    """Yield the metrics of applications, one table per flow and panel."""
    for flow_summary in summarise_flows(campaign, table):
        where = f" at {campaign.panels} {flow_summary.panel}" if flow_summary.panel else ""
        text_table = Table(
            title=f"Flow {flow_summary.flow}{where}",
            title_justify="left",
            show_edge=False,
            pad_edge=False,
        )
        for axis in flow_summary.axes:
            text_table.add_column(axis.replace("_", " "))
        for name in flow_summary.columns:
            text_table.add_column(APPLICATION_METRICS[name].title, justify="right")
        for values, means in flow_summary.rows:
            numbers = zip(flow_summary.columns, means, strict=True)
            text_table.add_row(
                *values,
                *(_format_mean(mean, APPLICATION_METRICS[name].digits) for name, mean in numbers),
            )
        yield text_table


def to_data(summary: Summary) -> dict[str, Any]:
    """Return the content of the tables as plain data for JSON.

    The form is {"x": NAME, "panels": [{"series": [...], ...}, ...]}.
    """
    axis = summary.panels_axis
    return {
        "x": summary.x.name,
        "panels": [
            {
                **({axis.name: panel.label} if axis else {}),
                "nagi_points": [summary.x.values[position] for position in panel.compared],
                "agi_ceiling": None if isnan(panel.ceiling) else panel.ceiling,
                "series": [
                    {
                        "name": curve.series,
                        "agi": [
                            {summary.x.name: value, **_to_mean_data(mean)}
                            for value, mean in zip(summary.x.values, curve.agi, strict=True)
                        ],
                        "nagi": _to_mean_data(curve.nagi),
                    }
                    for curve in panel.curves
                ],
            }
            for panel in summary.panels
        ],
    }


def _make_caption_lines(summary: Summary, panel: Panel) -> Iterator[str]:
    """Yield the lines below a panel's table."""
    if not isnan(panel.ceiling):
        yield f"ceiling {panel.ceiling:.3f} (headers)"
    note = explain_missing_points(summary, panel)
    if note is not None:
        yield note


def describe_compared_points(summary: Summary, panel: Panel) -> str:
    """Return the number of points over which NAGI is the mean, as " (n of m points)".

    Return an empty text if NAGI is over all points, or there is no NAGI.
    """
    compared, total = len(panel.compared), len(summary.x.values)
    return "" if compared in (0, total) else f" ({compared} of {total} points)"


def explain_missing_points(summary: Summary, panel: Panel) -> str | None:
    """Return a sentence on the points of a panel that NAGI leaves out, or None if there are none.

    The sentence lists these points, and the series that have no valid run at them.
    """
    gaps = []
    for curve in panel.curves:
        values = [
            value for value, mean in zip(summary.x.values, curve.agi, strict=True) if mean is None
        ]
        if values and len(values) < len(summary.x.values):
            gaps.append(f"{curve.series} has no valid run at {', '.join(values)}")
    if not gaps:
        return None
    where = f" at {name_panel(summary, panel).lower()}" if summary.panels_axis else ""
    if not panel.compared:
        return (
            f"There is no NAGI{where}, as no {summary.x.phrase} has valid runs of all series: "
            f"{'; '.join(gaps)}."
        )
    points = f"{len(panel.compared)} of {len(summary.x.values)} points"
    return (
        f"NAGI{where} is over the {points} at which all series have valid runs: {'; '.join(gaps)}."
    )


def name_panel(summary: Summary, panel: Panel) -> str:
    """Return the heading of a panel: its axis and value, or "Achieved goodput index"."""
    if summary.panels_axis is None:
        return "Achieved goodput index"
    return f"{summary.panels_axis.title} {panel.label}"


def _format_mean(mean: Mean | None, digits: int = 3) -> str:
    if mean is None:
        return "-"
    if not isnan(mean.halfwidth):
        return f"{mean.value:.{digits}f} ±{mean.halfwidth:.{digits}f}"
    return f"{mean.value:.{digits}f}"


def _to_mean_data(mean: Mean | None) -> dict[str, Any]:
    """Return a mean with its 95 % interval as plain data; values that are not known are None."""
    if mean is None:
        return {"mean": None, "halfwidth": None, "runs": 0}
    halfwidth = None if isnan(mean.halfwidth) else mean.halfwidth
    return {"mean": mean.value, "halfwidth": halfwidth, "runs": mean.runs}
