# SPDX-License-Identifier: Apache-2.0
"""Shared media over all valid runs: who hears whom, frames by kind and outcome, packets given up,
and the airtime of stations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
from nagi_contracts.links import FrameCounts, Links, MediumAccount
from nagi_contracts.media import MatrixReach, MediumPlan, RangeReach
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import count_of

from nagi_reports import figures
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.over_time import chosen_runs
from nagi_reports.chapters.words import NONE, capital, spaced, written
from nagi_reports.content import Block, Column, Figure, Paragraph, Table
from nagi_reports.figures import Airtime, DrawnMedium, DrawnStation, StationMeans
from nagi_reports.media import FRAMES, Air, StationAir
from nagi_reports.statistics import mean
from nagi_reports.summary import Mean, mean_of_runs

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


def blocks(material: Material) -> list[Block]:
    """Nothing where there are no media."""
    accounts = list(_accounts(material))
    if not accounts:
        return []
    found: list[Block] = [Paragraph(_words(accounts))]
    for medium in material.plan.media:
        mine = [each for each in accounts if each.medium.name == medium.name]
        found.append(_map(material, medium))
        found.append(_frames(material, medium.name, mine))
        found.append(_packets(material, medium.name, mine))
        found += _stations(material, medium)
    return found


@dataclass(frozen=True)
class _Run:
    """A medium in a valid run."""

    run_id: str
    plan: RunPlan
    medium: MediumPlan
    account: MediumAccount


def _accounts(material: Material) -> Iterator[_Run]:
    for run_id, plan, links in material.read_all(Links, "links.json", lambda plan: plan.media):
        if material.verdicts[run_id].status == "valid":
            for medium in plan.media:
                yield _Run(run_id, plan, medium, links.medium(medium.name))


def _words(accounts: list[_Run]) -> str:
    runs = len({each.run_id for each in accounts})
    return (
        "Stations of a medium share the air by IEEE 802.11 DCF. A frame that its receiver cannot "
        "read is counted by cause. Collided: a station that its sender hears sent at the same "
        "time. Hidden terminal: one that its sender does not hear did. Channel error: drawn by the "
        "loss model. Receiver busy: the receiver was sending. Not "
        "answered: an RTS to a station whose NAV was set. A station gives a packet up at the retry "
        f"limit. Counts are over {count_of(runs, 'valid run')}, each from its begin to its end."
    )


# -- who hears whom -------------------------------------------------------------------------------


def _map(material: Material, medium: MediumPlan) -> Figure:
    drawn = drawn_medium(material.plan, medium)
    ranges = ""
    if len(drawn.senses) > figures.SENSED and drawn.rings:
        ranges = (
            f" Circles around {figures.central(drawn)}: up to where its frames are decoded (solid) "
            "and sensed (dotted)."
        )
    moving = " Dotted lines: where stations move." if any(s.trace for s in drawn.stations) else ""
    paths = "; ".join(f"{name}: {', '.join(nodes)}" for name, nodes in drawn.paths)
    placed = "at their positions" if drawn.in_metres else "on a circle"
    start = " at the start" if moving else ""
    return Figure(
        f"medium-{medium.name}",
        figures.svg(figures.medium_map(drawn)),
        f"Medium {medium.name}: stations {placed}{start}, squares are hosts, round boxes routers; "
        f"who hears whom; and the paths of flows in the first run, without their way back.{ranges}"
        f"{moving}",
        f"Map of medium {medium.name}. Stations that decode each other: "
        f"{', '.join(f'{one} and {other}' for one, other in drawn.decodes) or 'none'}. "
        f"Paths: {paths or 'none'}.",
    )


def drawn_medium(plan: RunPlan, medium: MediumPlan) -> DrawnMedium:
    """A medium of a run as its drawing shows it, at the start."""
    kinds = {node.name: node.kind for node in plan.nodes}
    count = len(medium.stations)
    stations = []
    for index, each in enumerate(medium.stations):
        angle = 2 * np.pi * index / count
        place = each.position_m or (-float(np.cos(angle)), float(np.sin(angle)))
        trace = [(x, y) for _, x, y in each.trace]
        stations.append(DrawnStation(each.node, kinds[each.node], place, trace))
    names = [each.name for each in stations]
    decodes, one_way, senses = [], [], []
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            there, back = medium.decodes(one, other), medium.decodes(other, one)
            if there and back:
                decodes.append((one, other))
            elif there or back:
                one_way.append((one, other) if there else (other, one))
            elif medium.senses(one, other) or medium.senses(other, one):
                senses.append((one, other))
    return DrawnMedium(
        stations,
        not isinstance(medium.reach, MatrixReach),
        decodes,
        one_way,
        senses,
        _rings(medium),
        _paths(plan, medium),
    )


def _rings(medium: MediumPlan) -> list[tuple[str, float]]:
    """Up to which distances frames are decoded and sensed, in m."""
    reach = medium.reach
    if isinstance(reach, MatrixReach):
        return []
    if isinstance(reach, RangeReach):
        decoded, sensed = reach.transmission_m, reach.carrier_sense_m
    else:
        floor = max(reach.sensitivity_dbm, reach.noise_dbm + reach.capture_db)
        decoded, sensed = (
            10 ** ((reach.power_dbm(1.0) - power) / (10 * reach.path_loss_exponent))
            for power in (floor, reach.carrier_sense_dbm)
        )
    return [(f"decoded, {decoded:.0f} m", decoded), (f"sensed, {sensed:.0f} m", sensed)]


def _paths(plan: RunPlan, medium: MediumPlan) -> list[tuple[str, list[str]]]:
    """The stations over which flows come, of those that cross the medium."""
    found = []
    for flow in plan.flows:
        hops = [hop for hop in flow.path if hop.link == medium.name]
        if hops:
            found.append((flow.name, [plan.sender_of(hops[0]), *map(plan.receiver_of, hops)]))
    return found


# -- frames and packets ---------------------------------------------------------------------------


def _frames(material: Material, name: str, runs: list[_Run]) -> Table:
    """Frames by kind and outcome, of each series."""
    by_series: dict[str, list[FrameCounts]] = {}
    rows = []
    for series in _series(material):
        by_series = {}
        for run in runs:
            if run.plan.point[material.campaign.series] == series:
                for station in run.account.stations:
                    for kind, counts in station.frames.items():
                        by_series.setdefault(kind, []).append(counts)
        for kind, head in KINDS.items():
            counted = by_series.get(kind, [])
            sent, received = (
                sum(getattr(each, column) for each in counted) for column in ("sent", "received")
            )
            if sent:
                causes = [sum(getattr(each, cause) for each in counted) for cause in _OUTCOMES]
                lost = f"{1 - received / sent:.2%}"
                rows.append([series, head, f"{sent:,}", lost, *(f"{each:,}" for each in causes)])
    return Table(
        f"Frames on medium {name} by kind, and those that were not received by cause.",
        [
            Column(capital(spaced(material.campaign.series)), weight=2),
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
    """What stations of a medium did with packets, over runs."""

    runs: int = 0
    tried: int = 0
    given_up: int = 0
    dropped: int = 0
    max_waiting: int = 0
    at_once: list[float] = field(default_factory=list)  # mean number of frames on the air

    def add(self, run: _Run) -> None:
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


def _packets(material: Material, name: str, runs: list[_Run]) -> Table:
    """Packets at stations by point; where there are too many points, by series."""
    campaign = material.campaign
    axes = list(
        dict.fromkeys(
            axis for axis in (campaign.panels, campaign.x, campaign.series) if axis is not None
        )
    )
    groups = _by(runs, axes)
    if len(groups) > MAX_POINTS:
        axes = [campaign.series]
        groups = _by(runs, axes)
    valid = material.table[material.table["status"] == "valid"]
    rows = []
    for values, packets in groups.items():
        mine = valid
        for axis, value in zip(axes, values, strict=True):
            mine = mine[mine[f"point.{axis}"] == value]
        retries = mean_of_runs(mine, "retries_per_hop") if "retries_per_hop" in mine else None
        share = packets.given_up / packets.tried if packets.tried else 0.0
        rows.append(
            [
                *values,
                f"{packets.tried:,}",
                f"{packets.given_up:,}",
                f"{share:.2%}",
                written(retries, digits=2),
                f"{packets.dropped:,}",
                str(packets.max_waiting),
                written(mean(np.array(packets.at_once)), digits=2),
            ]
        )
    return Table(
        f"Packets at the stations of medium {name}. Tried: delivered or given up; a packet counts "
        "at each station that tried to send it. Frames at once: how many were on the air, mean "
        "over the time of the traffic.",
        [
            *(Column(capital(spaced(axis)), weight=1) for axis in axes),
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


def _by(runs: list[_Run], axes: list[str]) -> dict[tuple[str, ...], _Packets]:
    groups: dict[tuple[str, ...], _Packets] = {}
    for run in runs:
        key = tuple(run.plan.point[axis] for axis in axes)
        groups.setdefault(key, _Packets()).add(run)
    return groups


def _series(material: Material) -> list[str]:
    campaign = material.campaign
    return list(dict.fromkeys(run.point[campaign.series] for run in campaign.runs))


# -- stations -------------------------------------------------------------------------------------


def _stations(material: Material, medium: MediumPlan) -> Iterator[Block]:
    """Airtime over time of chosen runs, and means of all runs at the same point."""
    chosen = chosen_runs(material)
    if not chosen:
        return
    here = chosen[len(chosen) // 2]
    where = here.where(material.summary)
    shown = []
    for series, run_id in here.runs[:MAX_RUNS]:
        air = None if run_id is None else _air(material, run_id)
        if air is not None and run_id is not None:
            shown.append(_airtime(series, material.plans[run_id], medium, air))
    if not shown:
        yield Paragraph("Frames were not kept, so nothing is shown of airtime over time.")
        return
    width_s = shown[0].edges_s[1] - shown[0].edges_s[0]
    yield Figure(
        f"airtime-{medium.name}",
        figures.svg(figures.airtime(shown)),
        f"Airtime at {where}: the share of each window of {width_s:.2g} s in which a station of "
        f"medium {medium.name} was sending. At the right its mean over the measurement interval. "
        "The runs are those shown over time.",
        f"Heat maps of airtime at {where}. {_alt(shown)}",
    )
    names = [each.node for each in medium.stations]
    means = list(_means(material, medium, here.panel.label, here.x))
    yield Figure(
        f"stations-{medium.name}",
        figures.svg(figures.stations(names, means)),
        f"Stations of medium {medium.name} at {where}: airtime, attempts beside the first per "
        "packet, and packets given up; means over valid runs during the measurement interval.",
        f"Stations at {where}. {_alt_of_means(names, means)}",
    )


def _air(material: Material, run_id: str) -> Air | None:
    directory = material.directory(run_id)
    if not (directory / FRAMES).exists():
        return None
    return Air.read(directory, material.plans[run_id])


def _airtime(series: str, plan: RunPlan, medium: MediumPlan, air: Air) -> Airtime:
    timeline, measure = plan.timeline, plan.measure
    edges_s = np.linspace(timeline.traffic_s, timeline.traffic_end_s, WINDOWS + 1)
    edges_ns = np.rint(edges_s * 1e9).astype(np.int64)
    inside_ns = np.array([measure.start_s * 1e9, measure.end_s * 1e9]).astype(np.int64)
    nodes = [each.node for each in medium.stations]
    return Airtime(
        series,
        edges_s - timeline.traffic_s,
        [(node, air.on_air(medium.name, node, edges_ns)) for node in nodes],
        [float(air.on_air(medium.name, node, inside_ns)[0]) for node in nodes],
    )


def _means(material: Material, medium: MediumPlan, panel: str, x: str) -> Iterator[StationMeans]:
    campaign = material.campaign
    for series in _series(material):
        found: list[dict[str, StationAir]] = []
        for run_id in _valid(material):
            plan = material.plans[run_id]
            point = plan.point
            is_here = point[campaign.series] == series and x in ("", point[campaign.x])
            if campaign.panels is not None:
                is_here = is_here and point[campaign.panels] == panel
            air = _air(material, run_id) if is_here else None
            if air is not None:
                begin, end = (round(at * 1e9) for at in (plan.measure.start_s, plan.measure.end_s))
                found.append(air.stations(medium, begin, end))
        if found:
            nodes = [each.node for each in medium.stations]
            yield StationMeans(
                series,
                *(
                    [_mean([run[node] for run in found], name) for node in nodes]
                    for name in ("airtime", "retries", "given_up")
                ),
            )


def _mean(stations: list[StationAir], name: str) -> Mean | None:
    values = pd.Series([getattr(each, name) for each in stations], dtype="float64").dropna()
    return mean(values.to_numpy()) if len(values) else None


def _valid(material: Material) -> list[str]:
    return [run for run in material.plans if material.verdicts[run].status == "valid"]


def _alt(shown: list[Airtime]) -> str:
    return " ".join(
        f"{run.title}: "
        + ", ".join(
            f"{name} {share:.1%}" for (name, _), share in zip(run.shares, run.means, strict=True)
        )
        + "."
        for run in shown
    )


def _alt_of_means(names: list[str], means: list[StationMeans]) -> str:
    said = []
    for each in means:
        parts = [
            f"{name} {NONE if air is None else f'{air.value:.1%}'} airtime, "
            f"{NONE if retries is None else f'{retries.value:.2f}'} retries, "
            f"{NONE if lost is None else f'{lost.value:.2%}'} given up"
            for name, air, retries, lost in zip(
                names, each.airtime, each.retries, each.given_up, strict=True
            )
        ]
        said.append(f"{each.series}: {'; '.join(parts)}.")
    return " ".join(said)
