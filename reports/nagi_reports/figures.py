# SPDX-License-Identifier: Apache-2.0
"""The figures of the report, as SVG: vectors, outlined letters, told apart without colour, too.

Each function draws what it is given and knows no campaign. `svg()` writes a figure; the same figure
is the same text.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import PercentFormatter

from nagi_reports.attribution import OUTCOMES, Classified
from nagi_reports.glyphs import displayable
from nagi_reports.series import Curve as TimeCurve
from nagi_reports.series import Floats, Queue, RunSeries
from nagi_reports.summary import Axis, Mean, Panel, Summary
from nagi_reports.text import of_points, title

# Colours of Okabe and Ito, safe for colour-blind readers; markers and dashes carry the distinction
# in print.
_STYLES: list[tuple[str, str, Any]] = [
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
_GREY, _PALE = "#8C8C8C", "#D0D0D0"
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
    "legend.fontsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "savefig.transparent": True,
    "text.parse_math": False,  # a name with two $ in it is no formula
    "svg.fonttype": "path",
    "svg.hashsalt": "nagi",  # the same figure is the same file
}
WIDTH = 6.69  # inches: the width of the report's text
_NARROW = 5.2  # of a figure with one panel
_PAIRS = 48  # rows at most in a figure side by side, so that it fits on a page
_PANELS = 9  # at most in a figure, so that it fits on a page
ROWS = 6  # of runs at most in a figure over time
_DIRECT = 10  # more curves than this are told apart by a legend


@contextmanager
def style() -> Iterator[None]:
    """Give matplotlib its own defaults and nagi's settings while figures are drawn. The user's
    matplotlibrc has no say: the same runs give the same figures."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def svg(figure: Figure) -> str:
    """Return a figure as SVG. Characters without a glyph are shown as U+FFFD."""
    for text in figure.findobj(Text):
        text.set_text(displayable(text.get_text()))
    with style():
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        return written.getvalue()


def texts(figure: Figure) -> list[Text]:
    """Every text that a figure shows; for tests of whether any covers another."""
    beyond = {
        label
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick, place in zip(axis.get_major_ticks(), axis.get_majorticklocs(), strict=True)
        for label in (tick.label1, tick.label2)
        if not min(axis.get_view_interval()) <= place <= max(axis.get_view_interval())
    }
    return [
        text
        for text in figure.findobj(Text)
        if isinstance(text, Text)
        and text not in beyond
        and text.get_visible()
        and text.get_text().strip()
    ]


def achieved_goodput(summary: Summary) -> list[Figure]:
    """AG against x, a panel each, with the bottleneck that could have been achieved."""

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        present = [
            (x, b / 1e6) for x, b in zip(numbers, panel.bottleneck_bps, strict=True) if b == b
        ]
        if present:
            axes.plot(
                *zip(*sorted(present), strict=True),
                color=_GREY,
                linewidth=2.5,
                label="bottleneck",
                zorder=0,
                marker="_" if len(present) == 1 else "",
                markersize=14,
                markeredgewidth=2.5,
            )
        for index, curve in enumerate(panel.curves):
            _curve(axes, numbers, curve.goodput_bps, index, curve.series, scale=1e-6)
        axes.set_ylim(bottom=0)

    return _panels(summary, draw, "Achieved goodput (Mb/s)")


def achieved_goodput_index(summary: Summary) -> list[Figure]:
    """AGI against x, a panel each, with the ceiling that headers leave."""

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        if panel.ceiling == panel.ceiling:
            axes.axhline(panel.ceiling, color=_GREY, linewidth=1, label="ceiling", zorder=0)
        for index, curve in enumerate(panel.curves):
            _curve(axes, numbers, curve.agi, index, curve.series)
        axes.set_ylim(0, 1.02)

    return _panels(summary, draw, "AGI")


def normalised_index(summary: Summary) -> list[Figure]:
    """NAGI as bars with their names and values, a panel each."""
    found = []
    names = [curve.series for curve in summary.panels[0].curves]
    for panels in _chunks(summary.panels, _PANELS):
        columns = min(len(panels), 3)
        rows = math.ceil(len(panels) / columns)
        lines = max(_wrapped(name).count("\n") + 1 for name in names)
        height = rows * (0.55 + (0.09 + 0.12 * lines) * len(names)) + 0.1
        with style():
            figure = Figure(
                figsize=(WIDTH if columns > 1 else _NARROW, height), layout="constrained"
            )
            for index, (axes, panel) in enumerate(_grid(figure, rows, columns, panels)):
                for at, curve in enumerate(panel.curves):
                    _bar(axes, at, curve.nagi, curve.agi)
                axes.set_yticks(range(len(names)), [_wrapped(name) for name in names])
                axes.set_ylim(len(names) - 0.45, -0.55)
                axes.set_xlim(0, 1.55)
                axes.set_xticks([0, 0.5, 1])
                axes.spines["bottom"].set_bounds(0, 1)
                axes.tick_params(axis="y", length=0)
                label = title(summary, panel) if summary.panels_axis else ""
                axes.set_title(f"{label}{of_points(summary, panel)}".strip(), loc="left")
                if index + columns >= len(panels):
                    axes.set_xlabel("NAGI", x=0.5 / 1.55)
                    axes.tick_params(labelbottom=True)
        found.append(figure)
    return found


def _bar(axes: Axes, at: int, mean: Mean | None, points: list[Mean | None]) -> None:
    if mean is None:
        why = "no common point" if any(points) else "no valid run"
        axes.text(0.02, at, why, va="center", fontsize=7)
        return
    axes.barh(at, mean.value, 0.66, color=_PALE, edgecolor="black", linewidth=0.6)
    apart = 0.0 if math.isnan(mean.halfwidth) else mean.halfwidth
    if apart:
        axes.errorbar(
            mean.value, at, xerr=apart, color="black", linewidth=0.9, capsize=2, linestyle="none"
        )
    said = f"{mean.value:.3f}" + (f" ± {apart:.3f}" if apart else "")
    axes.text(min(1.0, mean.value + apart) + 0.03, at, said, va="center", fontsize=7)


def _wrapped(name: str, width: int = 24) -> str:
    """A long name in lines, broken after hyphens, underscores and spaces."""
    lines = [""]
    piece = ""
    for letter in name:
        piece += letter
        if letter in " -_/":
            lines, piece = _appended(lines, piece, width), ""
    return "\n".join(line.rstrip() for line in _appended(lines, piece, width) if line)


def _appended(lines: list[str], piece: str, width: int) -> list[str]:
    if len(lines[-1]) + len(piece) <= width:
        return [*lines[:-1], lines[-1] + piece]
    return [*lines, piece]


def _chunks(panels: Sequence[Panel], maximum: int) -> Iterator[Sequence[Panel]]:
    for first in range(0, len(panels), maximum):
        yield panels[first : first + maximum]


def _panels(
    summary: Summary, draw: Callable[[Axes, Panel, list[float]], None], y_label: str
) -> list[Figure]:
    return [
        _panel_figure(summary, panels, draw, y_label) for panels in _chunks(summary.panels, _PANELS)
    ]


def _grid(
    figure: Figure, rows: int, columns: int, panels: Sequence[Panel]
) -> list[tuple[Axes, Panel]]:
    """Axes for each panel, row by row; what is left of the last row stays empty."""
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    return list(zip(grid, panels, strict=False))


def _panel_figure(
    summary: Summary,
    panels: Sequence[Panel],
    draw: Callable[[Axes, Panel, list[float]], None],
    y_label: str,
) -> Figure:
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    series = len(panels[0].curves)
    direct = len(panels) == 1 and series <= _DIRECT
    numbers, unit = summary.x.numbers()
    with style():
        size = (WIDTH, 2.75) if columns == 1 else (WIDTH, (2.5, 2.1, 1.75)[rows - 1] * rows + 0.4)
        figure = Figure(figsize=size, layout="constrained")
        grid = _grid(figure, rows, columns, panels)
        for index, (axes, panel) in enumerate(grid):
            draw(axes, panel, numbers)
            axes.set_title(title(summary, panel) if summary.panels_axis else "", loc="left")
            _label_x(axes, summary.x, numbers, unit, columns)
            if index + columns >= len(panels):
                axes.set_xlabel(f"{summary.x.title}{f' ({unit})' if unit else ''}")
                axes.tick_params(labelbottom=True)
            if index % columns == 0:
                axes.set_ylabel(y_label)
        if direct:
            _label_ends(grid[0][0])
        else:
            handles, labels = _handles([axes for axes, _ in grid])
            letters = sum(len(label) + 8 for label in labels)
            across = math.ceil(len(labels) / math.ceil(letters / 108))
            figure.legend(
                handles,
                labels,
                ncols=across,
                handlelength=2.8,
                columnspacing=1.2,
                loc="outside upper center",
            )
    return figure


def _label_x(axes: Axes, axis: Axis, numbers: list[float], unit: str, columns: int) -> None:
    """Ticks at the values themselves if there is room for them."""
    labels = [f"{number:g}" for number in numbers] if unit else [_wrapped(v) for v in axis.values]
    room = 80 if columns == 1 else 24
    letters = sum(max(map(len, label.split("\n"))) + 2 for label in labels)
    if not unit or (letters <= room and _even(numbers, room)):
        steep = letters > room
        axes.set_xticks(
            numbers,
            labels,
            rotation=40 if steep else 0,
            ha="right" if steep else "center",
            rotation_mode="anchor" if steep else "default",
        )
        pad = 0.5 if len(numbers) == 1 else 0.06 * (max(numbers) - min(numbers))
        axes.set_xlim(min(numbers) - pad, max(numbers) + pad)
    elif len(numbers) > 1:
        axes.set_xlim(min(numbers) - 0.05 * max(numbers), 1.05 * max(numbers))


def _even(numbers: list[float], room: int) -> bool:
    """Whether labels at these places are far enough apart."""
    if len(numbers) < 2:
        return True
    places = sorted(numbers)
    nearest = min(b - a for a, b in itertools.pairwise(places))
    widest = max(len(f"{number:g}") for number in numbers) + 1
    return nearest * room >= widest * (places[-1] - places[0])


def _handles(grid: Sequence[Axes]) -> tuple[list[Any], list[str]]:
    """The legend's entries: those of all panels, each once."""
    found: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, _line_of(handle))
    return list(found.values()), list(found)


def _line_of(handle: Any) -> Line2D:
    """What a legend's entry shows; of points with error bars, the line alone."""
    return handle if isinstance(handle, Line2D) else handle.lines[0]


def _label_ends(axes: Axes) -> None:
    """Each curve's name beside its last point, moved apart where they would meet."""
    ends = []
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        line = _line_of(handle)
        xs, ys = (np.asarray(data, np.float64) for data in line.get_data())
        if len(xs):
            # A line across the axes has its ends in their own coordinates.
            x = axes.get_xlim()[1] if label == "ceiling" else float(xs[-1])
            ends.append((x, float(ys[-1]), label, line))
    low, high = axes.get_ylim()
    apart = 0.068
    places = spread([(y - low) / (high - low) for _, y, _, _ in ends], apart)
    for (x, y, label, line), place in zip(ends, places, strict=True):
        axes.annotate(
            label,
            (x, y),
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": _GREY,
                "linewidth": 0.5,
                "shrinkA": 1,
                "shrinkB": 3,
                "relpos": (0, 0.5),  # it ends at the name's left, and crosses no other name
            },
        )


def spread(places: list[float], apart: float) -> list[float]:
    """`places` moved as little as it takes to be `apart` from each other, in their order, and all
    within 0 and 1 if they fit there."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    for before, index in itertools.pairwise(order):
        moved[index] = max(moved[index], moved[before] + apart)
    top = 1.0
    for index in reversed(order):
        moved[index] = min(moved[index], top)
        top = moved[index] - apart
    return moved


def _curve(
    axes: Axes,
    numbers: list[float],
    means: list[Mean | None],
    index: int,
    label: str,
    scale: float = 1.0,
) -> None:
    colour, marker, dashes = _STYLES[index % len(_STYLES)]
    present = sorted((x, m) for x, m in zip(numbers, means, strict=True) if m is not None)
    errors = [mean.halfwidth * scale for _, mean in present]
    axes.errorbar(
        [x for x, _ in present],
        [mean.value * scale for _, mean in present],
        yerr=None if all(math.isnan(error) for error in errors) else errors,
        color=colour,
        marker=marker,
        linestyle=dashes,
        markerfacecolor="white",
        capsize=2,
        elinewidth=0.8,
        label=label,
    )


@dataclass(frozen=True)
class ErrorRate:
    """How many of the packets sent at an SNR were lost."""

    snr_db: float
    lost: int
    sent: int


def error_rates(curves: Sequence[tuple[str, Sequence[ErrorRate]]]) -> Figure:
    """Shares of packets lost over SNR, a curve each; a triangle stands for none, where one of all
    that were sent would be."""
    with style():
        figure = Figure(figsize=(WIDTH, 2.75), layout="constrained")
        axes = figure.subplots()
        axes.set_yscale("log")
        # Powers of ten are formulas.
        for tick in (*axes.yaxis.get_major_ticks(20), *axes.yaxis.get_minor_ticks(200)):
            tick.label1.set_parse_math(True)
        for index, (label, rates) in enumerate(curves):
            colour, marker, dashes = _STYLES[index % len(_STYLES)]
            some = [rate for rate in rates if rate.lost]
            axes.plot(
                [rate.snr_db for rate in some],
                [rate.lost / rate.sent for rate in some],
                color=colour,
                marker=marker,
                linestyle=dashes,
                markerfacecolor="white",
                label=label,
            )
            none = [rate for rate in rates if not rate.lost]
            axes.plot(
                [rate.snr_db for rate in none],
                [1 / rate.sent for rate in none],
                color=colour,
                marker="v",
                linestyle="none",
            )
        axes.set_ylim(top=1.3)
        axes.set_xlabel("SNR configured (dB)")
        axes.set_ylabel("Packet error rate")
        axes.grid(axis="y", color=_PALE, linewidth=0.4)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, ncols=2, handlelength=2.8, loc="outside upper center")
    return figure


@dataclass(frozen=True)
class ModeShares:
    """In which modes transmissions of a direction were sent, by SNR."""

    label: str
    snr_db: list[int]
    shares: dict[str, list[float]]
    """Of each mode, from the slowest on: at each SNR."""
    lost: list[float]
    """Share of transmissions, at each SNR."""


def modes_over_snr(panels: Sequence[ModeShares]) -> Figure:
    """A bar an SNR, stacked by mode, and the share that was lost as a line: a panel a direction."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.shares))
    colours = mpl.colormaps["viridis"](np.linspace(0, 1, len(names)))
    with style():
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            below = np.zeros(len(panel.snr_db))
            for name, colour in zip(names, colours, strict=True):
                share = np.array(panel.shares.get(name, below * 0))
                axes.bar(panel.snr_db, share, 1.0, below, color=colour, label=name)
                below += share
            places = range(panel.snr_db[0], panel.snr_db[-1] + 1)
            known = dict(zip(panel.snr_db, panel.lost, strict=True))
            lost = [known.get(place, math.nan) for place in places]
            axes.plot(places, lost, color="white", linewidth=2.4)
            axes.plot(places, lost, color=_STYLES[1][0], label="lost")
            axes.set_ylim(0, 1)
            axes.set_title(panel.label)
            axes.set_xlabel("SNR as measured (dB)")
            axes.yaxis.set_major_formatter(PercentFormatter(1))
        grid[0].set_ylabel("Transmissions")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=5, loc="outside upper center")
    return figure


@dataclass(frozen=True)
class Pair:
    """Two means of the same, and how far they are apart: second - first."""

    label: str
    first: Mean
    second: Mean
    difference: Mean
    differs: bool


def side_by_side(names: tuple[str, str], pairs: Sequence[Pair], metric: str) -> list[Figure]:
    """Two sets of runs, a row a point: on the left their means, on the right the differences."""
    found = []
    for first in range(0, len(pairs), _PAIRS):
        rows = pairs[first : first + _PAIRS]
        with style():
            figure = Figure(figsize=(WIDTH, 0.75 + 0.16 * len(rows)), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
            places = np.arange(len(rows))
            for name, means, apart, (colour, marker, _) in (
                (names[0], [row.first for row in rows], -0.14, _STYLES[0]),
                (names[1], [row.second for row in rows], 0.14, _STYLES[1]),
            ):
                _across(left, means, places + apart, colour, marker, name)
            right.axvline(0, color=_GREY, linewidth=0.8)
            _across(right, [row.difference for row in rows], places, "black", "o", "")
            labels = [f"{row.label} *" if row.differs else row.label for row in rows]
            left.set_yticks(places, labels)
            left.set_ylim(len(rows) - 0.4, -0.6)
            for axes in (left, right):
                axes.tick_params(axis="y", length=0)
                axes.grid(axis="y", color=_PALE, linewidth=0.4)
                axes.set_axisbelow(True)
            left.set_xlabel(metric)
            right.set_xlabel("difference")
            figure.legend(*left.get_legend_handles_labels(), ncols=2, loc="outside upper center")
        found.append(figure)
    return found


def _across(
    axes: Axes, means: Sequence[Mean], places: Any, colour: str, marker: str, label: str
) -> None:
    axes.errorbar(
        [mean.value for mean in means],
        places,
        xerr=[0.0 if math.isnan(mean.halfwidth) else mean.halfwidth for mean in means],
        color=colour,
        marker=marker,
        markersize=3.2,
        markerfacecolor="white",
        linestyle="none",
        elinewidth=0.8,
        label=label,
    )


@dataclass(frozen=True)
class Losses:
    """How a scheme classified its losses."""

    name: str
    known: str  # where it is known from: reported, inferred
    channel: Classified
    queue: Classified


# How each of OUTCOMES looks: colour and hatching.
_CLASSES = ((_STYLES[1][0], ""), (_STYLES[5][0], "////"), (_PALE, "...."), ("#FFFFFF", ""))


def taken_for(groups: Sequence[tuple[str, Sequence[Losses]]]) -> Figure:
    """How lost segments were classified, as stacked bars: (title, rows) a panel; losses on channels
    on the left, in queues on the right."""
    names = [[_wrapped(f"{each.name} ({each.known})", 30) for each in rows] for _, rows in groups]
    lines = [sum(name.count("\n") + 1 for name in panel) for panel in names]
    heights = [
        0.3 + 0.08 * len(rows) + 0.12 * count
        for (_, rows), count in zip(groups, lines, strict=True)
    ]
    with style(), mpl.rc_context({"hatch.linewidth": 0.5}):
        figure = Figure(figsize=(WIDTH, 0.75 + sum(heights)), layout="constrained")
        grid = figure.subplots(
            len(groups), 2, sharex=True, sharey="row", squeeze=False, height_ratios=heights
        )
        for pair, (label, rows), said in zip(grid, groups, names, strict=True):
            for axes, head, losses in (
                (pair[0], "Lost on channels", [each.channel for each in rows]),
                (pair[1], "Dropped by queues", [each.queue for each in rows]),
            ):
                for at, classified in enumerate(losses):
                    _draw_classified(axes, at, classified)
                axes.set_yticks(range(len(rows)), said)
                axes.set_ylim(len(rows) - 0.45, -0.55)
                axes.set_xlim(0, 1.22)
                axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
                axes.spines["bottom"].set_bounds(0, 1)
                axes.tick_params(axis="y", length=0)
                axes.set_title(f"{label}: {head.lower()}" if label else head, loc="left")
        figure.legend(
            handles=[
                Patch(facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=words)
                for (colour, hatch), words in zip(
                    _CLASSES,
                    ("classified as congestion", "as channel loss", *OUTCOMES[2:]),
                    strict=True,
                )
            ],
            ncols=len(_CLASSES),
            loc="outside upper center",
        )
    return figure


def _draw_classified(axes: Axes, at: int, classified: Classified) -> None:
    if not classified.total:
        axes.text(0.02, at, "no loss", va="center", fontsize=7)
        return
    begin = 0.0
    for count, (colour, hatch) in zip(classified.counts, _CLASSES, strict=True):
        share = count / classified.total
        if count:
            axes.barh(
                at,
                share,
                0.66,
                left=begin,
                color=colour,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.6,
            )
        begin += share
    axes.text(1.03, at, f"{classified.total:,}", va="center", fontsize=7)


@dataclass(frozen=True)
class SharesOverTime:
    """What shares the flows of a run had of their bottleneck, over time."""

    title: str
    edges_s: Floats  # of windows, since the traffic began
    groups: list[tuple[str, str, list[Floats]]]  # name, scheme, each flow's share in each window
    jain: Floats


_SHARES_ACROSS = 3
_HATCHES = ("", "....", "////", "xxxx")
_GROUPS = (_STYLES[0][0], _STYLES[1][0], _STYLES[2][0], _STYLES[3][0])
_LABELLED = 0.09  # a band with a smaller share has no room for its scheme's name
_LETTERS = 14  # of a scheme's name that have room in a band
_BESIDE = 6  # competitors at most, so that two matrices of harm stand beside each other
_LEVEL = 56  # letters of competitors' names that have room in a line


def shares_over_time(runs: Sequence[SharesOverTime]) -> Figure:
    """Shares as areas upon each other, a run each, with the borders that fair shares would have;
    below them Jain's index."""
    across = min(len(runs), _SHARES_ACROSS)
    down = math.ceil(len(runs) / across)
    names = list(dict.fromkeys(name for run in runs for name, _, _ in run.groups))
    with style(), mpl.rc_context({"hatch.linewidth": 0.4}):
        figure = Figure(figsize=(WIDTH, 0.45 + 2.1 * down), layout="constrained")
        grid = figure.subplots(
            2 * down, across, sharex="col", squeeze=False, height_ratios=[3.4, 1] * down
        )
        for place in range(across * down):
            row, column = divmod(place, across)
            areas, below = grid[2 * row][column], grid[2 * row + 1][column]
            if place >= len(runs):
                areas.set_visible(False)
                below.set_visible(False)
                continue
            run = runs[place]
            _draw_shares(areas, run, names)
            areas.set_title(_wrapped(run.title, 29), loc="left", fontsize=7.5)
            _steps(below, run.edges_s, run.jain)
            below.set_ylim(0, 1.08)
            below.set_yticks([0, 1])
            below.grid(axis="y", color=_PALE, linewidth=0.4)
            below.set_xlim(0, run.edges_s[-1])
            if column == 0:
                areas.set_ylabel("Share")
                below.set_ylabel("Jain")
            if row == down - 1 or place + across >= len(runs):
                below.set_xlabel("Time since the traffic began (s)", fontsize=7)
                below.tick_params(labelbottom=True)
        handles: list[Any] = [
            Patch(
                facecolor=_GROUPS[index % len(_GROUPS)],
                alpha=0.45,
                hatch=_HATCHES[index % len(_HATCHES)],
                label=f"flows {name}" if _several(runs, name) else f"flow {name}",
            )
            for index, name in enumerate(names)
        ]
        handles.append(Line2D([], [], color="black", linestyle="--", label="fair shares"))
        figure.legend(handles=handles, ncols=len(handles), loc="outside upper center")
    return figure


def _several(runs: Sequence[SharesOverTime], name: str) -> bool:
    return any(len(flows) > 1 for run in runs for each, _, flows in run.groups if each == name)


def _draw_shares(axes: Axes, run: SharesOverTime, names: list[str]) -> None:
    total = sum(len(flows) for _, _, flows in run.groups)
    bottom = np.zeros(len(run.edges_s) - 1)
    before = 0
    for name, scheme, flows in run.groups:
        index = names.index(name)
        begin = bottom
        for share in flows:
            top = bottom + np.nan_to_num(share)
            axes.fill_between(
                run.edges_s,
                np.append(bottom, bottom[-1]),
                np.append(top, top[-1]),
                step="post",
                facecolor=_GROUPS[index % len(_GROUPS)],
                alpha=0.45,
                hatch=_HATCHES[index % len(_HATCHES)],
                edgecolor="#FFFFFF",
                linewidth=0.5,
            )
            bottom = top
        before += len(flows)
        if before < total:
            axes.axhline(before / total, color="black", linestyle="--", linewidth=0.9)
        late = slice(len(bottom) // 2, None)
        middle = float((begin[late] + bottom[late]).mean() / 2)
        if float((bottom - begin)[late].mean()) > _LABELLED:
            axes.text(
                run.edges_s[-1] * 0.97,
                middle,
                scheme if len(scheme) <= _LETTERS else f"{scheme[:_LETTERS]}…",
                ha="right",
                va="center",
                fontsize=7.5,
                bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
            )
    if len(run.groups) == 1:
        for number in range(1, total):
            axes.axhline(number / total, color="black", linestyle="--", linewidth=0.9)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100 %"])


def _steps(axes: Axes, edges: Floats, values: Floats) -> None:
    axes.plot(
        edges, np.append(values, values[-1]), drawstyle="steps-post", color="black", linewidth=0.9
    )


def over_x(
    summary: Summary, means: Mapping[tuple[str, str], list[Mean | None]], y_label: str
) -> list[Figure]:
    """Any means from 0 to 1 against x, a panel each: (panel's label, series) -> a mean at each
    value of x."""

    def draw(axes: Axes, panel: Panel, numbers: list[float]) -> None:
        for index, curve in enumerate(panel.curves):
            found = means.get((panel.label, curve.series))
            if found is not None:
                _curve(axes, numbers, found, index, curve.series)
        axes.set_ylim(0, 1.02)

    return _panels(summary, draw, y_label)


@dataclass(frozen=True)
class Harm:
    """Harm to schemes (rows) by competitors (columns), with 95 % intervals; None: not known."""

    title: str
    schemes: list[str]
    competitors: list[str]
    cells: list[list[Mean | None]]
    beyond: list[list[bool]]  # whether it is more than the scheme does to itself


def harm(pairs: Sequence[tuple[Harm, Harm]]) -> Figure:
    """Heat maps with their numbers, harm to goodput and harm to RTT: beside each other if there is
    room."""
    across = 2 if len(pairs[0][0].competitors) <= _BESIDE else 1
    matrices = [matrix for pair in pairs for matrix in pair]
    rows = [matrices[first : first + across] for first in range(0, len(matrices), across)]
    steep = sum(max(map(len, _wrapped(c, 9).split("\n"))) for c in pairs[0][0].competitors)
    is_steep = steep * across > _LEVEL
    heights = [0.5 + 0.4 * is_steep + 0.31 * len(row[0].schemes) for row in rows]
    with style():
        figure = Figure(figsize=(WIDTH, sum(heights) + 0.2), layout="constrained")
        grid = figure.subplots(len(rows), across, squeeze=False, height_ratios=heights)
        for places, shown in zip(grid, rows, strict=True):
            for column, (axes, matrix) in enumerate(zip(places, shown, strict=True)):
                _draw_harm(axes, matrix, is_steep)
                axes.set_title(matrix.title, loc="left")
                if column == 0:
                    axes.set_ylabel("harm to")
                axes.set_xlabel("harm by", labelpad=1)
    return figure


def _draw_harm(axes: Axes, matrix: Harm, is_steep: bool) -> None:
    for y, (scheme, cells, beyond) in enumerate(
        zip(matrix.schemes, matrix.cells, matrix.beyond, strict=True)
    ):
        for x, (competitor, mean, is_beyond) in enumerate(
            zip(matrix.competitors, cells, beyond, strict=True)
        ):
            itself = scheme == competitor
            axes.add_patch(
                Rectangle(
                    (x - 0.5, y - 0.5),
                    1,
                    1,
                    facecolor=_heat(0.0 if mean is None else mean.value),
                    edgecolor="black" if itself else _GREY,
                    linewidth=1.3 if itself else 0.5,
                    zorder=3 if itself else 2,
                )
            )
            said = "n/a" if mean is None else f"{mean.value:.2f}{' *' if is_beyond else ''}"
            if mean is not None and not math.isnan(mean.halfwidth):
                said += f"\n± {mean.halfwidth:.2f}"
            dark = mean is not None and mean.value > 0.8
            axes.text(
                x,
                y,
                said,
                ha="center",
                va="center",
                fontsize=7,
                linespacing=1.0,
                color="#FDFDFD" if dark else "#111111",
                zorder=4,
            )
    axes.set_xlim(-0.5, len(matrix.competitors) - 0.5)
    axes.set_ylim(len(matrix.schemes) - 0.5, -0.5)
    axes.set_xticks(
        range(len(matrix.competitors)),
        [_wrapped(name, 16 if is_steep else 9) for name in matrix.competitors],
        rotation=90 if is_steep else 0,
    )
    axes.set_yticks(range(len(matrix.schemes)), [_wrapped(s, 14) for s in matrix.schemes])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _heat(value: float) -> str:
    """A colour that no page changes: from white at 0 to dark red at 1, to blue below 0."""
    near, far = (
        ((253, 253, 252), (165, 35, 20)) if value >= 0 else ((253, 253, 252), (90, 150, 205))
    )
    part = min(abs(value), 1.0)
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(near, far, strict=True))
    return f"#{red:02X}{green:02X}{blue:02X}"


def over_time(rows: list[tuple[str, RunSeries | None]]) -> Figure:
    """Window, round-trip time and the bottleneck's queue over time, a run a row: (name, what
    happened)."""
    known = [series for _, series in rows if series is not None]
    end = max((series.end_s for series in known), default=1.0)
    tops = _Tops(known)
    with style():
        figure = Figure(
            figsize=(WIDTH, 0.6 + 1.36 * len(rows)),
            layout=ConstrainedLayoutEngine(hspace=0.02, wspace=0.04),
        )
        grid = figure.subplots(len(rows), 3, sharex=True, squeeze=False)
        for (window, rtt, queue), (name, series) in zip(grid, rows, strict=True):
            window.set_title(name, loc="left", fontweight="bold", fontsize=8)
            for axes in (window, rtt, queue):
                axes.set_xlim(0, end)
                axes.tick_params(labelsize=7)
                axes.locator_params(axis="y", nbins=4)
            if series is None:
                for axes in (window, rtt, queue):
                    _absent(axes, "no valid run")
                continue
            _window(window, series, tops.window)
            _rtt(rtt, series, tops.rtt)
            _queue(queue, series, tops.queue)
        heads = ("Window (packets)", "Smoothed RTT (ms)", "Queue (packets)")
        for axes, head in zip(grid[0], heads, strict=True):
            # Above the line on which the first row's name stands.
            axes.annotate(
                head,
                (0.5, 1),
                xytext=(0, 17),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                annotation_clip=False,
            )
        for axes in grid[-1]:
            axes.set_xlabel("Time since the traffic began (s)", fontsize=7.5)
        figure.legend(
            handles=_time_legend(),
            ncols=4,
            handlelength=2.2,
            loc="outside upper center",
            fontsize=7,
        )
    return figure


@dataclass(frozen=True)
class _Tops:
    """Where the scales end that all rows share; 0 where each row has its own."""

    runs: list[RunSeries]

    @property
    def window(self) -> float:
        return _shared([float(run.cwnd.maximum.max()) for run in self.runs if run.cwnd])

    @property
    def rtt(self) -> float:
        return _shared([float(run.rtt_ms.maximum.max()) for run in self.runs if run.rtt_ms])

    @property
    def queue(self) -> float:
        return _shared([_queue_top(run.queue) for run in self.runs if run.queue])


SHARED_WITHIN = 4.0  # rows share a scale if the largest is at most so many times the smallest


def _shared(tops: list[float]) -> float:
    if not tops or min(tops) <= 0 or max(tops) > SHARED_WITHIN * min(tops):
        return 0.0
    return 1.08 * max(tops)


def _queue_top(queue: Queue) -> float:
    return float(queue.waiting.maximum.max(initial=0))


def _absent(axes: Axes, why: str) -> None:
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, _wrapped(why, 24), ha="center", va="center", fontsize=7, transform=axes.transAxes
    )


def _line(axes: Axes, curve: TimeCurve, **how: Any) -> None:
    axes.fill_between(
        curve.time_s,
        curve.minimum,
        curve.maximum,
        color=_PALE,
        linewidth=0.5,
        zorder=how.get("zorder", 2),
    )
    axes.plot(curve.time_s, curve.value, linewidth=0.8, **how)


def _window(axes: Axes, series: RunSeries, top: float) -> None:
    if series.cwnd is None:
        _absent(axes, "not recorded")
        return
    _line(axes, series.cwnd, color="black")
    top = top or 1.08 * max(1.0, float(series.cwnd.maximum.max()))
    if series.ssthresh is not None:
        axes.plot(
            series.ssthresh.time_s,
            series.ssthresh.value,
            color=_STYLES[0][0],
            linestyle="--",
            linewidth=0.8,
            drawstyle="steps-post",
        )
    axes.set_ylim(0, top)
    if series.verdicts is not None:
        # As drops in a queue: above what is congestion, below what is the channel's.
        _ticks(axes, series.verdicts.congestion_s, 0.97, _STYLES[1][0])
        _ticks(axes, series.verdicts.undecided_s, 0.03, _GREY)
        _ticks(axes, series.verdicts.channel_s, 0.03, "black")


def _rtt(axes: Axes, series: RunSeries, top: float) -> None:
    if series.rtt_ms is None:
        _absent(axes, "not recorded")
        return
    axes.axhline(series.base_rtt_ms, color=_GREY, linewidth=1, linestyle=":")
    _line(axes, series.rtt_ms, color="black")
    # Without any sample the kernel tells 0.
    axes.set_ylim(0, top or 1.08 * (float(series.rtt_ms.maximum.max()) or series.base_rtt_ms))


def _queue(axes: Axes, series: RunSeries, top: float) -> None:
    if series.queue is None:
        _absent(axes, series.why_no_queue)
        return
    queue = series.queue
    top = top or 1.08 * max(1.0, _queue_top(queue))
    if queue.limit_packets is not None:
        axes.axhline(queue.limit_packets, color=_GREY, linewidth=1, linestyle="--")
    _line(axes, queue.waiting, color="black", drawstyle="steps-post")
    axes.set_ylim(0, top)
    # Along the upper edge: drops here; along the lower edge, outside: losses on the channel.
    _ticks(axes, queue.overflow_s, 0.97, _STYLES[1][0])
    _ticks(axes, queue.loss_s, 0.03, "black")


def _ticks(axes: Axes, times: Floats, y: float, colour: str) -> None:
    """A tick at each time, at a height within the axes."""
    shown = np.unique(np.round(times, 2))
    axes.plot(
        shown,
        np.full(len(shown), y),
        marker="|",
        markersize=5,
        markeredgewidth=0.7,
        linestyle="none",
        color=colour,
        transform=axes.get_xaxis_transform(),
        clip_on=True,
        zorder=3,
    )


def _time_legend() -> list[Any]:
    def line(label: str, **how: Any) -> Line2D:
        return Line2D([], [], label=label, **{"linewidth": 0.9, "color": "black", **how})

    return [
        line("cwnd, RTT, queue"),
        Patch(color=_PALE, label="their range"),
        line("ssthresh", color=_STYLES[0][0], linestyle="--"),
        line("base RTT", color=_GREY, linestyle=":"),
        line("queue limit", color=_GREY, linestyle="--"),
        line("overflow (upper edge)", marker="|", linestyle="none", color=_STYLES[1][0]),
        line("channel loss (lower edge)", marker="|", linestyle="none"),
    ]


@dataclass(frozen=True)
class DrawnLink:
    """A link of the topology, with short lines that say what it is."""

    ends: tuple[str, str]
    name: str
    lines: tuple[str, ...]


def topology(nodes: Mapping[str, str], links: list[DrawnLink], first: str) -> Figure:
    """Nodes (name -> kind; a shared medium is one, too) and links, in layers by the number of hops
    from `first`.

    Links are labelled in full if that leaves every label free, else with their names."""
    places, layers = _places(nodes, links, first)
    maximum = max(sum(1 for x, _ in places.values() if x == layer) for layer in range(layers))
    with style():
        for full in (True, False):
            figure = Figure(figsize=(WIDTH, 0.7 * maximum + 0.3))
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set_axis_off()
            axes.set_xlim(-0.5, max(layers, 2) - 0.5)
            axes.set_ylim(-maximum / 2 - 0.2, maximum / 2 + 0.2)
            labels = _draw_topology(axes, nodes, links, places, full)
            if not full or not _covering(figure, labels):
                break
    return figure


def _places(
    nodes: Mapping[str, str], links: list[DrawnLink], first: str
) -> tuple[dict[str, tuple[float, float]], int]:
    layer = {first: 0}
    reached = [first]
    for node in reached:
        for link in links:
            for one, other in (link.ends, link.ends[::-1]):
                if one == node and other not in layer:
                    layer[other] = layer[node] + 1
                    reached.append(other)
    for node in nodes:
        layer.setdefault(node, 0)
    layers = max(layer.values()) + 1
    places = {}
    for number in range(layers):
        inside = [node for node in (*reached, *nodes) if layer[node] == number]
        inside = list(dict.fromkeys(inside))
        for index, node in enumerate(inside):
            places[node] = (float(number), (len(inside) - 1) / 2 - index)
    return places, layers


def _draw_topology(
    axes: Axes,
    nodes: Mapping[str, str],
    links: list[DrawnLink],
    places: dict[str, tuple[float, float]],
    full: bool,
) -> list[Text]:
    labels = []
    for link in links:
        (x0, y0), (x1, y1) = (places[end] for end in link.ends)
        axes.plot([x0, x1], [y0, y1], color="black", linewidth=1, zorder=1)
        if not link.name:  # an attachment to a medium
            continue
        lines = [link.name, *link.lines] if full else [link.name]
        # The name above the line, the rest below; a white ground keeps other lines off.
        said = "\n".join([lines[0], *lines[1:]])
        labels.append(
            axes.text(
                (x0 + x1) / 2,
                (y0 + y1) / 2,
                said,
                ha="center",
                va="center",
                fontsize=7.5,
                linespacing=1.35,
                zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        )
    for node, kind in nodes.items():
        x, y = places[node]
        shape = "square,pad=0.5" if kind == "host" else "round,pad=0.55"
        labels.append(
            axes.text(
                x,
                y,
                node,
                ha="center",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                zorder=3,
                bbox={
                    "boxstyle": shape,
                    "facecolor": "white",
                    "edgecolor": "black",
                    "linestyle": "--" if kind == "medium" else "-",
                },
            )
        )
    return labels


def _covering(figure: Figure, labels: list[Text]) -> bool:
    """Whether two of the labels overlap."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    boxes = [label.get_bbox_patch() or label for label in labels]
    for label in labels:
        label.update_bbox_position_size(renderer)
    extents = [box.get_window_extent(renderer) for box in boxes]
    return any(one.overlaps(other) for one, other in itertools.combinations(extents, 2))


@dataclass(frozen=True)
class FaredCurves:
    """How a flow's application fared over x, by one metric."""

    title: str
    y_label: str
    curves: list[tuple[str, list[Mean | None]]]  # series, a mean at each value of x


def fared(x: Axis, drawn: Sequence[FaredCurves]) -> list[Figure]:
    """Applications over x, axes each, with one legend."""
    return [_fared(x, drawn[at : at + _PANELS]) for at in range(0, len(drawn), _PANELS)]


def _fared(x: Axis, drawn: Sequence[FaredCurves]) -> Figure:
    columns = min(len(drawn), 3)
    rows = math.ceil(len(drawn) / columns)
    numbers, unit = x.numbers()
    with style():
        height = (2.5, 2.0, 1.75)[rows - 1] * rows + 0.4
        figure = Figure(figsize=(WIDTH if columns > 1 else _NARROW, height), layout="constrained")
        grid = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes in grid[len(drawn) :]:
            axes.set_visible(False)
        for index, (axes, each) in enumerate(zip(grid, drawn, strict=False)):
            for place, (series, means) in enumerate(each.curves):
                _curve(axes, numbers, means, place, series)
            axes.set_ylim(bottom=0)
            axes.set_title(each.title, loc="left")
            axes.set_ylabel(each.y_label)
            _label_x(axes, x, numbers, unit, columns)
            if index + columns >= len(drawn):
                axes.set_xlabel(f"{x.title}{f' ({unit})' if unit else ''}")
        handles, labels = _handles(grid[: len(drawn)])
        figure.legend(handles, labels, ncols=4, handlelength=2.8, loc="outside upper center")
    return figure


@dataclass(frozen=True)
class DrawnStation:
    """A station of a medium where it is drawn: in m, or in any unit."""

    name: str
    kind: str
    place: tuple[float, float]
    trace: list[tuple[float, float]]  # where it moves, one after the other


@dataclass(frozen=True)
class DrawnMedium:
    """A medium: who hears whom, and the paths of flows over it."""

    stations: list[DrawnStation]
    in_metres: bool
    decodes: list[tuple[str, str]]  # pairs, each of which decodes the other
    one_way: list[tuple[str, str]]  # from, to: only in this direction
    senses: list[tuple[str, str]]  # pairs that sense each other without decoding
    rings: list[tuple[str, float]]  # what, and up to which distance, where that is known
    paths: list[tuple[str, list[str]]]  # flow, its stations


SENSED = 24  # pairs at most that are drawn; where there are more, rings around a station
_RINGS: tuple[Any, ...] = ("-", ":")  # how they are drawn
_NAMED = 60  # stations at most with names
_PATHS = 10  # flows at most with a colour of their own
_BENT = 0.28  # of lines between stations that sense each other: height / half the length
_APART = 0.055  # inches between flows over the same hop


def medium_map(medium: DrawnMedium) -> Figure:
    """Stations at their places, solid lines between those that decode each other, dashed ones or
    rings for carrier sense, and flows as arrows along the hops."""
    xs = [x for each in medium.stations for x, _ in (each.place, *each.trace)]
    ys = [y for each in medium.stations for _, y in (each.place, *each.trace)]
    rings = medium.rings if len(medium.senses) > SENSED else []
    width = max(xs) - min(xs) or max(ys) - min(ys) or 1.0
    height = max(ys) - min(ys)
    inches = min((WIDTH - 1.2) / width, (3.4 if medium.in_metres else 2.0) / max(height, 1e-9))
    places = {each.name: each.place for each in medium.stations}
    bent = [] if rings else [math.dist(places[one], places[other]) for one, other in medium.senses]
    beyond = max(0.4, _BENT / 2 * max(bent, default=0) * inches + 0.15)  # around the stations
    deep = height * inches + 2 * beyond
    legend = 0.22 * math.ceil(len(medium.paths[:_PATHS]) / 4) + 0.3
    bottom = 0.42 if medium.in_metres else 0.05
    with style():
        size = (WIDTH, deep + legend + bottom)
        figure = Figure(figsize=size)
        axes = figure.add_axes((0.08, bottom / size[1], 0.9, deep / size[1]))
        middle = (min(xs) + max(xs)) / 2
        across = 0.9 * WIDTH / inches / 2
        axes.set_xlim(middle - across, middle + across)
        axes.set_ylim(min(ys) - beyond / inches, max(ys) + beyond / inches)
        axes.set_aspect("equal")
        axes.tick_params(labelsize=7)
        axes.set_xlabel("m", labelpad=1)
        axes.locator_params(axis="y", nbins=5)
        if not medium.in_metres:
            axes.set_axis_off()
        elif not height:
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        _draw_reach(axes, medium, places, rings)
        for index, ((_, nodes), lane) in enumerate(zip(medium.paths, _lanes(medium), strict=True)):
            aside = (1 + lane) * _APART / inches
            _draw_path(axes, [places[node] for node in nodes], index, aside)
        _draw_stations(axes, medium)
        handles = [
            Line2D([], [], color=_GREY, linewidth=1, label="decode each other"),
            *([_sensing()] if medium.senses and not rings else []),
            *(
                Line2D([], [], color=_GREY, linewidth=0.8, linestyle=dashes, label=label)
                for (label, _), dashes in zip(rings, _RINGS, strict=False)
            ),
            *(
                Line2D([], [], color=_STYLES[at][0], linewidth=1.6, label=f"flow {name}")
                for at, (name, _) in enumerate(medium.paths[:_PATHS])
            ),
        ]
        figure.legend(handles=handles, ncols=4, loc="upper center", handlelength=2.2)
    return figure


def _sensing() -> Line2D:
    return Line2D([], [], color=_GREY, linewidth=0.7, linestyle="--", label="sense each other only")


def _draw_reach(
    axes: Axes,
    medium: DrawnMedium,
    places: Mapping[str, tuple[float, float]],
    rings: list[tuple[str, float]],
) -> None:
    for one, other in medium.decodes:
        (x0, y0), (x1, y1) = places[one], places[other]
        axes.plot([x0, x1], [y0, y1], color=_GREY, linewidth=1, zorder=1)
    for one, other in medium.one_way:
        _joined(axes, places[one], places[other], arrowstyle="-|>", connectionstyle="arc3,rad=0.08")
    if not rings:
        for index, (one, other) in enumerate(medium.senses):
            bent = f"arc3,rad={_BENT if index % 2 else -_BENT}"
            _joined(
                axes, places[one], places[other], connectionstyle=bent, linestyle="--",
                linewidth=0.7,
            )  # fmt: skip
        return
    x, y = places[central(medium)]
    for (_, radius), dashes in zip(rings, _RINGS, strict=False):
        axes.add_patch(
            Circle((x, y), radius, fill=False, edgecolor=_GREY, linewidth=0.8, linestyle=dashes)
        )


def _joined(axes: Axes, one: tuple[float, float], other: tuple[float, float], **how: Any) -> None:
    settings = {"arrowstyle": "-", "linewidth": 1.0, "color": _GREY, "mutation_scale": 8, **how}
    axes.add_patch(FancyArrowPatch(one, other, shrinkA=9, shrinkB=9, zorder=1, **settings))


def central(medium: DrawnMedium) -> str:
    """The station that is nearest to the middle of all."""
    x, y = np.mean(np.array([each.place for each in medium.stations]), axis=0)
    return min(medium.stations, key=lambda each: math.dist(each.place, (x, y))).name


def _lanes(medium: DrawnMedium) -> list[int]:
    """For each flow the first lane, counted from the line between stations, that no flow before it
    has on any of its hops."""
    taken: dict[tuple[str, str], set[int]] = {}
    lanes = []
    for _, nodes in medium.paths:
        hops = list(itertools.pairwise(nodes))
        used = set().union(*(taken.get(hop, set()) for hop in hops))
        lane = next(lane for lane in itertools.count() if lane not in used)
        for hop in hops:
            taken.setdefault(hop, set()).add(lane)
        lanes.append(lane)
    return lanes


def _draw_path(axes: Axes, path: list[tuple[float, float]], index: int, aside: float) -> None:
    """A flow beside the line of each hop, at its right."""
    colour = _STYLES[index][0] if index < _PATHS else _GREY
    points: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        length = math.dist((x0, y0), (x1, y1)) or 1.0
        right = ((y1 - y0) / length * aside, -(x1 - x0) / length * aside)
        points += [(x0 + right[0], y0 + right[1]), (x1 + right[0], y1 + right[1])]
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.4, zorder=2)
    (x0, y0), (x1, y1) = points[-2:]
    axes.annotate(
        "",
        (x0 + 0.72 * (x1 - x0), y0 + 0.72 * (y1 - y0)),
        xytext=(x0 + 0.5 * (x1 - x0), y0 + 0.5 * (y1 - y0)),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.4, "shrinkA": 0},
        zorder=2,
    )


def _draw_stations(axes: Axes, medium: DrawnMedium) -> None:
    ends = {node for _, nodes in medium.paths for node in (nodes[0], nodes[-1])}
    many = len(medium.stations) > _NAMED
    for each in medium.stations:
        x, y = each.place
        if each.trace:
            way = [each.place, *each.trace]
            axes.plot(
                *zip(*way, strict=True), color="black", linewidth=0.7, linestyle=":", marker="o",
                markersize=2.5, markerfacecolor="white", zorder=1,
            )  # fmt: skip
        if many and each.name not in ends:
            axes.plot([x], [y], marker="o", markersize=3, color="black", zorder=3)
            continue
        shape = "square,pad=0.3" if each.kind == "host" else "round,pad=0.35"
        axes.text(
            x, y, each.name, ha="center", va="center", fontsize=7.5, fontweight="bold", zorder=4,
            bbox={"boxstyle": shape, "facecolor": "white", "edgecolor": "black"},
        )  # fmt: skip


@dataclass(frozen=True)
class Airtime:
    """How much stations of a medium were on the air in a run."""

    title: str
    edges_s: Floats  # of windows, since the traffic began
    shares: list[tuple[str, Floats]]  # station, share of each window
    means: list[float]  # of each station, over the measurement interval


_AIRTIME_ACROSS = 2


def airtime(runs: Sequence[Airtime]) -> Figure:
    """Each station's airtime as a heat map over time, a run each; its mean at the right."""
    across = min(len(runs), _AIRTIME_ACROSS)
    down = math.ceil(len(runs) / across)
    stations = max(len(run.shares) for run in runs)
    top = max(0.01, *(float(values.max(initial=0)) for run in runs for _, values in run.shares))
    colours = LinearSegmentedColormap.from_list("airtime", ["#FDFDFC", "#3793C8", "#08304F"])
    with style():
        height = 0.45 + down * (0.62 + max(0.13 * stations, 0.6))
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        grid = figure.subplots(down, across, sharex=True, squeeze=False)
        places = list(grid.flat)
        scale = ScalarMappable(Normalize(0, top), colours)
        for axes in places[len(runs) :]:
            axes.set_visible(False)
        for place, (axes, run) in enumerate(zip(places, runs, strict=False)):
            rows = len(run.shares)
            axes.pcolormesh(
                run.edges_s,
                np.arange(rows + 1) - 0.5,
                np.array([values for _, values in run.shares]),
                cmap=scale.cmap,
                norm=scale.norm,
                edgecolors="face",
                linewidth=0.1,
            )
            axes.set_ylim(rows - 0.5, -0.5)
            axes.set_yticks(range(rows), [name for name, _ in run.shares], fontsize=6.5)
            axes.tick_params(axis="y", length=0)
            axes.set_title(_wrapped(run.title, 34), loc="left", fontsize=7.5)
            beside = axes.secondary_yaxis("right")
            beside.set_yticks(range(rows), [f"{mean:.1%}" for mean in run.means], fontsize=6.5)
            beside.tick_params(length=0)
            for spine in (*axes.spines.values(), *beside.spines.values()):
                spine.set_visible(False)
            if place + across >= len(runs):
                axes.set_xlabel("Time since the traffic began (s)", fontsize=7.5)
                axes.tick_params(labelbottom=True)
        bar = figure.colorbar(
            scale, ax=grid, location="top", shrink=0.4, aspect=30, format=PercentFormatter(1, 0)
        )
        bar.set_label("share of the window on the air", fontsize=7)
        bar.ax.tick_params(labelsize=6.5)
        bar.outline.set_linewidth(0.4)
    return figure


@dataclass(frozen=True)
class StationMeans:
    """Means over runs of what stations of a medium did, by station."""

    series: str
    airtime: list[Mean | None]  # share
    retries: list[Mean | None]  # per packet
    given_up: list[Mean | None]  # share


def stations(names: Sequence[str], series: Sequence[StationMeans]) -> Figure:
    """Airtime, retries and packets given up, a row a station, a marker a series."""
    with style():
        size = (WIDTH, 0.8 + max(0.16 * len(names), 0.7))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(1, 3, sharey=True)
        places = np.arange(len(names))
        for index, each in enumerate(series):
            colour, marker, _ = _STYLES[index % len(_STYLES)]
            apart = (index - (len(series) - 1) / 2) * min(0.28, 0.7 / len(series))
            for axes, means, scale in zip(
                grid, (each.airtime, each.retries, each.given_up), (100, 1, 100), strict=True
            ):
                known = [(at, mean) for at, mean in enumerate(means) if mean is not None]
                _across(
                    axes,
                    [
                        Mean(mean.value * scale, mean.halfwidth * scale, mean.runs)
                        for _, mean in known
                    ],
                    places[[at for at, _ in known]] + apart,
                    colour,
                    marker,
                    each.series,
                )
        heads = ("Airtime (%)", "Retries per packet", "Packets given up (%)")
        for axes, head in zip(grid, heads, strict=True):
            axes.set_xlabel(head)
            if axes.dataLim.x1 <= 0:  # nothing but zeros
                axes.set_xlim(-0.05, 1)
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", color=_PALE, linewidth=0.4)
            axes.set_axisbelow(True)
        grid[0].set_yticks(places, names, fontsize=7)
        grid[0].set_ylim(len(names) - 0.4, -0.6)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=min(len(labels), 5), loc="outside upper center")
    return figure
