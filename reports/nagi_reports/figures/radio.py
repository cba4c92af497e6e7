# SPDX-License-Identifier: Apache-2.0
"""Figures of radio links: packet error rates, and modes of rate adaptation, over SNR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from nagi_reports.figures.axes import (
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
)


@dataclass(frozen=True)
class ErrorRate:
    """The packet error rate at one SNR, as numbers of packets lost and sent."""

    snr_db: float
    lost: int
    sent: int


def make_error_rate_figure(curves: Sequence[tuple[str, Sequence[ErrorRate]]]) -> Figure:
    """Return a figure of the packet error rate over SNR, one curve per label.

    A triangle marks an SNR without losses, at the error rate of a single loss.
    """
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.75), layout="constrained")
        axes = figure.subplots()
        axes.set_yscale("log")
        # Labels of powers of ten are formulas.
        for tick in (*axes.yaxis.get_major_ticks(20), *axes.yaxis.get_minor_ticks(200)):
            tick.label1.set_parse_math(True)
        for index, (label, rates) in enumerate(curves):
            colour, marker, dashes = SERIES_STYLES[index % len(SERIES_STYLES)]
            with_losses = [rate for rate in rates if rate.lost]
            axes.plot(
                [rate.snr_db for rate in with_losses],
                [rate.lost / rate.sent for rate in with_losses],
                color=colour,
                marker=marker,
                linestyle=dashes,
                markerfacecolor="white",
                label=label,
            )
            without_losses = [rate for rate in rates if not rate.lost]
            axes.plot(
                [rate.snr_db for rate in without_losses],
                [1 / rate.sent for rate in without_losses],
                color=colour,
                marker="v",
                linestyle="none",
            )
        axes.set_ylim(top=1.3)
        axes.set_xlabel("SNR configured (dB)")
        axes.set_ylabel("Packet error rate")
        axes.grid(axis="y", color=PALE, linewidth=0.4)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, ncols=2, handlelength=2.8, loc="outside upper center")
    return figure


@dataclass(frozen=True)
class ModeShares:
    """Shares of the modes in which a direction's transmissions were sent, by SNR."""

    label: str
    snr_db: list[int]  # in ascending order
    shares: dict[str, list[float]]  # mode -> share at each SNR, from the slowest mode on
    lost: list[float]  # share of transmissions that were lost, at each SNR


def make_mode_figure(panels: Sequence[ModeShares]) -> Figure:
    """Return a figure of the shares of modes over SNR, one panel per direction.

    Modes are stacked bars, one bar per SNR. A line shows the share of transmissions that were lost.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.shares))
    colours = mpl.colormaps["viridis"](np.linspace(0, 1, len(names)))
    with figure_style():
        figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            below = np.zeros(len(panel.snr_db))
            for name, colour in zip(names, colours, strict=True):
                share = np.array(panel.shares.get(name, below * 0))
                axes.bar(panel.snr_db, share, 1.0, below, color=colour, label=name)
                below += share
            snrs = range(panel.snr_db[0], panel.snr_db[-1] + 1)
            lost_by_snr = dict(zip(panel.snr_db, panel.lost, strict=True))
            lost = [lost_by_snr.get(snr, math.nan) for snr in snrs]
            axes.plot(snrs, lost, color="white", linewidth=2.4)
            axes.plot(snrs, lost, color=SERIES_STYLES[1][0], label="lost")
            axes.set_ylim(0, 1)
            axes.set_title(panel.label)
            axes.set_xlabel("SNR as measured (dB)")
            axes.yaxis.set_major_formatter(PercentFormatter(1))
        grid[0].set_ylabel("Transmissions")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=5, loc="outside upper center")
    return figure
