# SPDX-License-Identifier: Apache-2.0
"""Figures of achieved goodput (AG), AGI and NAGI, and of other means over x."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nagi_reports.figures.axes import (
    GREY,
    MAX_PANELS,
    NARROW_WIDTH,
    PALE,
    WIDTH,
    draw_curve,
    figure_style,
    make_grid,
    make_panel_figures,
    split_panels,
    wrap_label,
)
from nagi_reports.summary import Mean, Panel, Summary
from nagi_reports.text import describe_compared_points, name_panel


def make_goodput_figures(summary: Summary) -> list[Figure]:
    """Return figures of AG over x, one panel per value of the panels' axis.

    A grey line shows the bottleneck rate.
    """

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        bottlenecks = [
            (x, rate_bps / 1e6)
            for x, rate_bps in zip(numbers, panel.bottleneck_bps, strict=True)
            if not math.isnan(rate_bps)
        ]
        if bottlenecks:
            axes.plot(
                *zip(*sorted(bottlenecks), strict=True),
                color=GREY,
                linewidth=2.5,
                label="bottleneck",
                zorder=0,
                marker="_" if len(bottlenecks) == 1 else "",
                markersize=14,
                markeredgewidth=2.5,
            )
        for index, curve in enumerate(panel.curves):
            draw_curve(axes, numbers, curve.goodput_bps, index, curve.series, scale=1e-6)
        axes.set_ylim(bottom=0)

    return make_panel_figures(summary, draw, "Achieved goodput (Mb/s)")


def make_index_figures(summary: Summary) -> list[Figure]:
    """Return figures of AGI over x, one panel per value of the panels' axis.

    A grey line shows the ceiling that headers set.
    """

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        if not math.isnan(panel.ceiling):
            axes.axhline(panel.ceiling, color=GREY, linewidth=1, label="ceiling", zorder=0)
        for index, curve in enumerate(panel.curves):
            draw_curve(axes, numbers, curve.agi, index, curve.series)
        axes.set_ylim(0, 1.02)

    return make_panel_figures(summary, draw, "AGI")


def make_nagi_figures(summary: Summary) -> list[Figure]:
    """Return figures of NAGI as labelled bars, one panel per value of the panels' axis."""
    figures = []
    names = [curve.series for curve in summary.panels[0].curves]
    for panels in split_panels(summary.panels, MAX_PANELS):
        columns = min(len(panels), 3)
        rows = math.ceil(len(panels) / columns)
        lines = max(wrap_label(name).count("\n") + 1 for name in names)
        height = rows * (0.55 + (0.09 + 0.12 * lines) * len(names)) + 0.1
        with figure_style():
            figure = Figure(
                figsize=(WIDTH if columns > 1 else NARROW_WIDTH, height), layout="constrained"
            )
            for index, (axes, panel) in enumerate(make_grid(figure, rows, columns, panels)):
                for row, curve in enumerate(panel.curves):
                    _draw_bar(axes, row, curve.nagi, curve.agi)
                axes.set_yticks(range(len(names)), [wrap_label(name) for name in names])
                axes.set_ylim(len(names) - 0.45, -0.55)
                axes.set_xlim(0, 1.55)
                axes.set_xticks([0, 0.5, 1])
                axes.spines["bottom"].set_bounds(0, 1)
                axes.tick_params(axis="y", length=0)
                label = name_panel(summary, panel) if summary.panels_axis else ""
                axes.set_title(
                    f"{label}{describe_compared_points(summary, panel)}".strip(), loc="left"
                )
                if index + columns >= len(panels):
                    axes.set_xlabel("NAGI", x=0.5 / 1.55)
                    axes.tick_params(labelbottom=True)
        figures.append(figure)
    return figures


def _draw_bar(axes: Axes, row: int, mean: Mean | None, points: list[Mean | None]) -> None:
    """Draw the bar of a NAGI with its interval and its value; without NAGI, write the reason.

    `points` are the AGIs at the values of x, which decide the reason.
    """
    if mean is None:
        reason = "no common point" if any(points) else "no valid run"
        axes.text(0.02, row, reason, va="center", fontsize=7)
        return
    axes.barh(row, mean.value, 0.66, color=PALE, edgecolor="black", linewidth=0.6)
    halfwidth = 0.0 if math.isnan(mean.halfwidth) else mean.halfwidth
    if halfwidth:
        axes.errorbar(
            mean.value,
            row,
            xerr=halfwidth,
            color="black",
            linewidth=0.9,
            capsize=2,
            linestyle="none",
        )
    label = f"{mean.value:.3f}" + (f" ± {halfwidth:.3f}" if halfwidth else "")
    axes.text(min(1.0, mean.value + halfwidth) + 0.03, row, label, va="center", fontsize=7)


def make_mean_figures(
    summary: Summary, means: Mapping[tuple[str, str], list[Mean | None]], y_label: str
) -> list[Figure]:
    """Return figures of means between 0 and 1 over x, one panel per value of the panels' axis.

    Args:
        summary: The campaign's results, which give panels, series and x.
        means: Means at each value of x, by the panel's label and the series.
        y_label: Label of the y axis.
    """

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        for index, curve in enumerate(panel.curves):
            series_means = means.get((panel.label, curve.series))
            if series_means is not None:
                draw_curve(axes, numbers, series_means, index, curve.series)
        axes.set_ylim(0, 1.02)

    return make_panel_figures(summary, draw, y_label)
