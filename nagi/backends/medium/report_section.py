# SPDX-License-Identifier: Apache-2.0
"""The section Shared media: map, frames by outcome, packets given up, and airtime of stations."""

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
MAX_POINTS = 40  # rows of a table by point
MAX_RUNS = 6  # shown over time
WINDOWS = 60  # of airtime over time


def compose_blocks(material: Material) -> list[Block]:
    """Return the blocks of the section; empty without media."""
    accounts = list(_read_accounts(material))
    if not accounts:
        return []
    composed: list[Block] = [Paragraph(_compose_introduction(accounts))]
    for medium in material.plan.media:
        medium_runs = [run for run in accounts if run.medium.name == medium.name]
        composed.append(_compose_map(material, medium))
        composed.append(_compose_frame_table(material, medium.name, medium_runs))
        composed.append(_compose_packet_table(material, medium.name, medium_runs))
        composed += _compose_station_figures(material, medium)
    return composed


@dataclass(frozen=True)
class _Run:
    """A medium in a valid run."""

    run_id: str
    plan: RunPlan
    medium: MediumPlan
    account: MediumAccount


def _read_accounts(material: Material) -> Iterator[_Run]:
    """Yield each medium of each valid run with the emulator's account of it."""
    for run_id, plan, links in material.read_all(Links, "links.json", lambda plan: plan.media):
        if material.verdicts[run_id].status == "valid":
            for medium in plan.media:
                yield _Run(run_id, plan, medium, links.medium(medium.name))


def _compose_introduction(accounts: list[_Run]) -> str:
    """Return the text that defines the causes by which frames are lost."""
    runs = len({run.run_id for run in accounts})
    return (
        "Stations of a medium share the air by IEEE 802.11 DCF. A frame that its receiver cannot "
        "read is counted by cause. Collided: a station that its sender hears sent at the same "
        "time. Hidden terminal: one that its sender does not hear did. Channel error: drawn by the "
        "loss model. Receiver busy: the receiver was sending. Not "
        "answered: an RTS to a station whose NAV was set. A station gives a packet up at the retry "
        f"limit. Counts are over {format_count(runs, 'valid run')}, each from its begin to its end."
    )


# -- map ------------------------------------------------------------------------------------------


def _compose_map(material: Material, medium: MediumPlan) -> Figure:
    """Return the map of a medium."""
    drawn = make_drawn_medium(material.plan, medium)
    ranges = ""
    if len(drawn.senses) > figures.MAX_SENSE_LINES and drawn.rings:
        ranges = (
            f" Circles around {figures.find_central_station(drawn)}: up to where its frames are "
            "decoded (solid) and sensed (dotted)."
        )
    motion_note = (
        " Dotted lines: where stations move." if any(s.trace for s in drawn.stations) else ""
    )
    paths = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in drawn.paths)
    arrangement = "at their positions" if drawn.in_metres else "on a circle"
    start_note = " at the start" if motion_note else ""
    return Figure(
        f"medium-{medium.name}",
        figures.render_svg(figures.make_medium_map(drawn)),
        f"Medium {medium.name}: stations {arrangement}{start_note}, squares are hosts, round boxes "
        "routers; who hears whom; and the paths of flows in the first run, without their way "
        f"back.{ranges}{motion_note}",
        f"Map of medium {medium.name}. Stations that decode each other: "
        f"{', '.join(f'{one} and {other}' for one, other in drawn.decodes) or 'none'}. "
        f"Paths: {paths or 'none'}.",
    )


def make_drawn_medium(plan: RunPlan, medium: MediumPlan) -> DrawnMedium:
    """Return a medium of a run as its map shows it, with the positions at the start."""
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
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            is_forward, is_backward = medium.decodes(one, other), medium.decodes(other, one)
            if is_forward and is_backward:
                decodes.append((one, other))
            elif is_forward or is_backward:
                one_way.append((one, other) if is_forward else (other, one))
            elif medium.senses(one, other) or medium.senses(other, one):
                senses.append((one, other))
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
    """Return label and radius in m of the ranges within which frames are decoded and sensed."""
    reach = medium.reach
    if isinstance(reach, MatrixReach):
        return []
    if isinstance(reach, RangeReach):
        decoded_m, sensed_m = reach.transmission_m, reach.carrier_sense_m
    else:
        floor = max(reach.sensitivity_dbm, reach.noise_dbm + reach.capture_db)
        decoded_m, sensed_m = (
            10 ** ((reach.power_dbm(1.0) - power) / (10 * reach.path_loss_exponent))
            for power in (floor, reach.carrier_sense_dbm)
        )
    return [(f"decoded, {decoded_m:.0f} m", decoded_m), (f"sensed, {sensed_m:.0f} m", sensed_m)]


def _collect_paths(plan: RunPlan, medium: MediumPlan) -> list[tuple[str, list[str]]]:
    """Return the flows that cross the medium, each with the stations on its path."""
    paths = []
    for flow in plan.flows:
        hops = [hop for hop in flow.path if hop.link == medium.name]
        if hops:
            paths.append((flow.name, [plan.sender_of(hops[0]), *map(plan.receiver_of, hops)]))
    return paths


# -- frames and packets ---------------------------------------------------------------------------


def _compose_frame_table(material: Material, name: str, runs: list[_Run]) -> Table:
    """Return the table of frames by kind and outcome of each series."""
    rows = []
    for series in _list_series(material):
        by_kind: dict[str, list[FrameCounts]] = {}
        for run in runs:
            if run.plan.point[material.campaign.series] == series:
                for station in run.account.stations:
                    for kind, counts in station.frames.items():
                        by_kind.setdefault(kind, []).append(counts)
        for kind, head in KINDS.items():
            counts_of_kind = by_kind.get(kind, [])
            sent, received = (
                sum(getattr(counts, column) for counts in counts_of_kind)
                for column in ("sent", "received")
            )
            if sent:
                lost_by_cause = [
                    sum(getattr(counts, cause) for counts in counts_of_kind) for cause in _OUTCOMES
                ]
                lost = f"{1 - received / sent:.2%}"
                rows.append(
                    [series, head, f"{sent:,}", lost, *(f"{count:,}" for count in lost_by_cause)]
                )
    return Table(
        f"Frames on medium {name} by kind, and those that were not received by cause.",
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
    """Packets at stations of a medium, over runs."""

    runs: int = 0
    tried: int = 0
    given_up: int = 0
    dropped: int = 0
    max_waiting: int = 0
    at_once: list[float] = field(
        default_factory=list
    )  # mean number of frames on the air at once, per run

    def add(self, run: _Run) -> None:
        """Add the packets of a run."""
        self.runs += 1
        for station in run.account.stations:
            packets = station.packets
            self.tried += packets.delivered + packets.given_up
            self.given_up += packets.given_up
            self.dropped += packets.dropped_by_queue
            self.max_waiting = max(self.max_waiting, station.max_waiting_packets)
        timeline = run.plan.timeline
        lasted_ns = (timeline.traffic_end_s - timeline.traffic_s) * 1e9
        on_air_ns = sum(station.on_air_ns for station in run.account.stations)
        self.at_once.append(on_air_ns / lasted_ns)


def _compose_packet_table(material: Material, name: str, runs: list[_Run]) -> Table:
    """Return the table of packets at stations by point; by series if points are too many."""
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
        share = packets.given_up / packets.tried if packets.tried else 0.0
        rows.append(
            [
                *values,
                f"{packets.tried:,}",
                f"{packets.given_up:,}",
                f"{share:.2%}",
                format_mean(retries, digits=2),
                f"{packets.dropped:,}",
                str(packets.max_waiting),
                format_mean(mean(np.array(packets.at_once)), digits=2),
            ]
        )
    return Table(
        f"Packets at the stations of medium {name}. Tried: delivered or given up; a packet counts "
        "at each station that tried to send it. Frames at once: how many were on the air, mean "
        "over the time of the traffic.",
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


def _group_runs(runs: list[_Run], axes: list[str]) -> dict[tuple[str, ...], _Packets]:
    groups: dict[tuple[str, ...], _Packets] = {}
    for run in runs:
        key = tuple(run.plan.point[axis] for axis in axes)
        groups.setdefault(key, _Packets()).add(run)
    return groups


def _list_series(material: Material) -> list[str]:
    campaign = material.campaign
    return list(dict.fromkeys(run.point[campaign.series] for run in campaign.runs))


# -- stations -------------------------------------------------------------------------------------


def _compose_station_figures(material: Material, medium: MediumPlan) -> Iterator[Block]:
    """Yield airtime over time of chosen runs, and means of all runs at the same point."""
    chosen = choose_runs(material)
    if not chosen:
        return
    point = chosen[len(chosen) // 2]
    point_words = point.describe_point(material.summary)
    airtimes = []
    for series, run_id in point.runs[:MAX_RUNS]:
        air = None if run_id is None else _read_air(material, run_id)
        if air is not None and run_id is not None:
            airtimes.append(_compute_airtime(series, material.plans[run_id], medium, air))
    if not airtimes:
        yield Paragraph("Frames were not kept, so nothing is shown of airtime over time.")
        return
    width_s = airtimes[0].edges_s[1] - airtimes[0].edges_s[0]
    yield Figure(
        f"airtime-{medium.name}",
        figures.render_svg(figures.make_airtime_figure(airtimes)),
        f"Airtime at {point_words}: the share of each window of {width_s:.2g} s in which a station "
        f"of medium {medium.name} was sending. At the right its mean over the measurement "
        "interval. The runs are those shown over time.",
        f"Heat maps of airtime at {point_words}. {_describe_airtime(airtimes)}",
    )
    names = [station.node for station in medium.stations]
    means = list(_compute_means(material, medium, point.panel.label, point.x))
    yield Figure(
        f"stations-{medium.name}",
        figures.render_svg(figures.make_station_figure(names, means)),
        f"Stations of medium {medium.name} at {point_words}: airtime, attempts beside the first "
        "per packet, and packets given up; means over valid runs during the measurement interval.",
        f"Stations at {point_words}. {_describe_means(names, means)}",
    )


def _read_air(material: Material, run_id: str) -> Air | None:
    directory = material.run_directory(run_id)
    if not (directory / FRAMES).exists():
        return None
    return Air.read(directory, material.plans[run_id])


def _compute_airtime(series: str, plan: RunPlan, medium: MediumPlan, air: Air) -> AirtimeShares:
    """Return the airtime of all stations in one run, over time and in the measurement interval."""
    timeline, measure = plan.timeline, plan.measure
    edges_s = np.linspace(timeline.traffic_s, timeline.traffic_end_s, WINDOWS + 1)
    edges_ns = np.rint(edges_s * 1e9).astype(np.int64)
    interval_ns = np.array([measure.start_s * 1e9, measure.end_s * 1e9]).astype(np.int64)
    nodes = [station.node for station in medium.stations]
    return AirtimeShares(
        series,
        edges_s - timeline.traffic_s,
        [(node, air.measure_airtime(medium.name, node, edges_ns)) for node in nodes],
        [float(air.measure_airtime(medium.name, node, interval_ns)[0]) for node in nodes],
    )


def _compute_means(
    material: Material, medium: MediumPlan, panel: str, x: str
) -> Iterator[StationMeans]:
    """Yield the means of stations for each series at a point."""
    campaign = material.campaign
    for series in _list_series(material):
        stations_by_run: list[dict[str, StationAir]] = []
        for run_id in _list_valid_runs(material):
            plan = material.plans[run_id]
            point = plan.point
            is_at_point = point[campaign.series] == series and x in ("", point[campaign.x])
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
                series,
                *(
                    [
                        _average_stations([run[node] for run in stations_by_run], name)
                        for node in nodes
                    ]
                    for name in ("airtime", "retries", "given_up")
                ),
            )


def _average_stations(stations: list[StationAir], name: str) -> Mean | None:
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
    """Return the figure of stations in words."""
    sentences = []
    for series_means in means:
        parts = [
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
        sentences.append(f"{series_means.series}: {'; '.join(parts)}.")
    return " ".join(sentences)
