# SPDX-License-Identifier: Apache-2.0
"""The command `nagi plan`: what `nagi run` would do, summed up."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from nagi_contracts.impairments.queues import QueuePlan, name_disciplines
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Campaign
from nagi_contracts.units import Bitrate, Duration, in_bytes, in_time
from rich.table import Table

from nagi.campaign.campaign import CampaignDirectory, Selection
from nagi.campaign.collection import is_to_do, verdict_of
from nagi.campaign.estimate import (
    MORE_DISK,
    Disk,
    disk_needed,
    free_disk,
    seconds_in,
    time_needed,
)
from nagi.campaign.stray import describe_stray
from nagi.labs import virtual
from nagi.scratch import scratch
from nagi.terminal.console import Json, complain, out_console, write_json, write_line
from nagi.terminal.options import Inventory, Lab, Only, Out, Quick, Spec, Switch, Variant
from nagi.terminal.selecting import (
    Wanted,
    choose_lab,
    is_root,
    links_lacking,
    problems_with,
    site_of,
)
from nagi.terminal.site import Site

_SHOWN = 6  # values of an axis


def plan(
    spec: Spec,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    lab: Lab = None,
    inventory: Inventory = None,
    switch: Switch = "nagi",
    out: Out = None,
    all_: Annotated[bool, typer.Option("--all", help="List every point")] = False,
    json_: Json = False,
) -> None:
    """Show what would be run, the time and disk it takes and what the lab lacks; run nothing."""
    wanted = Wanted.read(spec, quick, variant, only, switch)
    # To plan for the netns lab needs no root.
    choice = choose_lab(lab, inventory, has_root=True)
    if choice.why_not_virtual:
        what = "planned for the netns lab" + ("" if is_root() else ", which needs root")
        complain(f"{what}, as the virtual lab cannot be used: {choice.why_not_virtual}")
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(scratch())
        site = site_of(choice.name, inventory, wanted.points, directory, _never, cleanup)
        selection = wanted.select(site)
        if site.name == virtual.NAME:  # whether real hosts fit, `nagi run` asks them
            site.require_fit(selection.available())
        estimate = Estimate.of(selection, site, out or wanted.default_out)
    if json_:
        write_json(_as_data(wanted, selection, site, estimate))
        return
    if all_:
        out_console.print(_points(selection, site))
    else:
        write_line(f"{wanted.name}: {selection.experiment.title}\n")
        out_console.print(_axes(selection))
        out_console.print()
        out_console.print(_flows(selection.plans))
        if any(each.media for each in selection.plans):
            out_console.print()
            out_console.print(_media(selection.plans))
    for line in ("", *estimate.in_words(site.name)):
        write_line(line)
    for line in _done_in_words(selection, site, out or wanted.default_out):
        write_line(line)
    for name, found in selection.unavailable.items():
        write_line(f"{name} is not available: {found.reason}; {found.cure}")
    for _, lacking in links_lacking(selection):
        write_line(str(lacking))


@dataclass(frozen=True)
class Estimate:
    """What there is to run, and what it takes of time and disk: at least and, as `until` may add
    repeats, at most."""

    out: Path
    jobs: int
    runs: tuple[int, int]
    possible: tuple[int, int]
    seconds: tuple[float, float]
    disk: tuple[Disk, Disk]
    free_bytes: int

    @classmethod
    def of(cls, selection: Selection, site: Site, out: Path) -> Estimate:
        available, keep = selection.available(), selection.experiment.keep
        until = selection.experiment.until
        maximum = available
        if until is not None:
            # Repeats differ in their seeds only.
            maximum = [
                plans[0]
                for plans in selection.by_point()
                if not selection.missing(plans[0])
                for _ in range(until.at_most)
            ]
        all_runs = len(selection.plans)
        jobs = site.jobs(available)
        return cls(
            out,
            jobs,
            (all_runs, until.at_most * len(selection.points) if until else all_runs),
            (len(available), len(maximum)),
            (time_needed(available, jobs, site.name), time_needed(maximum, jobs, site.name)),
            (
                disk_needed(available, keep, jobs, site.name),
                disk_needed(maximum, keep, jobs, site.name),
            ),
            free_disk(out),
        )

    def in_words(self, lab: str) -> list[str]:
        runs, possible = _range(*map(str, self.runs)), _range(*map(str, self.possible))
        lines = [
            f"{runs} {'run' if runs == '1' else 'runs'}, {possible} of them possible in the {lab} "
            f"lab; about {_range(*map(in_time, self.seconds))} with {self.jobs} side by side",
            f"disk: about {_range(*(each.in_words() for each in self.disk))}; "
            f"{in_bytes(self.free_bytes)} are free at {self.out}",
        ]
        minimum, maximum = self._disk_at_most()
        if minimum > self.free_bytes:
            lines.append(f"this does not fit: {MORE_DISK}")
        elif maximum > self.free_bytes:
            lines.append(f"this may not fit, if points take many repeats: {MORE_DISK}")
        return lines

    def _disk_at_most(self) -> tuple[int, int]:
        minimum, maximum = self.disk
        return minimum.at_most, maximum.at_most

    def as_data(self) -> dict[str, Any]:
        minimum, maximum = self.disk

        def both(pair: tuple[float, float]) -> dict[str, float]:
            return {"min": pair[0], "max": pair[1]}

        return {
            "results": str(self.out),
            "jobs": self.jobs,
            "runs": both(self.runs),
            "possible_runs": both(self.possible),
            "time_s": both(self.seconds),
            "disk_bytes": both(self._disk_at_most()),
            "kept_bytes": both((minimum.kept, maximum.kept)),
            "free_bytes": self.free_bytes,
        }


def _axes(selection: Selection) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("axis", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("values", overflow="fold")
    for axis, values in _values(selection).items():
        shown = values
        if len(values) > _SHOWN:
            shown = [*values[: _SHOWN - 2], "...", values[-1]]
        table.add_row(axis, str(len(values)), ", ".join(shown))
    until, repeats = selection.experiment.until, selection.experiment.repeats
    if until is not None:
        goal = f"until {until.metric} is known to ±{until.halfwidth:g}"
        table.add_row("repeats", _range(str(repeats), str(until.at_most)), goal)
    elif repeats > 1:
        table.add_row("repeats", str(repeats), "of each point")
    return table


def _values(selection: Selection) -> dict[str, list[str]]:
    """Axis -> its values in the runs, in the file's order."""
    points = selection.points
    return {
        axis: list(dict.fromkeys(point.values[axis] for point in points))
        for axis in points[0].values
    }


def _flows(plans: list[RunPlan]) -> Table:
    """A row a flow; what differs from point to point as a range."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("flow", "path", "base RTT", "bottleneck", "queue there"):
        table.add_column(head, overflow="fold", no_wrap=head not in ("flow", "path"))
    for name, found in _by_flow(plans).items():
        first = found[0][1]
        table.add_row(
            f"{name} (background)" if first.background else name,
            _path(*found[0]),
            _span([round(flow.base_rtt_s * 1e9) for _, flow in found], Duration),
            _span([flow.bottleneck_bps for _, flow in found], Bitrate),
            _queues([_queue(plan, flow) for plan, flow in found]),
        )
    return table


def _media(plans: list[RunPlan]) -> Table:
    """A row a medium; what differs from point to point as a range."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("medium", "PHY", "data rate", "stations", "in reach of", "queue"):
        table.add_column(head, no_wrap=True)
    found: dict[str, list[MediumPlan]] = {}
    for each in plans:
        for medium in each.media:
            found.setdefault(medium.name, []).append(medium)
    for name, media in found.items():
        counts = [len(medium.stations) for medium in media]
        near = [len(others) for medium in _once(media) for others in medium.in_reach().values()]
        table.add_row(
            name,
            ", ".join(dict.fromkeys(medium.phy for medium in media)),
            _span([medium.data_rate_bps for medium in media], Bitrate),
            _range(str(min(counts)), str(max(counts))),
            _range(str(min(near)), str(max(near))),
            _queues([medium.queue for medium in media]),
        )
    return table


def _once(media: list[MediumPlan]) -> list[MediumPlan]:
    """One of those whose stations are the same objects: repeats share them."""
    return list({id(medium): medium for medium in media}.values())


def _by_flow(plans: list[RunPlan]) -> dict[str, list[tuple[RunPlan, FlowPlan]]]:
    found: dict[str, list[tuple[RunPlan, FlowPlan]]] = {}
    for each in plans:
        for flow in each.flows:
            found.setdefault(flow.name, []).append((each, flow))
    return found


def _path(plan: RunPlan, flow: FlowPlan) -> str:
    """`S -(wired)- N -(air)- A - B`: of hops over a medium one names it."""
    words = [flow.sender]
    before = None
    for direction in flow.path:
        goes_on = direction.is_hop and direction.link == before
        words += ["-" if goes_on else f"-({direction.link})-", plan.receiver_of(direction)]
        before = direction.link
    return " ".join(words)


def _queue(plan: RunPlan, flow: FlowPlan) -> QueuePlan | None:
    """The queue at the bottleneck."""

    def rate(direction: LinkDirection) -> float:
        bps = plan.channel(direction).mean_rate_bps
        return float("inf") if bps is None else bps

    return plan.channel(min(flow.path, key=rate)).queue


def _queues(queues: list[QueuePlan | None]) -> str:
    packets = [queue.packets for queue in queues if queue and queue.packets is not None]
    sizes = [queue.bytes for queue in queues if queue and queue.bytes is not None]
    found = []
    if packets:
        found.append(f"{_range(str(min(packets)), str(max(packets)))} packets")
    if sizes:
        found.append(_range(in_bytes(min(sizes)), in_bytes(max(sizes))))
    if None in queues:
        found.append("no limit")
    return " or ".join(found) + name_disciplines(queues)


def _span(values: list[int], kind: type[Bitrate] | type[Duration]) -> str:
    return _range(str(kind(min(values))), str(kind(max(values))))


def _points(selection: Selection, site: Site) -> Table:
    """A row a point."""
    table = Table(show_edge=False, pad_edge=False)
    for axis in selection.points[0].values:
        table.add_column(axis)
    for head in ("runs", "seconds"):
        table.add_column(head, justify="right")
    table.add_column("first run, or why there is none")
    until, lasts = selection.experiment.until, seconds_in(site.name)
    for plans in selection.by_point():
        first, minimum = plans[0], len(plans)
        maximum = until.at_most if until else minimum
        missing = selection.missing(first)
        table.add_row(
            *first.point.values(),
            _range(str(minimum), str(maximum)),
            _range(f"{lasts(first) * minimum:.1f}", f"{lasts(first) * maximum:.1f}"),
            f"{missing[0]} is not available" if missing else first.run_id,
            style="dim" if missing else None,
        )
    return table


def _as_data(
    wanted: Wanted, selection: Selection, site: Site, estimate: Estimate
) -> dict[str, Any]:
    lasts = seconds_in(site.name)
    return {
        "experiment": selection.experiment.name,
        "variant": wanted.variant,
        "title": selection.experiment.title,
        "lab": site.name,
        "build": selection.build.model_dump(mode="json"),
        **estimate.as_data(),
        "axes": _values(selection),
        "problems": [str(each) for each in problems_with(selection)],
        "plans": [
            {
                "run_id": each.run_id,
                "point": each.point,
                "repeat": each.repeat,
                "time_s": round(lasts(each), 3),
                "not_available": selection.missing(each),
                "flows": [
                    {
                        "name": flow.name,
                        "scheme": flow.scheme,
                        "background": flow.background,
                        "path": [direction.link for direction in flow.path],
                        "nodes": [flow.sender, *map(each.receiver_of, flow.path)],
                        "base_rtt_s": flow.base_rtt_s,
                        "bottleneck_bps": flow.bottleneck_bps,
                        "queue_packets": queue.packets if queue else None,
                        "queue_bytes": queue.bytes if queue else None,
                    }
                    for flow in each.flows
                    for queue in [_queue(each, flow)]
                ],
            }
            for each in selection.plans
        ],
    }


def _done_in_words(selection: Selection, site: Site, out: Path) -> list[str]:
    """Describe how many runs are done in the campaign's directory, and how many are left."""
    directory = CampaignDirectory(out)
    available = selection.available()
    verdicts = {plan.run_id: verdict_of(directory.runs, plan.run_id) for plan in available}
    counts = Counter(verdict.status for verdict in verdicts.values() if verdict is not None)
    if not counts:
        return []
    left = [plan for plan in available if is_to_do(verdicts[plan.run_id])]
    states = ", ".join(f"{counts[state]} {state}" for state in ("valid", "invalid", "failed"))
    lines = [f"done there: {states}; to run: {len(left)}"]
    if left:
        lasts = time_needed(left, site.jobs(left), site.name)
        lines[0] += f", about {in_time(lasts)}"
    if directory.campaign.exists():
        lines.append(describe_stray(directory, Campaign.read(directory.campaign)))
    return [line for line in lines if line]


def _range(minimum: str, maximum: str) -> str:
    return minimum if minimum == maximum else f"{minimum} to {maximum}"


def _never() -> bool:
    return False
