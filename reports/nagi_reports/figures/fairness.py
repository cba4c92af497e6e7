# SPDX-License-Identifier: Apache-2.0
"""Figures of fairness: shares of a bottleneck over time, and matrices of harm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from nagi_reports.figures.axes import (
    GREY,
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
    wrap_label,
)
from nagi_reports.series import Floats
from nagi_reports.summary import Mean


@dataclass(frozen=True)
class SharesOverTime:
    """Shares of the flows of one run at their bottleneck, over time."""

    title: str
    edges_s: Floats  # edges of the windows, since the traffic began
    groups: list[tuple[str, str, list[Floats]]]  # name, scheme, and the flows' shares per window
    jain: Floats  # Jain's index per window


_MAX_COLUMNS = 3  # runs side by side
_HATCHES = ("", "....", "////", "xxxx")
_GROUP_COLOURS = (
    SERIES_STYLES[0][0],
    SERIES_STYLES[1][0],
    SERIES_STYLES[2][0],
    SERIES_STYLES[3][0],
)
_MIN_LABELLED_SHARE = 0.09  # a smaller band has no room for its scheme's name
_MAX_SCHEME_LETTERS = 14  # a longer name of a scheme in a band is cut
_MAX_COMPETITORS_FOR_PAIRS = 6  # with more competitors, matrices are not side by side
_MAX_LEVEL_LETTERS = 56  # if competitors' names have more letters together, they are rotated


def make_shares_figure(runs: Sequence[SharesOverTime]) -> Figure:
    """Return a figure of stacked shares over time, with Jain's index below, for each run.

    Dashed lines mark where the borders would be if all flows had equal shares.
    """
    columns = min(len(runs), _MAX_COLUMNS)
    rows_of_runs = math.ceil(len(runs) / columns)
    names = list(dict.fromkeys(name for run in runs for name, _, _ in run.groups))
    with figure_style(), mpl.rc_context({"hatch.linewidth": 0.4}):
        figure = Figure(figsize=(WIDTH, 0.45 + 2.1 * rows_of_runs), layout="constrained")
        grid = figure.subplots(
            2 * rows_of_runs,
            columns,
            sharex="col",
            squeeze=False,
            height_ratios=[3.4, 1] * rows_of_runs,
        )
        for index in range(columns * rows_of_runs):
            row, column = divmod(index, columns)
            shares_axes, jain_axes = grid[2 * row][column], grid[2 * row + 1][column]
            if index >= len(runs):
                shares_axes.set_visible(False)
                jain_axes.set_visible(False)
                continue
            run = runs[index]
            _draw_shares(shares_axes, run, names)
            shares_axes.set_title(wrap_label(run.title, 29), loc="left", fontsize=7.5)
            _draw_steps(jain_axes, run.edges_s, run.jain)
            jain_axes.set_ylim(0, 1.08)
            jain_axes.set_yticks([0, 1])
            jain_axes.grid(axis="y", color=PALE, linewidth=0.4)
            jain_axes.set_xlim(0, run.edges_s[-1])
            if column == 0:
                shares_axes.set_ylabel("Share")
                jain_axes.set_ylabel("Jain")
            if row == rows_of_runs - 1 or index + columns >= len(runs):
                jain_axes.set_xlabel("Time since the traffic began (s)", fontsize=7)
                jain_axes.tick_params(labelbottom=True)
        handles: list[Any] = [
            Patch(
                facecolor=_GROUP_COLOURS[index % len(_GROUP_COLOURS)],
                alpha=0.45,
                hatch=_HATCHES[index % len(_HATCHES)],
                label=f"flows {name}" if _has_several_flows(runs, name) else f"flow {name}",
            )
            for index, name in enumerate(names)
        ]
        handles.append(Line2D([], [], color="black", linestyle="--", label="fair shares"))
        figure.legend(handles=handles, ncols=len(handles), loc="outside upper center")
    return figure


def _has_several_flows(runs: Sequence[SharesOverTime], name: str) -> bool:
    return any(len(flows) > 1 for run in runs for group, _, flows in run.groups if group == name)


def _draw_shares(axes: Axes, run: SharesOverTime, names: list[str]) -> None:
    """Draw the stacked shares of a run's flows; `names` gives each group its colour.

    Dashed lines mark where the borders would be if all flows had equal shares.
    """
    flow_count = sum(len(flows) for _, _, flows in run.groups)
    bottom = np.zeros(len(run.edges_s) - 1)
    flows_below = 0
    for name, scheme, flows in run.groups:
        index = names.index(name)
        bottom_of_group = bottom
        for share in flows:
            top = bottom + np.nan_to_num(share)
            axes.fill_between(
                run.edges_s,
                np.append(bottom, bottom[-1]),
                np.append(top, top[-1]),
                step="post",
                facecolor=_GROUP_COLOURS[index % len(_GROUP_COLOURS)],
                alpha=0.45,
                hatch=_HATCHES[index % len(_HATCHES)],
                edgecolor="#FFFFFF",
                linewidth=0.5,
            )
            bottom = top
        flows_below += len(flows)
        if flows_below < flow_count:
            axes.axhline(flows_below / flow_count, color="black", linestyle="--", linewidth=0.9)
        second_half = slice(len(bottom) // 2, None)
        middle = float((bottom_of_group[second_half] + bottom[second_half]).mean() / 2)
        if float((bottom - bottom_of_group)[second_half].mean()) > _MIN_LABELLED_SHARE:
            axes.text(
                run.edges_s[-1] * 0.97,
                middle,
                scheme
                if len(scheme) <= _MAX_SCHEME_LETTERS
                else f"{scheme[:_MAX_SCHEME_LETTERS]}…",
                ha="right",
                va="center",
                fontsize=7.5,
                bbox={"facecolor": "#FFFFFF", "edgecolor": "none", "pad": 0.8, "alpha": 0.8},
            )
    if len(run.groups) == 1:
        for number in range(1, flow_count):
            axes.axhline(number / flow_count, color="black", linestyle="--", linewidth=0.9)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100 %"])


def _draw_steps(axes: Axes, edges: Floats, values: Floats) -> None:
    axes.plot(
        edges, np.append(values, values[-1]), drawstyle="steps-post", color="black", linewidth=0.9
    )


@dataclass(frozen=True)
class HarmMatrix:
    """Harm to schemes (rows) by competitors (columns), with 95 % intervals."""

    title: str
    schemes: list[str]
    competitors: list[str]
    cells: list[list[Mean | None]]  # None if not known
    exceeds_own_harm: list[list[bool]]  # whether a cell exceeds the harm of its scheme to itself


def make_harm_figure(pairs: Sequence[tuple[HarmMatrix, HarmMatrix]]) -> Figure:
    """Return a figure of heat maps of harm to goodput and to RTT, with numbers in the cells.

    The two matrices of a pair are side by side if there are at most _MAX_COMPETITORS_FOR_PAIRS
    competitors.
    """
    columns = 2 if len(pairs[0][0].competitors) <= _MAX_COMPETITORS_FOR_PAIRS else 1
    matrices = [matrix for pair in pairs for matrix in pair]
    rows = [matrices[first : first + columns] for first in range(0, len(matrices), columns)]
    letters = sum(max(map(len, wrap_label(c, 9).split("\n"))) for c in pairs[0][0].competitors)
    is_rotated = letters * columns > _MAX_LEVEL_LETTERS
    heights = [0.5 + 0.4 * is_rotated + 0.31 * len(row[0].schemes) for row in rows]
    with figure_style():
        figure = Figure(figsize=(WIDTH, sum(heights) + 0.2), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for row_axes, row in zip(grid, rows, strict=True):
            for column, (axes, matrix) in enumerate(zip(row_axes, row, strict=True)):
                _draw_harm_matrix(axes, matrix, is_rotated)
                axes.set_title(matrix.title, loc="left")
                if column == 0:
                    axes.set_ylabel("harm to")
                axes.set_xlabel("harm by", labelpad=1)
    return figure


def _draw_harm_matrix(axes: Axes, matrix: HarmMatrix, is_rotated: bool) -> None:
    """Draw a matrix of harm.

    Frames mark the harm of a scheme to itself. Stars mark cells that exceed it.
    """
    for y, (scheme, cells, exceeds_own_harm) in enumerate(
        zip(matrix.schemes, matrix.cells, matrix.exceeds_own_harm, strict=True)
    ):
        for x, (competitor, mean, is_excess) in enumerate(
            zip(matrix.competitors, cells, exceeds_own_harm, strict=True)
        ):
            is_itself = scheme == competitor
            axes.add_patch(
                Rectangle(
                    (x - 0.5, y - 0.5),
                    1,
                    1,
                    facecolor=_choose_heat_colour(0.0 if mean is None else mean.value),
                    edgecolor="black" if is_itself else GREY,
                    linewidth=1.3 if is_itself else 0.5,
                    zorder=3 if is_itself else 2,
                )
            )
            label = "n/a" if mean is None else f"{mean.value:.2f}{' *' if is_excess else ''}"
            if mean is not None and not math.isnan(mean.halfwidth):
                label += f"\n± {mean.halfwidth:.2f}"
            is_dark = mean is not None and mean.value > 0.8
            axes.text(
                x,
                y,
                label,
                ha="center",
                va="center",
                fontsize=7,
                linespacing=1.0,
                color="#FDFDFD" if is_dark else "#111111",
                zorder=4,
            )
    axes.set_xlim(-0.5, len(matrix.competitors) - 0.5)
    axes.set_ylim(len(matrix.schemes) - 0.5, -0.5)
    axes.set_xticks(
        range(len(matrix.competitors)),
        [wrap_label(name, 16 if is_rotated else 9) for name in matrix.competitors],
        rotation=90 if is_rotated else 0,
    )
    axes.set_yticks(range(len(matrix.schemes)), [wrap_label(s, 14) for s in matrix.schemes])
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _choose_heat_colour(value: float) -> str:
    """Return the colour of a cell: white at 0, dark red at 1, blue below 0.

    These colours are not in report._COLOURS, so dark mode does not change them.
    """
    light, full = (
        ((253, 253, 252), (165, 35, 20)) if value >= 0 else ((253, 253, 252), (90, 150, 205))
    )
    share = min(abs(value), 1.0)
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(light, full, strict=True))
    return f"#{red:02X}{green:02X}{blue:02X}"
