# SPDX-License-Identifier: Apache-2.0
"""Figures of application metrics over x."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from nagi_reports.figures.axes import (
    MAX_PANELS,
    NARROW_WIDTH,
    WIDTH,
    collect_legend_entries,
    draw_curve,
    figure_style,
    label_x_axis,
)
from nagi_reports.summary import Axis, Mean


@dataclass(frozen=True)
class ApplicationCurves:
    """One metric of a flow's application over x, one curve per series."""

    title: str
    y_label: str
    curves: list[tuple[str, list[Mean | None]]]  # series, and a mean for each value of x


def make_application_figures(x: Axis, flow_curves: Sequence[ApplicationCurves]) -> list[Figure]:
    """Return figures of application metrics over x, one pair of axes per flow."""
    return [
        _make_figure(x, flow_curves[first : first + MAX_PANELS])
        for first in range(0, len(flow_curves), MAX_PANELS)
    ]


def _make_figure(x: Axis, flow_curves: Sequence[ApplicationCurves]) -> Figure:
    """Return one figure of up to MAX_PANELS pairs of axes."""
    columns = min(len(flow_curves), 3)
    rows = math.ceil(len(flow_curves) / columns)
    numbers, unit = x.to_numbers()
    with figure_style():
        height = (2.5, 2.0, 1.75)[rows - 1] * rows + 0.4
        figure = Figure(
            figsize=(WIDTH if columns > 1 else NARROW_WIDTH, height), layout="constrained"
        )
        grid = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes in grid[len(flow_curves) :]:
            axes.set_visible(False)
        for index, (axes, curves) in enumerate(zip(grid, flow_curves, strict=False)):
            for position, (series, means) in enumerate(curves.curves):
                draw_curve(axes, numbers, means, position, series)
            axes.set_ylim(bottom=0)
            axes.set_title(curves.title, loc="left")
            axes.set_ylabel(curves.y_label)
            label_x_axis(axes, x, numbers, unit, columns)
            if index + columns >= len(flow_curves):
                axes.set_xlabel(f"{x.title}{f' ({unit})' if unit else ''}")
        handles, labels = collect_legend_entries(grid[: len(flow_curves)])
        figure.legend(handles, labels, ncols=4, handlelength=2.8, loc="outside upper center")
    return figure
