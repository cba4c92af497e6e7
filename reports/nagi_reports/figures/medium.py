# SPDX-License-Identifier: Apache-2.0
"""Figures of a shared medium: map, airtime over time, and means per station."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.ticker import PercentFormatter

from nagi_reports.figures.axes import (
    GREY,
    PALE,
    SERIES_STYLES,
    WIDTH,
    figure_style,
    wrap_label,
)
from nagi_reports.figures.comparison import draw_means_across
from nagi_reports.series import Floats
from nagi_reports.summary import Mean


@dataclass(frozen=True)
class DrawnStation:
    """A station of a medium with its position, in m or in arbitrary units."""

    name: str
    kind: str  # kind of the node, such as host
    position: tuple[float, float]
    trace: list[tuple[float, float]]  # the positions to which the station moves, in order


@dataclass(frozen=True)
class DrawnMedium:
    """A medium: its stations, which pairs of them receive frames, and the paths of flows."""

    stations: list[DrawnStation]
    in_metres: bool  # whether positions are in m
    decodes: list[tuple[str, str]]  # pairs that decode each other's frames
    one_way: list[tuple[str, str]]  # (sender, receiver) if only the receiver decodes frames
    senses: list[tuple[str, str]]  # pairs that sense each other, but decode no frames
    rings: list[tuple[str, float]]  # label and radius of each range; empty without ranges
    paths: list[tuple[str, list[str]]]  # flow and the stations on its path


MAX_SENSE_LINES = 24  # if more pairs sense each other, rings around one station replace lines
_RING_STYLES: tuple[Any, ...] = ("-", ":")  # dashes of the rings, from the inner ring on
_MAX_NAMED_STATIONS = 60  # with more stations, only senders and receivers of flows have names
_MAX_COLOURED_PATHS = 10  # further flows are grey
_BEND = 0.28  # height / half the length of the curved lines for carrier sense
_PATH_SPACING = 0.055  # inches between flows on the same hop


def make_medium_map(medium: DrawnMedium) -> Figure:
    """Return a map of a medium's stations and of the flows that cross the medium.

    Solid lines connect stations that decode each other's frames. Dashed lines connect stations that
    only sense each other. If there are more than MAX_SENSE_LINES such pairs, rings around one
    station show the ranges instead of dashed lines. Arrows along the hops are flows.
    """
    xs = [x for station in medium.stations for x, _ in (station.position, *station.trace)]
    ys = [y for station in medium.stations for _, y in (station.position, *station.trace)]
    rings = medium.rings if len(medium.senses) > MAX_SENSE_LINES else []
    width = max(xs) - min(xs) or max(ys) - min(ys) or 1.0
    height = max(ys) - min(ys)
    inches = min((WIDTH - 1.2) / width, (3.4 if medium.in_metres else 2.0) / max(height, 1e-9))
    positions = {station.name: station.position for station in medium.stations}
    lengths = (
        []
        if rings
        else [math.dist(positions[one], positions[other]) for one, other in medium.senses]
    )
    margin = max(0.4, _BEND / 2 * max(lengths, default=0) * inches + 0.15)  # around the stations
    map_height = height * inches + 2 * margin
    legend = 0.22 * math.ceil(len(medium.paths[:_MAX_COLOURED_PATHS]) / 4) + 0.3
    bottom = 0.42 if medium.in_metres else 0.05
    with figure_style():
        size = (WIDTH, map_height + legend + bottom)
        figure = Figure(figsize=size)
        axes = figure.add_axes((0.08, bottom / size[1], 0.9, map_height / size[1]))
        middle = (min(xs) + max(xs)) / 2
        half_width = 0.9 * WIDTH / inches / 2
        axes.set_xlim(middle - half_width, middle + half_width)
        axes.set_ylim(min(ys) - margin / inches, max(ys) + margin / inches)
        axes.set_aspect("equal")
        axes.tick_params(labelsize=7)
        axes.set_xlabel("m", labelpad=1)
        axes.locator_params(axis="y", nbins=5)
        if not medium.in_metres:
            axes.set_axis_off()
        elif not height:
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        _draw_reception(axes, medium, positions, rings)
        for index, ((_, nodes), lane) in enumerate(
            zip(medium.paths, _assign_lanes(medium), strict=True)
        ):
            offset = (1 + lane) * _PATH_SPACING / inches
            _draw_path(axes, [positions[node] for node in nodes], index, offset)
        _draw_stations(axes, medium)
        handles = [
            Line2D([], [], color=GREY, linewidth=1, label="decode each other"),
            *([_make_sense_entry()] if medium.senses and not rings else []),
            *(
                Line2D([], [], color=GREY, linewidth=0.8, linestyle=dashes, label=label)
                for (label, _), dashes in zip(rings, _RING_STYLES, strict=False)
            ),
            *(
                Line2D([], [], color=SERIES_STYLES[index][0], linewidth=1.6, label=f"flow {name}")
                for index, (name, _) in enumerate(medium.paths[:_MAX_COLOURED_PATHS])
            ),
        ]
        figure.legend(handles=handles, ncols=4, loc="upper center", handlelength=2.2)
    return figure


def _make_sense_entry() -> Line2D:
    return Line2D([], [], color=GREY, linewidth=0.7, linestyle="--", label="sense each other only")


def _draw_reception(
    axes: Axes,
    medium: DrawnMedium,
    positions: Mapping[str, tuple[float, float]],
    rings: list[tuple[str, float]],
) -> None:
    """Draw lines between stations that decode or sense each other.

    If there are `rings`, draw them around the central station instead of the lines for sensing.
    """
    for one, other in medium.decodes:
        (x0, y0), (x1, y1) = positions[one], positions[other]
        axes.plot([x0, x1], [y0, y1], color=GREY, linewidth=1, zorder=1)
    for one, other in medium.one_way:
        _draw_connection(
            axes,
            positions[one],
            positions[other],
            arrowstyle="-|>",
            connectionstyle="arc3,rad=0.08",
        )
    if not rings:
        for index, (one, other) in enumerate(medium.senses):
            style = f"arc3,rad={_BEND if index % 2 else -_BEND}"
            _draw_connection(
                axes, positions[one], positions[other], connectionstyle=style, linestyle="--",
                linewidth=0.7,
            )  # fmt: skip
        return
    x, y = positions[find_central_station(medium)]
    for (_, radius), dashes in zip(rings, _RING_STYLES, strict=False):
        axes.add_patch(
            Circle((x, y), radius, fill=False, edgecolor=GREY, linewidth=0.8, linestyle=dashes)
        )


def _draw_connection(
    axes: Axes, one: tuple[float, float], other: tuple[float, float], **style: Any
) -> None:
    """Draw a line between two stations that ends outside of the stations' symbols."""
    settings = {"arrowstyle": "-", "linewidth": 1.0, "color": GREY, "mutation_scale": 8, **style}
    axes.add_patch(FancyArrowPatch(one, other, shrinkA=9, shrinkB=9, zorder=1, **settings))


def find_central_station(medium: DrawnMedium) -> str:
    """Return the name of the station that is nearest to the mean position of all stations."""
    x, y = np.mean(np.array([station.position for station in medium.stations]), axis=0)
    return min(medium.stations, key=lambda station: math.dist(station.position, (x, y))).name


def _assign_lanes(medium: DrawnMedium) -> list[int]:
    """Return a lane for each flow, so that no two flows have the same lane on a hop.

    Lanes are parallel to the line between two stations. Lane 0 is the nearest to this line.
    """
    lanes_by_hop: dict[tuple[str, str], set[int]] = {}
    lanes = []
    for _, nodes in medium.paths:
        hops = list(itertools.pairwise(nodes))
        used_lanes = set().union(*(lanes_by_hop.get(hop, set()) for hop in hops))
        lane = next(lane for lane in itertools.count() if lane not in used_lanes)
        for hop in hops:
            lanes_by_hop.setdefault(hop, set()).add(lane)
        lanes.append(lane)
    return lanes


def _draw_path(axes: Axes, path: list[tuple[float, float]], index: int, offset: float) -> None:
    """Draw a flow as a line at the distance `offset` to the right of each hop."""
    colour = SERIES_STYLES[index][0] if index < _MAX_COLOURED_PATHS else GREY
    points: list[tuple[float, float]] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        length = math.dist((x0, y0), (x1, y1)) or 1.0
        right = ((y1 - y0) / length * offset, -(x1 - x0) / length * offset)
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
    """Draw stations at their positions, with names and the positions to which they move.

    If there are more than _MAX_NAMED_STATIONS, only senders and receivers of flows have names.
    """
    ends = {node for _, nodes in medium.paths for node in (nodes[0], nodes[-1])}
    has_too_many = len(medium.stations) > _MAX_NAMED_STATIONS
    for station in medium.stations:
        x, y = station.position
        if station.trace:
            route = [station.position, *station.trace]
            axes.plot(
                *zip(*route, strict=True), color="black", linewidth=0.7, linestyle=":", marker="o",
                markersize=2.5, markerfacecolor="white", zorder=1,
            )  # fmt: skip
        if has_too_many and station.name not in ends:
            axes.plot([x], [y], marker="o", markersize=3, color="black", zorder=3)
            continue
        shape = "square,pad=0.3" if station.kind == "host" else "round,pad=0.35"
        axes.text(
            x, y, station.name, ha="center", va="center", fontsize=7.5, fontweight="bold", zorder=4,
            bbox={"boxstyle": shape, "facecolor": "white", "edgecolor": "black"},
        )  # fmt: skip


@dataclass(frozen=True)
class AirtimeShares:
    """Shares of time in which the stations of a medium were sending in one run."""

    title: str
    edges_s: Floats  # edges of the windows, since the traffic began
    shares: list[tuple[str, Floats]]  # station, and its share of each window
    means: list[float]  # share of each station over the measurement interval


_MAX_COLUMNS = 2  # runs side by side


def make_airtime_figure(runs: Sequence[AirtimeShares]) -> Figure:
    """Return a figure of heat maps of airtime over time, one per run.

    Rows are stations, with their means on the right.
    """
    columns = min(len(runs), _MAX_COLUMNS)
    rows_of_runs = math.ceil(len(runs) / columns)
    max_stations = max(len(run.shares) for run in runs)
    top = max(0.01, *(float(values.max(initial=0)) for run in runs for _, values in run.shares))
    colours = LinearSegmentedColormap.from_list("airtime", ["#FDFDFC", "#3793C8", "#08304F"])
    with figure_style():
        height = 0.45 + rows_of_runs * (0.62 + max(0.13 * max_stations, 0.6))
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        grid = figure.subplots(rows_of_runs, columns, sharex=True, squeeze=False)
        all_axes = list(grid.flat)
        scale = ScalarMappable(Normalize(0, top), colours)
        for axes in all_axes[len(runs) :]:
            axes.set_visible(False)
        for index, (axes, run) in enumerate(zip(all_axes, runs, strict=False)):
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
            axes.set_title(wrap_label(run.title, 34), loc="left", fontsize=7.5)
            right_axis = axes.secondary_yaxis("right")
            right_axis.set_yticks(range(rows), [f"{mean:.1%}" for mean in run.means], fontsize=6.5)
            right_axis.tick_params(length=0)
            for spine in (*axes.spines.values(), *right_axis.spines.values()):
                spine.set_visible(False)
            if index + columns >= len(runs):
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
    """Metrics of the stations of a medium, as means over the runs of a series.

    Each list has one mean per station.
    """

    series: str
    airtime: list[Mean | None]  # share of time in which the station sent
    retries: list[Mean | None]  # number per packet
    given_up: list[Mean | None]  # share of packets that the station gave up


def make_station_figure(names: Sequence[str], series: Sequence[StationMeans]) -> Figure:
    """Return a figure of airtime, retries and packets given up, for all stations of a medium.

    There is one row per station, and one marker per series.
    """
    with figure_style():
        size = (WIDTH, 0.8 + max(0.16 * len(names), 0.7))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(1, 3, sharey=True)
        positions = np.arange(len(names))
        for index, means_of_series in enumerate(series):
            colour, marker, _ = SERIES_STYLES[index % len(SERIES_STYLES)]
            offset = (index - (len(series) - 1) / 2) * min(0.28, 0.7 / len(series))
            for axes, means, scale in zip(
                grid,
                (means_of_series.airtime, means_of_series.retries, means_of_series.given_up),
                (100, 1, 100),
                strict=True,
            ):
                present = [(row, mean) for row, mean in enumerate(means) if mean is not None]
                draw_means_across(
                    axes,
                    [
                        Mean(mean.value * scale, mean.halfwidth * scale, mean.runs)
                        for _, mean in present
                    ],
                    positions[[row for row, _ in present]] + offset,
                    colour,
                    marker,
                    means_of_series.series,
                )
        heads = ("Airtime (%)", "Retries per packet", "Packets given up (%)")
        for axes, head in zip(grid, heads, strict=True):
            axes.set_xlabel(head)
            if axes.dataLim.x1 <= 0:  # all values are 0
                axes.set_xlim(-0.05, 1)
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="y", color=PALE, linewidth=0.4)
            axes.set_axisbelow(True)
        grid[0].set_yticks(positions, names, fontsize=7)
        grid[0].set_ylim(len(names) - 0.4, -0.6)
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=min(len(labels), 5), loc="outside upper center")
    return figure
