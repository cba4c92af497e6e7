# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: means of two sets of runs, and their differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nagi_reports.figures.axes import (
    GREY,
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
)
from nagi_reports.summary import Mean

_MAX_PAIRS = 48  # rows per figure, so that it fits on a page


@dataclass(frozen=True)
class Pair:
    """The means of a metric in two sets of runs at one point; `difference` is second - first."""

    label: str
    first: Mean
    second: Mean
    difference: Mean
    differs: bool


def make_comparison_figures(
    names: tuple[str, str], pairs: Sequence[Pair], metric: str
) -> list[Figure]:
    """Return figures of two sets of runs, one row per point.

    Means are on the left, differences on the right. A star marks points that differ.

    Args:
        names: Names of the sets.
        pairs: The means at each point.
        metric: Name of the metric, for the axis.
    """
    figures = []
    for first in range(0, len(pairs), _MAX_PAIRS):
        rows = pairs[first : first + _MAX_PAIRS]
        with figure_style():
            figure = Figure(figsize=(WIDTH, 0.75 + 0.16 * len(rows)), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
            positions = np.arange(len(rows))
            for name, means, offset, (colour, marker, _) in (
                (names[0], [row.first for row in rows], -0.14, SERIES_STYLES[0]),
                (names[1], [row.second for row in rows], 0.14, SERIES_STYLES[1]),
            ):
                draw_means_across(left, means, positions + offset, colour, marker, name)
            right.axvline(0, color=GREY, linewidth=0.8)
            draw_means_across(right, [row.difference for row in rows], positions, "black", "o", "")
            labels = [f"{row.label} *" if row.differs else row.label for row in rows]
            left.set_yticks(positions, labels)
            left.set_ylim(len(rows) - 0.4, -0.6)
            for axes in (left, right):
                axes.tick_params(axis="y", length=0)
                axes.grid(axis="y", color=PALE, linewidth=0.4)
                axes.set_axisbelow(True)
            left.set_xlabel(metric)
            right.set_xlabel("difference")
            figure.legend(*left.get_legend_handles_labels(), ncols=2, loc="outside upper center")
        figures.append(figure)
    return figures


def draw_means_across(
    axes: Axes, means: Sequence[Mean], positions: Any, colour: str, marker: str, label: str
) -> None:
    """Draw means with horizontal error bars; `positions` has the y coordinate of each mean."""
    axes.errorbar(
        [mean.value for mean in means],
        positions,
        xerr=[0.0 if math.isnan(mean.halfwidth) else mean.halfwidth for mean in means],
        color=colour,
        marker=marker,
        markersize=3.2,
        markerfacecolor="white",
        linestyle="none",
        elinewidth=0.8,
        label=label,
    )
