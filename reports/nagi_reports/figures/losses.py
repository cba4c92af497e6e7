# SPDX-License-Identifier: Apache-2.0
"""The figure of loss differentiation: how schemes classified their losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nagi_reports.attribution import OUTCOMES, Classified
from nagi_reports.figures.axes import (
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
    wrap_label,
)


@dataclass(frozen=True)
class ClassifiedLosses:
    """One row of the figure: a scheme's losses and their classification."""

    name: str
    source: str  # reported or inferred
    channel: Classified
    queue: Classified


# Colour and hatching of each of OUTCOMES.
_CLASS_STYLES = (
    (SERIES_STYLES[1][0], ""),
    (SERIES_STYLES[5][0], "////"),
    (PALE, "...."),
    ("#FFFFFF", ""),
)


def make_loss_figure(groups: Sequence[tuple[str, Sequence[ClassifiedLosses]]]) -> Figure:
    """Return a figure with one stacked bar per row: the shares of losses by classification.

    Channel losses are on the left, queue drops on the right.

    Args:
        groups: Title and rows of each group.
    """
    names = [
        [wrap_label(f"{losses.name} ({losses.source})", 30) for losses in rows]
        for _, rows in groups
    ]
    lines = [sum(name.count("\n") + 1 for name in panel) for panel in names]
    heights = [
        0.3 + 0.08 * len(rows) + 0.12 * count
        for (_, rows), count in zip(groups, lines, strict=True)
    ]
    with figure_style(), mpl.rc_context({"hatch.linewidth": 0.5}):
        figure = Figure(figsize=(WIDTH, 0.75 + sum(heights)), layout="constrained")
        grid = figure.subplots(
            len(groups), 2, sharex=True, sharey="row", squeeze=False, height_ratios=heights
        )
        for pair, (label, rows), labels in zip(grid, groups, names, strict=True):
            for axes, head, row_losses in (
                (pair[0], "Lost on channels", [losses.channel for losses in rows]),
                (pair[1], "Dropped by queues", [losses.queue for losses in rows]),
            ):
                for row, classified in enumerate(row_losses):
                    _draw_outcome_shares(axes, row, classified)
                axes.set_yticks(range(len(rows)), labels)
                axes.set_ylim(len(rows) - 0.45, -0.55)
                axes.set_xlim(0, 1.22)
                axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
                axes.spines["bottom"].set_bounds(0, 1)
                axes.tick_params(axis="y", length=0)
                axes.set_title(f"{label}: {head.lower()}" if label else head, loc="left")
        figure.legend(
            handles=[
                Patch(facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=label)
                for (colour, hatch), label in zip(
                    _CLASS_STYLES,
                    ("classified as congestion", "as channel loss", *OUTCOMES[2:]),
                    strict=True,
                )
            ],
            ncols=len(_CLASS_STYLES),
            loc="outside upper center",
        )
    return figure


def _draw_outcome_shares(axes: Axes, row: int, classified: Classified) -> None:
    """Draw one stacked bar of shares by outcome, and write the number of losses next to it."""
    if not classified.total:
        axes.text(0.02, row, "no loss", va="center", fontsize=7)
        return
    left = 0.0
    for count, (colour, hatch) in zip(classified.counts, _CLASS_STYLES, strict=True):
        share = count / classified.total
        if count:
            axes.barh(
                row,
                share,
                0.66,
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor="black",
                linewidth=0.6,
            )
        left += share
    axes.text(1.03, row, f"{classified.total:,}", va="center", fontsize=7)
