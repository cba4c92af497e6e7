# SPDX-License-Identifier: Apache-2.0
"""The figure of runs over time: congestion window, RTT and the bottleneck's queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from nagi_reports.figures.axes import (
    GREY,
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
    wrap_label,
)
from nagi_reports.series import Curve as TimeCurve
from nagi_reports.series import Floats, Queue, RunSeries

MAX_ROWS = 6  # number of rows of a figure
MAX_SCALE_RATIO = 4.0  # rows share a scale if their largest / smallest maximum is at most this


def make_time_series_figure(rows: list[tuple[str, RunSeries | None]]) -> Figure:
    """Return a figure of window, RTT and queue over time, one row per flow of a run.

    Args:
        rows: Name and values of each row; the values are None if there is no valid run.
    """
    recorded = [series for _, series in rows if series is not None]
    end = max((series.end_s for series in recorded), default=1.0)
    limits = _ScaleLimits(recorded)
    with figure_style():
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
                    _draw_missing(axes, "no valid run")
                continue
            _draw_window(window, series, limits.window)
            _draw_rtt(rtt, series, limits.rtt)
            _draw_queue(queue, series, limits.queue)
        heads = ("Window (packets)", "Smoothed RTT (ms)", "Queue (packets)")
        for axes, head in zip(grid[0], heads, strict=True):
            # Above the title of the first row.
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
            handles=_make_legend_entries(),
            ncols=4,
            handlelength=2.2,
            loc="outside upper center",
            fontsize=7,
        )
    return figure


@dataclass(frozen=True)
class _ScaleLimits:
    """Upper limits of the scales of window, RTT and queue, which all rows share.

    A limit is 0 if each row has its own scale.
    """

    runs: list[RunSeries]

    @property
    def window(self) -> float:
        return _choose_shared_limit(
            [float(run.cwnd.maximum.max()) for run in self.runs if run.cwnd]
        )

    @property
    def rtt(self) -> float:
        return _choose_shared_limit(
            [float(run.rtt_ms.maximum.max()) for run in self.runs if run.rtt_ms]
        )

    @property
    def queue(self) -> float:
        return _choose_shared_limit(
            [_find_max_waiting(run.queue) for run in self.runs if run.queue]
        )


def _choose_shared_limit(maxima: list[float]) -> float:
    """Return the upper limit that fits all `maxima`, or 0 if there is none.

    There is none if the largest is more than MAX_SCALE_RATIO times the smallest, if the smallest is
    0, or without `maxima`.
    """
    if not maxima or min(maxima) <= 0 or max(maxima) > MAX_SCALE_RATIO * min(maxima):
        return 0.0
    return 1.08 * max(maxima)


def _find_max_waiting(queue: Queue) -> float:
    return float(queue.waiting.maximum.max(initial=0))


def _draw_missing(axes: Axes, reason: str) -> None:
    """Write the reason why there is nothing to draw."""
    axes.set_yticks([])
    axes.text(
        0.5,
        0.5,
        wrap_label(reason, 24),
        ha="center",
        va="center",
        fontsize=7,
        transform=axes.transAxes,
    )


def _draw_line_with_range(axes: Axes, curve: TimeCurve, **settings: Any) -> None:
    """Draw a curve, with a band from its minimum to its maximum."""
    axes.fill_between(
        curve.time_s,
        curve.minimum,
        curve.maximum,
        color=PALE,
        linewidth=0.5,
        zorder=settings.get("zorder", 2),
    )
    axes.plot(curve.time_s, curve.value, linewidth=0.8, **settings)


def _draw_window(axes: Axes, series: RunSeries, top: float) -> None:
    """Draw congestion window and slow start threshold, with marks for classified losses.

    Args:
        axes: The axes to draw on.
        series: The values of the row.
        top: The upper limit of the scale; 0 fits it to the row.
    """
    if series.cwnd is None:
        _draw_missing(axes, "not recorded")
        return
    _draw_line_with_range(axes, series.cwnd, color="black")
    top = top or 1.08 * max(1.0, float(series.cwnd.maximum.max()))
    if series.ssthresh is not None:
        axes.plot(
            series.ssthresh.time_s,
            series.ssthresh.value,
            color=SERIES_STYLES[0][0],
            linestyle="--",
            linewidth=0.8,
            drawstyle="steps-post",
        )
    axes.set_ylim(0, top)
    if series.verdicts is not None:
        # Congestion is at the upper edge, channel losses at the lower edge, as in _draw_queue().
        _draw_ticks(axes, series.verdicts.congestion_s, 0.97, SERIES_STYLES[1][0])
        _draw_ticks(axes, series.verdicts.undecided_s, 0.03, GREY)
        _draw_ticks(axes, series.verdicts.channel_s, 0.03, "black")


def _draw_rtt(axes: Axes, series: RunSeries, top: float) -> None:
    """Draw smoothed RTT and base RTT."""
    if series.rtt_ms is None:
        _draw_missing(axes, "not recorded")
        return
    axes.axhline(series.base_rtt_ms, color=GREY, linewidth=1, linestyle=":")
    _draw_line_with_range(axes, series.rtt_ms, color="black")
    # The kernel reports 0 before its first RTT sample.
    axes.set_ylim(0, top or 1.08 * (float(series.rtt_ms.maximum.max()) or series.base_rtt_ms))


def _draw_queue(axes: Axes, series: RunSeries, top: float) -> None:
    """Draw the queue and its limit, with marks for drops and losses."""
    if series.queue is None:
        _draw_missing(axes, series.no_queue_reason)
        return
    queue = series.queue
    top = top or 1.08 * max(1.0, _find_max_waiting(queue))
    if queue.limit_packets is not None:
        axes.axhline(queue.limit_packets, color=GREY, linewidth=1, linestyle="--")
    _draw_line_with_range(axes, queue.waiting, color="black", drawstyle="steps-post")
    axes.set_ylim(0, top)
    # Queue drops are at the upper edge, channel losses at the lower edge.
    _draw_ticks(axes, queue.overflow_s, 0.97, SERIES_STYLES[1][0])
    _draw_ticks(axes, queue.loss_s, 0.03, "black")


def _draw_ticks(axes: Axes, times: Floats, y: float, colour: str) -> None:
    """Draw a tick at each time, at the height `y` within the axes (0 to 1)."""
    distinct_s = np.unique(np.round(times, 2))
    axes.plot(
        distinct_s,
        np.full(len(distinct_s), y),
        marker="|",
        markersize=5,
        markeredgewidth=0.7,
        linestyle="none",
        color=colour,
        transform=axes.get_xaxis_transform(),
        clip_on=True,
        zorder=3,
    )


def _make_legend_entries() -> list[Any]:
    """Return the entries of the legend."""

    def line(label: str, **settings: Any) -> Line2D:
        return Line2D([], [], label=label, **{"linewidth": 0.9, "color": "black", **settings})

    return [
        line("cwnd, RTT, queue"),
        Patch(color=PALE, label="their range"),
        line("ssthresh", color=SERIES_STYLES[0][0], linestyle="--"),
        line("base RTT", color=GREY, linestyle=":"),
        line("queue limit", color=GREY, linestyle="--"),
        line("overflow (upper edge)", marker="|", linestyle="none", color=SERIES_STYLES[1][0]),
        line("channel loss (lower edge)", marker="|", linestyle="none"),
    ]
