# SPDX-License-Identifier: Apache-2.0
"""Draw congestion windows of nagi and of ns-3 over time, to explain differences of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from nagi_contracts.plan import RunPlan
from nagi_reports.figures import WIDTH, figure_style, render_svg

_NAGI, _NS3 = "#0072B2", "#D55E00"
_ROW_HEIGHT = 1.05  # inches


@dataclass(frozen=True)
class Pair:
    """The run of nagi and the simulation of ns-3 for one plan."""

    plan: RunPlan
    run: Path  # nagi's run directory
    ns3: dict[str, Any]  # output of simulate.cpp


def write_window_figure(pairs: Sequence[Pair], rows: str, columns: str, target: Path) -> None:
    """Write a figure of congestion windows as SVG.

    Args:
        pairs: The runs and simulations to draw.
        rows: Name of the axis of the matrix whose values are the rows of the figure.
        columns: Name of the axis whose values are the columns.
        target: The file to write.
    """
    names = [_list_axis_values(pairs, axis) for axis in (rows, columns)]
    with figure_style():
        figure = Figure(figsize=(WIDTH, _ROW_HEIGHT * len(names[0]) + 0.5), layout="constrained")
        axes = figure.subplots(len(names[0]), len(names[1]), sharex=True, squeeze=False)
        for pair in pairs:
            row, column = (
                names[0].index(pair.plan.point[rows]),
                names[1].index(pair.plan.point[columns]),
            )
            ax = axes[row][column]
            _draw_windows(ax, pair)
            if row == 0:
                ax.set_title(pair.plan.point[columns])
            if column == 0:
                ax.set_ylabel(pair.plan.point[rows])
            if row == len(names[0]) - 1:
                ax.set_xlabel("s")
        figure.suptitle("Congestion window, segments", fontsize=8.5)
        lines, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="upper right", ncols=2)
    target.write_text(render_svg(figure), encoding="utf-8")


def _draw_windows(ax: Any, pair: Pair) -> None:
    (flow,) = pair.plan.flows
    info = pd.read_parquet(pair.run / "tcp_info.parquet")
    info = info[(info["t_s"] >= flow.start_s) & (info["t_s"] <= flow.end_s)]
    ns3_windows = pair.ns3["windows"]  # pairs of time in s and window in segments
    ax.plot(info["t_s"] - flow.start_s, info["snd_cwnd"], color=_NAGI, lw=0.9, label="nagi")
    ax.plot(
        [time_s for time_s, _ in ns3_windows],
        [window for _, window in ns3_windows],
        color=_NS3,
        lw=0.9,
        ls="--",
        label="ns-3",
    )
    ax.set_ylim(0)


def _list_axis_values(pairs: Sequence[Pair], axis: str) -> list[str]:
    return list(dict.fromkeys(pair.plan.point[axis] for pair in pairs))
