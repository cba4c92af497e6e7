# SPDX-License-Identifier: Apache-2.0
"""Style, axes, labels and legends that all figures share."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from nagi_reports.glyphs import replace_missing_glyphs
from nagi_reports.summary import Axis, Mean, Panel, Summary
from nagi_reports.text import name_panel

# Colour, marker and dashes of each series. The colours are those of Okabe and Ito, which
# colour-blind readers can distinguish; in print, markers and dashes distinguish the series.
SERIES_STYLES: list[tuple[str, str, Any]] = [
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#B07800", "v", (0, (5, 1))),
    ("#3793C8", "P", (0, (3, 1, 1, 1))),
    ("#000000", "X", (0, (1, 1))),
    ("#7A5195", "<", (0, (8, 2, 2, 2))),
    ("#6B6B00", ">", (0, (4, 4))),
    ("#A03040", "h", (0, (2, 1, 1, 1, 1, 1))),
]
GREY, PALE = "#8C8C8C", "#D0D0D0"
_SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.titlesize": 8.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "savefig.transparent": True,
    "text.parse_math": False,  # a name with two $ is no formula
    "svg.fonttype": "path",
    "svg.hashsalt": "nagi",  # equal figures give equal files
}
WIDTH = 6.69  # inches: the width of the report's text
NARROW_WIDTH = 5.2  # inches: a figure with one panel
MAX_PANELS = 9  # per figure, so that it fits on a page
_MAX_DIRECT_LABELS = 10  # a figure with more curves has a legend


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply matplotlib's defaults and nagi's settings within the context.

    The user's matplotlibrc is ignored, so that the same runs give the same figures.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def render_svg(figure: Figure) -> str:
    """Return a figure as SVG, with U+FFFD in place of characters without a glyph.

    Letters are outlines. Equal figures give equal texts. Texts of `figure` are changed in place.
    """
    for text in figure.findobj(Text):
        text.set_text(replace_missing_glyphs(text.get_text()))
    with figure_style():
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        return buffer.getvalue()


def list_visible_texts(figure: Figure) -> list[Text]:
    """Return all texts that a figure shows, without tick labels outside of the axes.

    Tests check that these texts do not overlap.
    """
    hidden = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick, position in zip(axis.get_major_ticks(), axis.get_majorticklocs(), strict=True)
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= position <= max(axis.get_view_interval())
    }
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text not in hidden
        and text.get_visible()
        and text.get_text().strip()
    ]


def make_panel_figures(
    summary: Summary, draw: Callable[[Axes, Panel, list[float]], None], y_label: str
) -> list[Figure]:
    """Return figures with one panel per value of the panels' axis, at most MAX_PANELS in each.

    Args:
        summary: The campaign's results.
        draw: A function that draws a panel on axes; its third argument is x as numbers.
        y_label: Label of the y axis.
    """
    return [
        _make_panel_figure(summary, panels, draw, y_label)
        for panels in split_panels(summary.panels, MAX_PANELS)
    ]


def split_panels(panels: Sequence[Panel], maximum: int) -> Iterator[Sequence[Panel]]:
    """Yield the panels in groups of at most `maximum`, one group per figure."""
    for first in range(0, len(panels), maximum):
        yield panels[first : first + maximum]


def _make_panel_figure(
    summary: Summary,
    panels: Sequence[Panel],
    draw: Callable[[Axes, Panel, list[float]], None],
    y_label: str,
) -> Figure:
    """Return one figure of up to MAX_PANELS panels.

    Names of curves are at the curves' ends if there is only one panel with at most
    _MAX_DIRECT_LABELS curves. Otherwise, there is a legend.
    """
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    series = len(panels[0].curves)
    has_direct_labels = len(panels) == 1 and series <= _MAX_DIRECT_LABELS
    numbers, unit = summary.x.to_numbers()
    with figure_style():
        size = (WIDTH, 2.75) if columns == 1 else (WIDTH, (2.5, 2.1, 1.75)[rows - 1] * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = make_grid(figure, rows, columns, panels)
        for index, (axes, panel) in enumerate(grid):
            draw(axes, panel, numbers)
            axes.set_title(name_panel(summary, panel) if summary.panels_axis else "", loc="left")
            label_x_axis(axes, summary.x, numbers, unit, columns)
            if index + columns >= len(panels):
                axes.set_xlabel(f"{summary.x.title}{f' ({unit})' if unit else ''}")
                axes.tick_params(labelbottom=True)
            if index % columns == 0:
                axes.set_ylabel(y_label)
        if has_direct_labels:
            _label_curve_ends(grid[0][0])
        else:
            handles, labels = collect_legend_entries([axes for axes, _ in grid])
            letters = sum(len(label) + 8 for label in labels)
            legend_columns = math.ceil(len(labels) / math.ceil(letters / 108))
            figure.legend(
                handles,
                labels,
                ncols=legend_columns,
                handlelength=2.8,
                columnspacing=1.2,
                loc="outside upper center",
            )
    return figure


def make_grid(
    figure: Figure, rows: int, columns: int, panels: Sequence[Panel]
) -> list[tuple[Axes, Panel]]:
    """Return the axes of each panel, row by row; axes without a panel are hidden."""
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    return list(zip(grid, panels, strict=False))


def draw_curve(
    axes: Axes,
    numbers: list[float],
    means: list[Mean | None],
    index: int,
    label: str,
    scale: float = 1.0,
) -> None:
    """Draw the means of one series against x, with error bars where intervals are known.

    Args:
        axes: The axes to draw on.
        numbers: The values of x.
        means: A mean for each value of x; None leaves the point out.
        index: Position of the series, which selects colour, marker and dashes.
        label: Name of the series.
        scale: Factor from the unit of `means` to the unit of the y axis.
    """
    colour, marker, dashes = SERIES_STYLES[index % len(SERIES_STYLES)]
    points = sorted((x, m) for x, m in zip(numbers, means, strict=True) if m is not None)
    errors = [mean.halfwidth * scale for _, mean in points]
    axes.errorbar(
        [x for x, _ in points],
        [mean.value * scale for _, mean in points],
        yerr=None if all(math.isnan(error) for error in errors) else errors,
        color=colour,
        marker=marker,
        linestyle=dashes,
        markerfacecolor="white",
        capsize=2,
        elinewidth=0.8,
        label=label,
    )


def label_x_axis(axes: Axes, axis: Axis, numbers: list[float], unit: str, columns: int) -> None:
    """Set ticks, labels and limits of the x axis.

    There is a tick at each value of x if the labels fit. If they do not fit, matplotlib chooses the
    ticks. Values that are no quantities always have ticks, with rotated labels if necessary.

    Args:
        axes: The axes to draw on.
        axis: The axis of the experiment that is shown as x.
        numbers: The values of `axis` as numbers, in `unit`.
        unit: Unit of `numbers`; empty if the values are no quantities.
        columns: Number of panels side by side in the figure.
    """
    labels = [f"{number:g}" for number in numbers] if unit else [wrap_label(v) for v in axis.values]
    max_letters = 80 if columns == 1 else 24
    needed_letters = sum(max(map(len, label.split("\n"))) + 2 for label in labels)
    if not unit or (needed_letters <= max_letters and _has_room_for_labels(numbers, max_letters)):
        is_rotated = needed_letters > max_letters
        axes.set_xticks(
            numbers,
            labels,
            rotation=40 if is_rotated else 0,
            ha="right" if is_rotated else "center",
            rotation_mode="anchor" if is_rotated else "default",
        )
        pad = 0.5 if len(numbers) == 1 else 0.06 * (max(numbers) - min(numbers))
        axes.set_xlim(min(numbers) - pad, max(numbers) + pad)
    elif len(numbers) > 1:
        axes.set_xlim(min(numbers) - 0.05 * max(numbers), 1.05 * max(numbers))


def _has_room_for_labels(numbers: list[float], max_letters: int) -> bool:
    """Return whether labels at `numbers` do not touch on an axis as long as that many letters."""
    if len(numbers) < 2:
        return True
    positions = sorted(numbers)
    nearest = min(b - a for a, b in itertools.pairwise(positions))
    widest = max(len(f"{number:g}") for number in numbers) + 1
    return nearest * max_letters >= widest * (positions[-1] - positions[0])


def collect_legend_entries(grid: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """Return the handles and labels of a legend for all axes; each label occurs once."""
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, _extract_line(handle))
    return list(handles.values()), list(handles)


def _extract_line(handle: Any) -> Line2D:
    """Return the line of a legend's entry; the entry of error bars is a container with a line."""
    return handle if isinstance(handle, Line2D) else handle.lines[0]


def _label_curve_ends(axes: Axes) -> None:
    """Write each curve's name next to its last point; names that would overlap are moved apart."""
    ends = []
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        line = _extract_line(handle)
        xs, ys = (np.asarray(data, np.float64) for data in line.get_data())
        if len(xs):
            # The x coordinates of a line across the axes are shares of the axes' width.
            x = axes.get_xlim()[1] if label == "ceiling" else float(xs[-1])
            ends.append((x, float(ys[-1]), label, line))
    low, high = axes.get_ylim()
    spacing = 0.068
    heights = spread_labels([(y - low) / (high - low) for _, y, _, _ in ends], spacing)
    for (x, y, label, line), height in zip(ends, heights, strict=True):
        axes.annotate(
            label,
            (x, y),
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": GREY,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 3,
                "relpos": (0, 0.5),  # the arrow ends left of its name, so it crosses no other name
            },
        )


def spread_labels(positions: list[float], spacing: float) -> list[float]:
    """Return `positions`, moved so that neighbours are at least `spacing` apart.

    The order stays the same. Positions move as little as necessary, and stay between 0 and 1 if all
    of them fit there.
    """
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    moved = list(positions)
    for lower, index in itertools.pairwise(order):
        moved[index] = max(moved[index], moved[lower] + spacing)
    top = 1.0
    for index in reversed(order):
        moved[index] = min(moved[index], top)
        top = moved[index] - spacing
    return moved


def wrap_label(name: str, width: int = 24) -> str:
    """Return a name in lines of at most `width` letters, broken after spaces, `-`, `_` and `/`.

    A part without such a character is not broken, even if it is longer than `width`.
    """
    lines = [""]
    piece = ""
    for letter in name:
        piece += letter
        if letter in " -_/":
            lines, piece = _append_piece(lines, piece, width), ""
    return "\n".join(line.rstrip() for line in _append_piece(lines, piece, width) if line)


def _append_piece(lines: list[str], piece: str, width: int) -> list[str]:
    """Return the lines with `piece` added: to the last line if it fits there, or as a new line."""
    if len(lines[-1]) + len(piece) <= width:
        return [*lines[:-1], lines[-1] + piece]
    return [*lines, piece]
