# SPDX-License-Identifier: Apache-2.0
"""Compose the section Shared media: map, frames by outcome, packets given up, and airtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from nagi_contracts.links import FrameCounts, Links, MediumAccount
from nagi_contracts.media import MatrixReach, MediumPlan, RangeReach
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import format_count
from nagi_reports import figures
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.over_time import choose_runs
from nagi_reports.chapters.words import NONE, capitalise, format_mean, to_words
from nagi_reports.content import Block, Column, Figure, Paragraph, Table
from nagi_reports.figures import AirtimeShares, DrawnMedium, DrawnStation, StationMeans
from nagi_reports.media import FRAMES, Air, StationAir
from nagi_reports.statistics import mean
from nagi_reports.summary import Mean, average_runs

KINDS: dict[Literal["rts", "cts", "data", "ack"], str] = {
    "rts": "RTS",
    "cts": "CTS",
    "data": "DATA",
    "ack": "ACK",
}
_OUTCOMES = {
    "collided": "Collided",
    "hidden_terminal": "Hidden terminal",
    "channel_errors": "Channel error",
    "receiver_busy": "Receiver busy",
    "not_answered": "Not answered",
    "out_of_reach": "Out of reach",
}
MAX_POINTS = 40  # maximum number of rows of a table with one row per point
MAX_RUNS = 6  # maximum number of runs in the figure of airtime over time
WINDOWS = 60  # number of windows of time in that figure


def compose_blocks(material: Material) -> list[Block]:
    """Return the blocks of the section Shared media; empty if no valid run has a medium."""
    medium_runs = list(_read_medium_runs(material))
    if not medium_runs:
        return []
    composed: list[Block] = [Paragraph(_compose_introduction(medium_runs))]
    for medium in material.plan.media:
        runs = [run for run in medium_runs if run.medium.name == medium.name]
        composed.append(_compose_map(material, medium))
        composed.append(_compose_frame_table(material, medium.name, runs))
        composed.append(_compose_packet_table(material, medium.name, runs))
        composed += _compose_station_figures(material, medium)
    return composed


@dataclass(frozen=True)
class _MediumRun:
    """A medium in one valid run, with the counts that the emulator wrote for the medium."""

    run_id: str
    plan: RunPlan
    medium: MediumPlan
    account: MediumAccount


def _read_medium_runs(material: Material) -> Iterator[_MediumRun]:
    """Yield each medium of each valid run, with the counts of the medium from links.json."""
    for run_id, plan, links in material.read_all(Links, "links.json", lambda plan: plan.media):
        if material.verdicts[run_id].status == "valid":
            for medium in plan.media:
                yield _MediumRun(run_id, plan, medium, links.medium(medium.name))


def _compose_introduction(medium_runs: list[_MediumRun]) -> str:
    """Return the text that defines the causes of lost frames and the number of runs."""
    run_count = len({run.run_id for run in medium_runs})
    return (
        "Stations of a medium share the air by IEEE 802.11 DCF. Frames that their receivers cannot "
        "read are counted by cause. Collided: another station sent at the same time, and the "
        "frame's sender hears that station. Hidden terminal: another station sent at the same "
        "time, and the frame's sender does not hear that station. Channel error: the loss model "
        "lost the frame. Receiver busy: the receiver was sending. Not answered: an RTS to a "
        "station whose NAV was set. A station gives up a packet at the retry limit. Counts are "
        f"over {format_count(run_count, 'valid run')}, from the start to the end of each run."
    )


# -- map ------------------------------------------------------------------------------------------


def _compose_map(material: Material, medium: MediumPlan) -> Figure:
    """Return the map of a medium's stations, and of the paths of flows in the first run."""
    drawn = make_drawn_medium(material.plan, medium)
    ranges = ""
    if len(drawn.senses) > figures.MAX_SENSE_LINES and drawn.rings:
        ranges = (
            f" Circles around {figures.find_central_station(drawn)}: the distances up to which its "
            "frames are decoded (solid) and sensed (dotted)."
        )
    has_motion = any(station.trace for station in drawn.stations)
    motion_note = " Dotted lines: paths of stations that move." if has_motion else ""
    paths = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in drawn.paths)
    arrangement = "at their positions" if drawn.in_metres else "on a circle"
    start_note = " at the start" if motion_note else ""
    return Figure(
        f"medium-{medium.name}",
        figures.render_svg(figures.make_medium_map(drawn)),
        f"Medium {medium.name}: stations {arrangement}{start_note}, squares are hosts, round boxes "
        "routers; which stations hear each other; and the paths of flows in the first run, without "
        f"the paths of their ACKs.{ranges}{motion_note}",
        f"Map of medium {medium.name}. Stations that decode each other: "
        f"{', '.join(f'{one} and {other}' for one, other in drawn.decodes) or 'none'}. "
        f"Paths: {paths or 'none'}.",
    )


def make_drawn_medium(plan: RunPlan, medium: MediumPlan) -> DrawnMedium:
    """Return the contents of a medium's map.

    These are the stations at the start of a run, the pairs of stations that decode or sense each
    other, and the paths of flows. If reach is given as a matrix, stations have no positions and are
    placed on a circle.
    """
    kinds = {node.name: node.kind for node in plan.nodes}
    count = len(medium.stations)
    stations = []
    for index, station in enumerate(medium.stations):
        angle = 2 * np.pi * index / count
        position = station.position_m or (-float(np.cos(angle)), float(np.sin(angle)))
        trace = [(x, y) for _, x, y in station.trace]
        stations.append(DrawnStation(station.node, kinds[station.node], position, trace))
    names = [station.name for station in stations]
    decodes, one_way, senses = [], [], []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            is_forward, is_backward = medium.decodes(first, second), medium.decodes(second, first)
            if is_forward and is_backward:
                decodes.append((first, second))
            elif is_forward or is_backward:
                one_way.append((first, second) if is_forward else (second, first))
            elif medium.senses(first, second) or medium.senses(second, first):
                senses.append((first, second))
    return DrawnMedium(
        stations,
        not isinstance(medium.reach, MatrixReach),
        decodes,
        one_way,
        senses,
        _find_rings(medium),
        _collect_paths(plan, medium),
    )


def _find_rings(medium: MediumPlan) -> list[tuple[str, float]]:
    """Return (label, radius in m) of the distances up to which frames are decoded and sensed.

    Empty if reach is given as a matrix.
    """
    reach = medium.reach
    if isinstance(reach, MatrixReach):
        return []
    if isinstance(reach, RangeReach):
        decoded_m, sensed_m = reach.transmission_m, reach.carrier_sense_m
    else:
        min_decoded_dbm = max(reach.sensitivity_dbm, reach.noise_dbm + reach.capture_db)
        decoded_m, sensed_m = (
            10 ** ((reach.power_dbm(1.0) - power_dbm) / (10 * reach.path_loss_exponent))
            for power_dbm in (min_decoded_dbm, reach.carrier_sense_dbm)
        )
    return [(f"decoded, {decoded_m:.0f} m", decoded_m), (f"sensed, {sensed_m:.0f} m", sensed_m)]


def _collect_paths(plan: RunPlan, medium: MediumPlan) -> list[tuple[str, list[str]]]:
    """Return (flow, stations on its path in order) for each flow that crosses the medium."""
    paths = []
    for flow in plan.flows:
        hops = [hop for hop in flow.path if hop.link == medium.name]
        if hops:
            paths.append((flow.name, [plan.sender_of(hops[0]), *map(plan.receiver_of, hops)]))
    return paths


# -- frames and packets ---------------------------------------------------------------------------


def _compose_frame_table(material: Material, name: str, runs: list[_MediumRun]) -> Table:
    """Return the table of frames: one row per value of the series axis and kind of frame.

    A kind has no row if no frame of this kind was sent.

    Args:
        material: The campaign.
        name: The name of the medium.
        runs: The medium in all valid runs.
    """
    rows = []
    for series_value in _list_series_values(material):
        by_kind: dict[str, list[FrameCounts]] = {}
        for run in runs:
            if run.plan.point[material.campaign.series] == series_value:
                for station in run.account.stations:
                    for kind, counts in station.frames.items():
                        by_kind.setdefault(kind, []).append(counts)
        for kind, kind_label in KINDS.items():
            counts_of_kind = by_kind.get(kind, [])
            sent, received = (
                sum(getattr(counts, column) for counts in counts_of_kind)
                for column in ("sent", "received")
            )
            if sent:
                lost_by_cause = [
                    sum(getattr(counts, cause) for counts in counts_of_kind) for cause in _OUTCOMES
                ]
                loss_rate = f"{1 - received / sent:.2%}"
                rows.append(
                    [
                        series_value,
                        kind_label,
                        f"{sent:,}",
                        loss_rate,
                        *(f"{count:,}" for count in lost_by_cause),
                    ]
                )
    return Table(
        f"Frames on medium {name} by kind, and frames that were not received, by cause.",
        [
            Column(capitalise(to_words(material.campaign.series)), weight=2),
            Column("Kind"),
            Column("Sent", "right"),
            Column("Not received", "right", 1),
            *(Column(head, "right", 1) for head in _OUTCOMES.values()),
        ],
        rows,
        small=True,
    )


@dataclass
class _Packets:
    """Counts of packets at all stations of a medium, summed over runs."""

    tried: int = 0  # packets delivered or given up
    given_up: int = 0
    dropped: int = 0  # because the queue was full
    max_waiting: int = 0  # the largest number of packets in the queue of a station
    # Mean number of frames on the air at the same time, one value per run.
    frames_at_once: list[float] = field(default_factory=list)

    def add(self, run: _MediumRun) -> None:
        """Add the counts of one run."""
        for station in run.account.stations:
            packets = station.packets
            self.tried += packets.delivered + packets.given_up
            self.given_up += packets.given_up
            self.dropped += packets.dropped_by_queue
            self.max_waiting = max(self.max_waiting, station.max_waiting_packets)
        timeline = run.plan.timeline
        traffic_ns = (timeline.traffic_end_s - timeline.traffic_s) * 1e9
        on_air_ns = sum(station.on_air_ns for station in run.account.stations)
        self.frames_at_once.append(on_air_ns / traffic_ns)


def _compose_packet_table(material: Material, name: str, runs: list[_MediumRun]) -> Table:
    """Return the table of packets at stations, one row per point.

    With more than MAX_POINTS points, the table has one row per value of the series axis.

    Args:
        material: The campaign.
        name: The name of the medium.
        runs: The medium in all valid runs.
    """
    campaign = material.campaign
    axes = list(
        dict.fromkeys(
            axis for axis in (campaign.panels, campaign.x, campaign.series) if axis is not None
        )
    )
    groups = _group_runs(runs, axes)
    if len(groups) > MAX_POINTS:
        axes = [campaign.series]
        groups = _group_runs(runs, axes)
    valid = material.table[material.table["status"] == "valid"]
    rows = []
    for values, packets in groups.items():
        point_rows = valid
        for axis, value in zip(axes, values, strict=True):
            point_rows = point_rows[point_rows[f"point.{axis}"] == value]
        retries = (
            average_runs(point_rows, "retries_per_hop") if "retries_per_hop" in point_rows else None
        )
        given_up_share = packets.given_up / packets.tried if packets.tried else 0.0
        rows.append(
            [
                *values,
                f"{packets.tried:,}",
                f"{packets.given_up:,}",
                f"{given_up_share:.2%}",
                format_mean(retries, digits=2),
                f"{packets.dropped:,}",
                str(packets.max_waiting),
                format_mean(mean(np.array(packets.frames_at_once)), digits=2),
            ]
        )
    return Table(
        f"Packets at the stations of medium {name}. Tried: delivered or given up; a packet counts "
        "at each station that tried to send it. Frames at once: number of frames on the air at the "
        "same time, mean over the duration of the traffic.",
        [
            *(Column(capitalise(to_words(axis)), weight=1) for axis in axes),
            Column("Tried", "right"),
            Column("Given up", "right"),
            Column("Share", "right"),
            Column("Retries per hop", "right", 1),
            Column("Queue full", "right"),
            Column("Most waiting", "right"),
            Column("Frames at once", "right", 1),
        ],
        rows,
        small=True,
    )


def _group_runs(runs: list[_MediumRun], axes: list[str]) -> dict[tuple[str, ...], _Packets]:
    """Sum the packets of all runs with equal values of `axes`.

    Returns:
        Values of the axes, in their order -> sums over the runs with these values.
    """
    groups: dict[tuple[str, ...], _Packets] = {}
    for run in runs:
        key = tuple(run.plan.point[axis] for axis in axes)
        groups.setdefault(key, _Packets()).add(run)
    return groups


def _list_series_values(material: Material) -> list[str]:
    """Return the values of the axis that figures show as series, in the order of the runs."""
    campaign = material.campaign
    return list(dict.fromkeys(run.point[campaign.series] for run in campaign.runs))


# -- stations -------------------------------------------------------------------------------------


def _compose_station_figures(material: Material, medium: MediumPlan) -> Iterator[Block]:
    """Yield a figure of airtime over time, and a figure of means of stations, at one point.

    The point is the middle one of the points that the report shows over time. If there are no such
    points, yield nothing. If there are no records of frames, yield a paragraph that says so.
    """
    chosen_points = choose_runs(material)
    if not chosen_points:
        return
    point = chosen_points[len(chosen_points) // 2]
    point_words = point.describe_point(material.summary)
    airtimes = []
    for series_value, run_id in point.runs[:MAX_RUNS]:
        air = None if run_id is None else _read_air(material, run_id)
        if air is not None and run_id is not None:
            airtimes.append(_compute_airtime(series_value, material.plans[run_id], medium, air))
    if not airtimes:
        yield Paragraph("The runs have no records of frames, so airtime over time is not shown.")
        return
    width_s = airtimes[0].edges_s[1] - airtimes[0].edges_s[0]
    yield Figure(
        f"airtime-{medium.name}",
        figures.render_svg(figures.make_airtime_figure(airtimes)),
        f"Airtime at {point_words}: the share of each window of {width_s:.2g} s in which a station "
        f"of medium {medium.name} was sending. On the right: the mean over the measurement "
        "interval. The runs are the same as in the figures over time.",
        f"Heat maps of airtime at {point_words}. {_describe_airtime(airtimes)}",
    )
    names = [station.node for station in medium.stations]
    means = list(_compute_means(material, medium, point.panel.label, point.x))
    yield Figure(
        f"stations-{medium.name}",
        figures.render_svg(figures.make_station_figure(names, means)),
        f"Stations of medium {medium.name} at {point_words}: airtime, retries per packet, and "
        "packets given up; means over valid runs during the measurement interval.",
        f"Stations at {point_words}. {_describe_means(names, means)}",
    )


def _read_air(material: Material, run_id: str) -> Air | None:
    """Read the packets and frames of a run, or return None if the record of frames is missing."""
    directory = material.run_directory(run_id)
    if not (directory / FRAMES).exists():
        return None
    return Air.read(directory, material.plans[run_id])


def _compute_airtime(title: str, plan: RunPlan, medium: MediumPlan, air: Air) -> AirtimeShares:
    """Return the airtime of all stations in one run, over time and in the measurement interval.

    Args:
        title: Title of the run in the figure.
        plan: The plan of the run.
        medium: The medium.
        air: The packets and frames of the run.
    """
    timeline, measure = plan.timeline, plan.measure
    edges_s = np.linspace(timeline.traffic_s, timeline.traffic_end_s, WINDOWS + 1)
    edges_ns = np.rint(edges_s * 1e9).astype(np.int64)
    interval_ns = np.array([measure.start_s * 1e9, measure.end_s * 1e9]).astype(np.int64)
    nodes = [station.node for station in medium.stations]
    return AirtimeShares(
        title,
        edges_s - timeline.traffic_s,
        [(node, air.measure_airtime(medium.name, node, edges_ns)) for node in nodes],
        [float(air.measure_airtime(medium.name, node, interval_ns)[0]) for node in nodes],
    )


def _compute_means(
    material: Material, medium: MediumPlan, panel: str, x: str
) -> Iterator[StationMeans]:
    """Yield the means over all valid runs at a point, for each value of the series axis.

    Runs without a record of frames, and series values without runs, are left out.

    Args:
        material: The campaign.
        medium: The medium.
        panel: The point's value of the axis of panels. Not used if the report has no panels.
        x: The point's value of the x axis. Empty if the point has none.
    """
    campaign = material.campaign
    for series_value in _list_series_values(material):
        stations_by_run: list[dict[str, StationAir]] = []
        for run_id in _list_valid_runs(material):
            plan = material.plans[run_id]
            point = plan.point
            is_at_point = point[campaign.series] == series_value and x in ("", point[campaign.x])
            if campaign.panels is not None:
                is_at_point = is_at_point and point[campaign.panels] == panel
            air = _read_air(material, run_id) if is_at_point else None
            if air is not None:
                begin, end = (
                    round(instant * 1e9) for instant in (plan.measure.start_s, plan.measure.end_s)
                )
                stations_by_run.append(air.measure_stations(medium, begin, end))
        if stations_by_run:
            nodes = [station.node for station in medium.stations]
            yield StationMeans(
                series_value,
                *(
                    [
                        _average_stations([run[node] for run in stations_by_run], name)
                        for node in nodes
                    ]
                    for name in ("airtime", "retries", "given_up")
                ),
            )


def _average_stations(stations: list[StationAir], name: str) -> Mean | None:
    """Return the mean of the attribute `name` over `stations`, or None if none has a value."""
    values = pd.Series([getattr(station, name) for station in stations], dtype="float64").dropna()
    return mean(values.to_numpy()) if len(values) else None


def _list_valid_runs(material: Material) -> list[str]:
    return [run for run in material.plans if material.verdicts[run].status == "valid"]


def _describe_airtime(runs: list[AirtimeShares]) -> str:
    return " ".join(
        f"{run.title}: "
        + ", ".join(
            f"{name} {share:.1%}" for (name, _), share in zip(run.shares, run.means, strict=True)
        )
        + "."
        for run in runs
    )


def _describe_means(names: list[str], means: list[StationMeans]) -> str:
    """Return the alternative text of the figure of stations: its values in words."""
    sentences = []
    for series_means in means:
        phrases = [
            f"{name} {NONE if air is None else f'{air.value:.1%}'} airtime, "
            f"{NONE if retries is None else f'{retries.value:.2f}'} retries, "
            f"{NONE if given_up is None else f'{given_up.value:.2%}'} given up"
            for name, air, retries, given_up in zip(
                names,
                series_means.airtime,
                series_means.retries,
                series_means.given_up,
                strict=True,
            )
        ]
        sentences.append(f"{series_means.series}: {'; '.join(phrases)}.")
    return " ".join(sentences)
