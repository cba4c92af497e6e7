# SPDX-License-Identifier: Apache-2.0
"""A figure of one TCP connection over time, from a capture, as PNG, SVG, PDF or HTML.

The figure has a time-sequence graph like that of tcptrace, throughput, round-trip time, and bytes
in flight.
"""

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

_INTERVALS = 200  # number of intervals of the throughput
_COLOURS = {FRESH: "black", RETRANSMISSION: "#D55E00", OUT_OF_ORDER: "#CC79A7", PROBE: "#999999"}
_NAMES = {
    FRESH: "segment",
    RETRANSMISSION: "retransmission",
    OUT_OF_ORDER: "out of order",
    PROBE: "probe",
}
_ACK, _WINDOW, _SACK = "#009E73", "#E69F00", "#0072B2"
FORMATS = ("png", "svg", "pdf", "html")


def draw(overview: Overview, row: Row, path: Path, *, tunnels: bool = False) -> None:
    """Draw one direction of a connection to a file.

    Args:
        overview: The connections of a capture.
        row: The row of the direction.
        path: The file to write; its suffix selects the format.
        tunnels: Whether the connection is within a tunnel.

    Raises:
        InputError: The suffix is not in FORMATS, the directory does not exist, or the capture is
            standard input, which cannot be read twice.
    """
    format_ = path.suffix.removeprefix(".").lower()
    if format_ not in FORMATS:
        formats = ", ".join(f"*.{suffix}" for suffix in FORMATS)
        raise refuse(f"--plot {path}: no such format", f"name the file {formats}")
    if not path.parent.is_dir():
        raise refuse(f"--plot {path}: there is no directory {path.parent}", "make it first")
    if str(overview.path) == STANDARD_INPUT:
        raise refuse(
            "--plot reads the capture twice, but standard input can only be read once",
            "give a file",
        )
    connection = row["connection"]
    figure = make_conversation_figure(
        trace(overview.path, connection, row["direction"], tunnels=tunnels),
        overview.totals.first_ns,
        _format_title(row),
    )
    if format_ == "html":
        title = escape(f"{overview.name}, connection {connection}")
        path.write_text(
            f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
            f'<body style="margin: 1em; max-width: 60em">{figures.render_svg(figure)}</body>'
            "</html>\n"
        )
    elif format_ == "svg":
        path.write_text(figures.render_svg(figure))
    else:
        with figures.figure_style():
            figure.savefig(path, format=format_, dpi=150, transparent=False)


def make_conversation_figure(trace: Trace, first_ns: int, title: str) -> Figure:
    """Return a figure of one direction of a connection over time, in s since `first_ns`.

    Its panels are sequence numbers, throughput, RTT, and bytes in flight.
    """
    with figures.figure_style():
        figure = Figure(figsize=(figures.WIDTH * 1.3, 9.5), layout="constrained")
        sequence, rate, rtt, flight = figure.subplots(4, 1, sharex=True, height_ratios=(4, 1, 1, 1))
        figure.suptitle(title, fontsize=9)
        _draw_sequence(sequence, trace, first_ns)
        _draw_throughput(rate, trace, first_ns)
        samples = trace.select_rtt()
        rtt.plot(
            _to_seconds(samples, first_ns),
            samples["rtt_ns"] / 1e6,
            ".",
            color="black",
            markersize=2,
        )
        rtt.set_ylabel("RTT (ms)")
        flight.plot(
            _to_seconds(trace.in_flight, first_ns),
            trace.in_flight["bytes"] / 1e3,
            color="black",
            linewidth=0.8,
            drawstyle="steps-post",
        )
        flight.set_ylabel("in flight (kB)")
        for axes in (rtt, flight):
            axes.set_ylim(bottom=0)
        flight.set_xlabel("time (s)")
    return figure


def _draw_sequence(axes: Axes, trace: Trace, first_ns: int) -> None:
    """Draw the time-sequence graph.

    Segments are vertical lines from their first to their last byte. A line below them shows the
    bytes that were acknowledged, a line above them the end of the advertised window.
    """
    time_s = _to_seconds(trace.segments, first_ns)
    begin, end = trace.segments["begin"] / 1e6, trace.segments["end"] / 1e6
    handles: list[Any] = []
    for kind, colour in _COLOURS.items():
        is_kind = trace.segments["kind"] == kind
        if not is_kind.any():
            continue
        _draw_bars(
            axes,
            time_s[is_kind],
            begin[is_kind],
            end[is_kind],
            colour,
            1.0 if kind == FRESH else 1.8,
        )
        handles.append(Line2D([], [], color=colour, label=_NAMES[kind]))
    acknowledgements = trace.acknowledgements
    if len(acknowledgements["time_ns"]):
        acknowledged_s = _to_seconds(acknowledgements, first_ns)
        for name, colour, label in (
            ("number", _ACK, "acknowledged"),
            ("window_end", _WINDOW, "advertised window"),
        ):
            axes.plot(
                acknowledged_s,
                acknowledgements[name] / 1e6,
                color=colour,
                linewidth=0.8,
                drawstyle="steps-post",
            )
            handles.append(Line2D([], [], color=colour, label=label))
    if len(trace.sacks["time_ns"]):
        sacks = trace.sacks
        _draw_bars(
            axes,
            _to_seconds(sacks, first_ns),
            sacks["begin"] / 1e6,
            sacks["end"] / 1e6,
            _SACK,
            0.6,
        )
        handles.append(Line2D([], [], color=_SACK, label="SACK block"))
    axes.set_ylim(*_choose_limits(begin, end, acknowledgements["window_end"] / 1e6))
    axes.set_ylabel("sequence number (MB)")
    axes.legend(handles=handles, loc="lower right", ncols=2)


def _choose_limits(begin: Floats, end: Floats, window: Floats) -> tuple[float, float]:
    """Return the lowest and the highest sequence number to show, in MB.

    The range contains all segments. It also contains the end of the advertised window, unless this
    end is far above the segments (by more than half of their range).
    """
    if not len(begin):
        return 0.0, 1.0
    low, high = float(begin.min()), float(end.max())
    height = max(high - low, 1e-6)
    top = float(window.max(initial=high))
    return low - 0.03 * height, (top if top < high + 0.5 * height else high) + 0.03 * height


def _draw_bars(
    axes: Axes, time_s: Floats, begin: Floats, end: Floats, colour: str, width: float
) -> None:
    lines = np.stack([np.column_stack([time_s, begin]), np.column_stack([time_s, end])], axis=1)
    axes.add_collection(
        LineCollection(list(lines), colors=colour, linewidths=width, zorder=2 + width)
    )
    axes.autoscale_view()


def _draw_throughput(axes: Axes, trace: Trace, first_ns: int) -> None:
    """Draw two rates over time: of all payload, and of payload sent for the first time."""
    time_ns = trace.segments["time_ns"]
    if len(time_ns):
        span = int(time_ns.max() - time_ns.min())
        series = trace.compute_throughput(max(span // _INTERVALS, 1_000_000))
        interval_s = _to_seconds(series, first_ns)
        for name, colour, label in (
            ("bits_per_second", "#999999", "payload"),
            ("goodput_bits_per_second", "black", "for the first time"),
        ):
            axes.plot(
                interval_s,
                series[name] / 1e6,
                color=colour,
                linewidth=0.9,
                drawstyle="steps-post",
                label=label,
            )
        axes.set_ylim(0, 1.3 * float(series["bits_per_second"].max()) / 1e6 or 1)
        axes.legend(loc="upper right", ncols=2)
    axes.set_ylabel("Mb/s")


def _to_seconds(columns: Columns, first_ns: int) -> Floats:
    seconds: Floats = (columns["time_ns"] - first_ns) / 1e9
    return seconds


def _format_title(row: Row) -> str:
    ends = [format_endpoint(row[name], row[f"{name}_port"]) for name in ("source", "destination")]
    return f"{ends[0]} to {ends[1]}"
