# SPDX-License-Identifier: Apache-2.0
"""The figures of the report, as SVG: vectors, outlined letters, told apart without colour, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nagi_reports.summary import Mean, Panel, Summary
from nagi_reports.text import title

# Colours of Okabe and Ito, safe for colour-blind readers; markers, dashes and hatches carry the
# distinction in print.
_STYLES = [
    ("#0072B2", "o", "-", ""),
    ("#D55E00", "s", "--", "///"),
    ("#009E73", "^", "-.", "..."),
    ("#CC79A7", "D", ":", "xxx"),
    ("#E69F00", "v", (0, (5, 1)), "\\\\\\"),
    ("#56B4E9", "P", (0, (3, 1, 1, 1)), "ooo"),
    ("#000000", "X", (0, (1, 1)), "+++"),
]
_RC: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "nagi",  # the same figure is the same file
}
_PANEL_WIDTH, _HEIGHT, _LEGEND_HEIGHT = 2.3, 2.1, 0.3


def achieved_goodput(summary: Summary, path: Path) -> None:
    """AG against x, a panel each, with the bottleneck that could have been achieved."""

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        present = [
            (x, b / 1e6) for x, b in zip(numbers, panel.bottleneck_bps, strict=True) if b == b
        ]
        axes.plot(
            *zip(*present, strict=True), color="0.55", linewidth=2.5, label="bottleneck", zorder=0
        )
        for index, curve in enumerate(panel.curves):
            _curve(axes, numbers, curve.goodput_bps, index, curve.series, scale=1e-6)
        axes.set_ylim(bottom=0)

    _panels(summary, path, draw, "Achieved goodput (Mb/s)")


def achieved_goodput_index(summary: Summary, path: Path) -> None:
    """AGI against x, a panel each, with the ceiling that headers leave."""

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        if panel.ceiling == panel.ceiling:
            axes.axhline(panel.ceiling, color="0.55", linewidth=1, label="ceiling", zorder=0)
        for index, curve in enumerate(panel.curves):
            _curve(axes, numbers, curve.agi, index, curve.series)
        axes.set_ylim(0, 1.02)

    _panels(summary, path, draw, "AGI")


def normalised_index(summary: Summary, path: Path) -> None:
    """NAGI as bars, a group a panel, a bar a series."""
    with mpl.rc_context(_RC):
        series = [curve.series for curve in summary.panels[0].curves]
        width = 0.8 / len(series)
        figure = Figure(figsize=(max(3.4, 1.5 + 0.32 * len(series) * len(summary.panels)), 2.3))
        axes = figure.subplots()
        for index, name in enumerate(series):
            colour, _, _, hatch = _STYLES[index % len(_STYLES)]
            offset = (index - (len(series) - 1) / 2) * width
            means = [panel.curves[index].nagi for panel in summary.panels]
            positions = [at + offset for at, mean in enumerate(means) if mean is not None]
            values = [mean.value for mean in means if mean is not None]
            errors = [0 if math.isnan(m.halfwidth) else m.halfwidth for m in means if m is not None]
            axes.bar(
                positions,
                values,
                width * 0.92,
                yerr=errors if any(errors) else None,
                color=colour,
                edgecolor="black",
                linewidth=0.5,
                hatch=hatch,
                alpha=0.85,
                label=name,
                error_kw={"linewidth": 0.8},
            )
        labels = [panel.label for panel in summary.panels]
        axes.set_xticks(range(len(labels)), labels)
        if summary.panels_axis:
            axes.set_xlabel(summary.panels_axis.title)
        axes.set_ylabel("NAGI")
        axes.set_ylim(0, 1.02)
        _legend_above(figure, axes, rows_of=4)
        figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")


def _panels(
    summary: Summary,
    path: Path,
    draw: Callable[[Axes, Panel, list[float]], None],
    y_label: str,
) -> None:
    with mpl.rc_context(_RC):
        count = len(summary.panels)
        columns = min(count, 3)
        rows = math.ceil(count / columns)
        size = (max(3.4, _PANEL_WIDTH * columns), _HEIGHT * rows + _LEGEND_HEIGHT)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        numbers, unit = summary.x.numbers()
        for index, axes in enumerate(grid.flat):
            if index >= count:
                axes.set_visible(False)
                continue
            panel = summary.panels[index]
            draw(axes, panel, numbers)
            axes.set_title(title(summary, panel) if summary.panels_axis else "")
            axes.set_xlabel(f"{summary.x.title}{f' ({unit})' if unit else ''}")
            if not unit:
                axes.set_xticks(numbers, summary.x.values)
            if index % columns == 0:
                axes.set_ylabel(y_label)
        _legend_above(figure, grid.flat[0], rows_of=6)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _legend_above(figure: Figure, axes: Axes, rows_of: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    # constrained layout makes room for a legend that says "outside".
    place: dict[str, Any] = {"loc": "outside upper center"}
    if figure.get_layout_engine() is None:
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.98)}
    figure.legend(handles, labels, ncols=min(rows_of, len(labels)), handlelength=2.8, **place)


def _curve(
    axes: Axes,
    numbers: list[float],
    means: list[Mean | None],
    index: int,
    label: str,
    scale: float = 1.0,
) -> None:
    colour, marker, dashes, _ = _STYLES[index % len(_STYLES)]
    present = [(x, mean) for x, mean in zip(numbers, means, strict=True) if mean is not None]
    errors = [mean.halfwidth * scale for _, mean in present]
    axes.errorbar(
        [x for x, _ in present],
        [mean.value * scale for _, mean in present],
        yerr=None if any(math.isnan(error) for error in errors) else errors,
        color=colour,
        marker=marker,
        linestyle=dashes,
        markerfacecolor="white",
        capsize=2,
        label=label,
    )
