# SPDX-License-Identifier: Apache-2.0
"""One TCP connection over time, from a capture: time-sequence graph as tcptrace's users know it,
throughput, round-trip time, bytes in flight. As PNG, SVG, PDF or HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from nagi_captures.reading import STANDARD_INPUT, Columns
from nagi_captures.tracing import FRESH, OUT_OF_ORDER, PROBE, RETRANSMISSION, Trace, trace
from nagi_contracts.errors import refuse

from nagi_reports import figures
from nagi_reports.overview import Overview, Row, format_endpoint

Floats = npt.NDArray[np.float64]

_INTERVALS = 200  # of the throughput, over the whole time
_COLOURS = {FRESH: "black", RETRANSMISSION: "#D55E00", OUT_OF_ORDER: "#CC79A7", PROBE: "#999999"}
_NAMES = {
    FRESH: "segment",
    RETRANSMISSION: "retransmission",
    OUT_OF_ORDER: "out of order",
    PROBE: "probe",
}
_ACK, _WINDOW, _SACK = "#009E73", "#E69F00", "#0072B2"
FORMATS = ("png", "svg", "pdf", "html")


def draw(found: Overview, row: Row, path: Path, *, tunnels: bool = False) -> None:
    """Draws a direction of a connection to a file, by its suffix.

    Raises InputError if the suffix is none of FORMATS, there is no such directory, or the capture
    cannot be read twice.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        known = ", ".join(f"*.{each}" for each in FORMATS)
        raise refuse(f"--plot {path}: no such format", f"name the file {known}")
    if not path.parent.is_dir():
        raise refuse(f"--plot {path}: there is no directory {path.parent}", "make it first")
    if str(found.path) == STANDARD_INPUT:
        raise refuse("--plot of standard input, which can be read once", "give a file")
    connection = row["connection"]
    figure = conversation_figure(
        trace(found.path, connection, row["direction"], tunnels=tunnels),
        found.totals.first_ns,
        _title(row),
    )
    if kind == "html":
        title = escape(f"{found.name}, connection {connection}")
        path.write_text(
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
            f'<body style="margin: 1em; max-width: 60em">{figures.render_svg(figure)}</body>'
            "</html>\n"
        )
    elif kind == "svg":
        path.write_text(figures.render_svg(figure))
    else:
        with figures.figure_style():
            figure.savefig(path, format=kind, dpi=150, transparent=False)


def conversation_figure(found: Trace, first_ns: int, title: str) -> Figure:
    """A direction over time, in seconds from `first_ns`."""
    with figures.figure_style():
        figure = Figure(figsize=(figures.WIDTH * 1.3, 9.5), layout="constrained")
        sequence, rate, rtt, flight = figure.subplots(4, 1, sharex=True, height_ratios=(4, 1, 1, 1))
        figure.suptitle(title, fontsize=9)
        _sequence(sequence, found, first_ns)
        _throughput(rate, found, first_ns)
        samples = found.rtt()
        rtt.plot(
            _seconds(samples, first_ns), samples["rtt_ns"] / 1e6, ".", color="black", markersize=2
        )
        rtt.set_ylabel("RTT (ms)")
        flight.plot(
            _seconds(found.in_flight, first_ns),
            found.in_flight["bytes"] / 1e3,
            color="black",
            linewidth=0.8,
            drawstyle="steps-post",
        )
        flight.set_ylabel("in flight (kB)")
        for axes in (rtt, flight):
            axes.set_ylim(bottom=0)
        flight.set_xlabel("time (s)")
    return figure


def _sequence(axes: Axes, found: Trace, first_ns: int) -> None:
    """Segments as vertical lines from their first to their last byte; below them what is
    acknowledged, above them the advertised window."""
    time_s = _seconds(found.segments, first_ns)
    begin, end = found.segments["begin"] / 1e6, found.segments["end"] / 1e6
    handles: list[Any] = []
    for kind, colour in _COLOURS.items():
        mine = found.segments["kind"] == kind
        if not mine.any():
            continue
        _bars(axes, time_s[mine], begin[mine], end[mine], colour, 1.0 if kind == FRESH else 1.8)
        handles.append(Line2D([], [], color=colour, label=_NAMES[kind]))
    answers = found.acknowledgements
    if len(answers["time_ns"]):
        at_s = _seconds(answers, first_ns)
        for name, colour, label in (
            ("number", _ACK, "acknowledged"),
            ("window_end", _WINDOW, "advertised window"),
        ):
            axes.plot(
                at_s, answers[name] / 1e6, color=colour, linewidth=0.8, drawstyle="steps-post"
            )
            handles.append(Line2D([], [], color=colour, label=label))
    if len(found.sacks["time_ns"]):
        sacks = found.sacks
        _bars(
            axes,
            _seconds(sacks, first_ns),
            sacks["begin"] / 1e6,
            sacks["end"] / 1e6,
            _SACK,
            0.6,
        )
        handles.append(Line2D([], [], color=_SACK, label="SACK block"))
    axes.set_ylim(*_range(begin, end, answers["window_end"] / 1e6))
    axes.set_ylabel("sequence number (MB)")
    axes.legend(handles=handles, loc="lower right", ncols=2)


def _range(begin: Floats, end: Floats, window: Floats) -> tuple[float, float]:
    """What is shown: all segments, and the window if it is not far above them."""
    if not len(begin):
        return 0.0, 1.0
    low, high = float(begin.min()), float(end.max())
    room = max(high - low, 1e-6)
    top = float(window.max(initial=high))
    return low - 0.03 * room, (top if top < high + 0.5 * room else high) + 0.03 * room


def _bars(
    axes: Axes, time_s: Floats, begin: Floats, end: Floats, colour: str, width: float
) -> None:
    lines = np.stack([np.column_stack([time_s, begin]), np.column_stack([time_s, end])], axis=1)
    axes.add_collection(
        LineCollection(list(lines), colors=colour, linewidths=width, zorder=2 + width)
    )
    axes.autoscale_view()


def _throughput(axes: Axes, found: Trace, first_ns: int) -> None:
    time_ns = found.segments["time_ns"]
    if len(time_ns):
        span = int(time_ns.max() - time_ns.min())
        series = found.throughput(max(span // _INTERVALS, 1_000_000))
        at_s = _seconds(series, first_ns)
        for name, colour, label in (
            ("bits_per_second", "#999999", "payload"),
            ("goodput_bits_per_second", "black", "for the first time"),
        ):
            axes.plot(
                at_s,
                series[name] / 1e6,
                color=colour,
                linewidth=0.9,
                drawstyle="steps-post",
                label=label,
            )
        axes.set_ylim(0, 1.3 * float(series["bits_per_second"].max()) / 1e6 or 1)
        axes.legend(loc="upper right", ncols=2)
    axes.set_ylabel("Mb/s")


def _seconds(columns: Columns, first_ns: int) -> Floats:
    seconds: Floats = (columns["time_ns"] - first_ns) / 1e9
    return seconds


def _title(row: Row) -> str:
    ends = [format_endpoint(row[name], row[f"{name}_port"]) for name in ("source", "destination")]
    return f"{ends[0]} to {ends[1]}"
