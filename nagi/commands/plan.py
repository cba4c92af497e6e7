# SPDX-License-Identifier: Apache-2.0
"""Summarises the runs that `nagi run` would execute: `nagi plan`."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nagi_contracts.impairments.queues import QueuePlan, name_disciplines
from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import FlowPlan, LinkDirection, RunPlan
from nagi_contracts.records import Campaign
from nagi_contracts.units import Bitrate, Duration, format_bytes, format_time
from rich.table import Table

from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.estimate import (
    MORE_DISK,
    Disk,
    estimate_disk,
    estimate_time,
    make_time_estimator,
    read_free_disk,
)
from nagi.campaign.pace import read_paces
from nagi.campaign.run_directory import needs_run, read_verdict
from nagi.campaign.selection import Selection
from nagi.campaign.stray import describe_stray
from nagi.labs.names import VIRTUAL
from nagi.scratch import make_scratch
from nagi.terminal.console import complain, out_console, write_json, write_line
from nagi.terminal.selecting import (
    RequestedExperiment,
    choose_lab,
    is_root,
    list_lacking_links,
    list_problems,
    open_site,
)
from nagi.terminal.site import Site

_MAX_VALUES = 6  # values of an axis that are shown


def show_plan(
    requested: RequestedExperiment,
    lab: str | None,
    inventory: Path | None,
    out: Path | None,
    *,
    all_: bool,
    json_: bool,
) -> None:
    """Print the planned runs, their time and disk space, and what the lab lacks.

    The hosts of an inventory are inspected, but whether they are fit for runs is not checked.

    Args:
        requested: The experiment.
        lab: The option --lab.
        inventory: The option -i.
        out: The directory for results, or None for the default.
        all_: Whether to print a table of all points in place of the tables of axes and flows.
        json_: Whether to print one JSON object in place of all text.

    Raises:
        InputError: Options contradict each other, or the experiment cannot be planned for the lab.
    """
    # Planning for the netns lab needs no root.
    choice = choose_lab(lab, inventory, has_root=True)
    if choice.why_not_virtual:
        message = "planned for the netns lab" + ("" if is_root() else ", which needs root")
        complain(f"{message}, as the virtual lab cannot be used: {choice.why_not_virtual}")
    with ExitStack() as cleanup:
        directory = cleanup.enter_context(make_scratch())
        site = open_site(
            choice.name, inventory, requested.points, directory, _is_interrupted, cleanup
        )
        selection = requested.select(site)
        if site.name == VIRTUAL:  # only `nagi run` checks the fitness of real hosts
            site.require_fit(selection.list_available())
        estimate = Estimate.from_selection(selection, site, out or requested.default_out)
    if json_:
        write_json(_to_data(requested, selection, site, estimate))
        return
    if all_:
        out_console.print(_make_points_table(selection, site))
    else:
        write_line(f"{requested.name}: {selection.experiment.title}\n")
        out_console.print(_make_axes_table(selection))
        out_console.print()
        out_console.print(_make_flows_table(selection.plans))
        if any(run_plan.media for run_plan in selection.plans):
            out_console.print()
            out_console.print(_make_media_table(selection.plans))
    for line in ("", *estimate.describe(site.name)):
        write_line(line)
    for line in _describe_done(selection, site, out or requested.default_out):
        write_line(line)
    for name, availability in selection.unavailable.items():
        write_line(f"{name} is not available: {availability.reason}; {availability.cure}")
    for _, problem in list_lacking_links(selection):
        write_line(str(problem))


@dataclass(frozen=True)
class Estimate:
    """The number of runs, and their time and disk space.

    Pairs are minimum and maximum, which differ if the experiment's `until` may add repeats.

    Attributes:
        out: The directory of results.
        jobs: The number of runs that are executed side by side.
        runs: The number of all runs.
        possible: The number of runs that the lab can execute.
        seconds: The wall time of the possible runs, of which `jobs` run side by side.
        disk: The disk space of the possible runs.
        free_bytes: The free disk space at `out`.
    """

    out: Path
    jobs: int
    runs: tuple[int, int]
    possible: tuple[int, int]
    seconds: tuple[float, float]
    disk: tuple[Disk, Disk]
    free_bytes: int

    @classmethod
    def from_selection(cls, selection: Selection, site: Site, out: Path) -> Estimate:
        """Estimate number, time and disk space of the runs of a selection.

        Args:
            selection: The runs.
            site: The machines that would execute the runs.
            out: The directory of results.
        """
        available, keep = selection.list_available(), selection.experiment.keep
        goal = selection.experiment.until
        most_plans = available
        if goal is not None:
            # Repeats differ in their seeds only.
            most_plans = [
                plans[0]
                for plans in selection.group_by_point()
                if not selection.list_missing(plans[0])
                for _ in range(goal.at_most)
            ]
        run_count = len(selection.plans)
        jobs, paces = site.count_jobs(available), read_paces()

        def estimate(plans: list[RunPlan]) -> tuple[float, Disk]:
            time_s = estimate_time(plans, jobs, site.name, paces)
            return time_s, estimate_disk(plans, keep, jobs, site.name, paces)

        least_s, least_disk = estimate(available)
        most_s, most_disk = (least_s, least_disk) if goal is None else estimate(most_plans)
        return cls(
            out,
            jobs,
            (run_count, goal.at_most * len(selection.points) if goal else run_count),
            (len(available), len(most_plans)),
            (least_s, most_s),
            (least_disk, most_disk),
            read_free_disk(out),
        )

    def describe(self, lab: str) -> list[str]:
        """Return lines for people that describe the estimate, and warn if the disk is too small.

        Args:
            lab: The name of the lab.
        """
        runs, possible = (
            _format_range(*map(str, self.runs)),
            _format_range(*map(str, self.possible)),
        )
        lines = [
            f"{runs} {'run' if runs == '1' else 'runs'}, {possible} of them possible in the {lab} "
            f"lab; about {_format_range(*map(format_time, self.seconds))} with {self.jobs} side by "
            "side",
            f"disk: about {_format_range(*(disk.describe() for disk in self.disk))}; "
            f"{format_bytes(self.free_bytes)} are free at {self.out}",
        ]
        minimum, maximum = self._get_peak_disk()
        if minimum > self.free_bytes:
            lines.append(f"this does not fit: {MORE_DISK}")
        elif maximum > self.free_bytes:
            lines.append(f"this may not fit, if points take many repeats: {MORE_DISK}")
        return lines

    def _get_peak_disk(self) -> tuple[int, int]:
        """Return the peak use of the disk during the campaign, in bytes.

        The pair is the peak with the minimum and with the maximum number of runs.
        """
        minimum, maximum = self.disk
        return minimum.peak, maximum.peak

    def to_data(self) -> dict[str, Any]:
        """Return the part of the command's JSON object (--json) that contains the estimate."""
        minimum, maximum = self.disk

        def to_object(pair: tuple[float, float]) -> dict[str, float]:
            return {"min": pair[0], "max": pair[1]}

        return {
            "results": str(self.out),
            "jobs": self.jobs,
            "runs": to_object(self.runs),
            "possible_runs": to_object(self.possible),
            "time_s": to_object(self.seconds),
            "disk_bytes": to_object(self._get_peak_disk()),
            "kept_bytes": to_object((minimum.kept, maximum.kept)),
            "free_bytes": self.free_bytes,
        }


def _make_axes_table(selection: Selection) -> Table:
    """Make a table with one row per axis, and a row for repeats if points have several.

    Of an axis with more than _MAX_VALUES values, the first ones and the last are shown.
    """
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("axis", no_wrap=True)
    table.add_column("", justify="right")
    table.add_column("values", overflow="fold")
    for axis, values in _list_axis_values(selection).items():
        shown_values = values
        if len(values) > _MAX_VALUES:
            shown_values = [*values[: _MAX_VALUES - 2], "...", values[-1]]
        table.add_row(axis, str(len(values)), ", ".join(shown_values))
    until, repeats = selection.experiment.until, selection.experiment.repeats
    if until is not None:
        goal = f"until {until.metric} is known to ±{until.halfwidth:g}"
        table.add_row("repeats", _format_range(str(repeats), str(until.at_most)), goal)
    elif repeats > 1:
        table.add_row("repeats", str(repeats), "of each point")
    return table


def _list_axis_values(selection: Selection) -> dict[str, list[str]]:
    """Return axis -> values of the planned points, in the order of the experiment file."""
    points = selection.points
    return {
        axis: list(dict.fromkeys(point.values[axis] for point in points))
        for axis in points[0].values
    }


def _make_flows_table(plans: list[RunPlan]) -> Table:
    """Make a table with one row per flow. Values that differ between points become ranges."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("flow", "path", "base RTT", "bottleneck", "bottleneck queue"):
        table.add_column(head, overflow="fold", no_wrap=head not in ("flow", "path"))
    for name, plans_and_flows in _group_by_flow(plans).items():
        first_plan, first_flow = plans_and_flows[0]
        table.add_row(
            f"{name} (background)" if first_flow.background else name,
            _describe_path(first_plan, first_flow),
            _format_span([round(flow.base_rtt_s * 1e9) for _, flow in plans_and_flows], Duration),
            _format_span([flow.bottleneck_bps for _, flow in plans_and_flows], Bitrate),
            _describe_queues([_get_bottleneck_queue(plan, flow) for plan, flow in plans_and_flows]),
        )
    return table


def _make_media_table(plans: list[RunPlan]) -> Table:
    """Make a table with one row per medium. Values that differ between points become ranges."""
    table = Table(show_edge=False, pad_edge=False)
    for head in ("medium", "PHY", "data rate", "stations", "in reach of", "queue"):
        table.add_column(head, no_wrap=True)
    media_by_name: dict[str, list[MediumPlan]] = {}
    for run_plan in plans:
        for medium in run_plan.media:
            media_by_name.setdefault(medium.name, []).append(medium)
    for name, media in media_by_name.items():
        counts = [len(medium.stations) for medium in media]
        neighbour_counts = [
            len(neighbours)
            for medium in _list_distinct(media)
            for neighbours in medium.list_neighbours().values()
        ]
        table.add_row(
            name,
            ", ".join(dict.fromkeys(medium.phy for medium in media)),
            _format_span([medium.data_rate_bps for medium in media], Bitrate),
            _format_range(str(min(counts)), str(max(counts))),
            _format_range(str(min(neighbour_counts)), str(max(neighbour_counts))),
            _describe_queues([medium.queue for medium in media]),
        )
    return table


def _list_distinct(media: list[MediumPlan]) -> list[MediumPlan]:
    """Return each object in `media` once, because repeats of a point share one object."""
    return list({id(medium): medium for medium in media}.values())


def _group_by_flow(plans: list[RunPlan]) -> dict[str, list[tuple[RunPlan, FlowPlan]]]:
    """Return name of a flow -> each plan that has the flow, with the flow in this plan."""
    groups: dict[str, list[tuple[RunPlan, FlowPlan]]] = {}
    for run_plan in plans:
        for flow in run_plan.flows:
            groups.setdefault(flow.name, []).append((run_plan, flow))
    return groups


def _describe_path(plan: RunPlan, flow: FlowPlan) -> str:
    """Return a path as `S -(wired)- N -(air)- A - B`. A medium is named at its first hop only."""
    words = [flow.sender]
    earlier_link = None
    for direction in flow.path:
        is_same_medium = direction.is_hop and direction.link == earlier_link
        words += ["-" if is_same_medium else f"-({direction.link})-", plan.receiver_of(direction)]
        earlier_link = direction.link
    return " ".join(words)


def _get_bottleneck_queue(plan: RunPlan, flow: FlowPlan) -> QueuePlan | None:
    """Return the queue at the bottleneck of a flow, or None if the queue has no limit.

    The bottleneck is the first hop with the smallest mean rate.
    """

    def get_rate(direction: LinkDirection) -> float:
        bps = plan.channel(direction).mean_rate_bps
        return float("inf") if bps is None else bps

    return plan.channel(min(flow.path, key=get_rate)).queue


def _describe_queues(queues: list[QueuePlan | None]) -> str:
    """Return a text with the range of the queues' limits, and with the queues' disciplines."""
    packets = [queue.packets for queue in queues if queue and queue.packets is not None]
    sizes = [queue.bytes for queue in queues if queue and queue.bytes is not None]
    texts = []
    if packets:
        texts.append(f"{_format_range(str(min(packets)), str(max(packets)))} packets")
    if sizes:
        texts.append(_format_range(format_bytes(min(sizes)), format_bytes(max(sizes))))
    if None in queues:
        texts.append("no limit")
    return " or ".join(texts) + name_disciplines(queues)


def _format_span(values: list[int], kind: type[Bitrate] | type[Duration]) -> str:
    """Return the range of values in the base unit of `kind`, as text with units."""
    return _format_range(str(kind(min(values))), str(kind(max(values))))


def _make_points_table(selection: Selection, site: Site) -> Table:
    """Make a table with one row per point."""
    table = Table(show_edge=False, pad_edge=False)
    for axis in selection.points[0].values:
        table.add_column(axis)
    for head in ("runs", "seconds"):
        table.add_column(head, justify="right")
    table.add_column("first run, or what is missing")
    until, get_seconds = selection.experiment.until, make_time_estimator(site.name)
    for plans in selection.group_by_point():
        first_plan, min_runs = plans[0], len(plans)
        max_runs = until.at_most if until else min_runs
        run_s = get_seconds(first_plan)
        missing = selection.list_missing(first_plan)
        table.add_row(
            *first_plan.point.values(),
            _format_range(str(min_runs), str(max_runs)),
            _format_range(f"{run_s * min_runs:.1f}", f"{run_s * max_runs:.1f}"),
            f"{missing[0]} is not available" if missing else first_plan.run_id,
            style="dim" if missing else None,
        )
    return table


def _to_data(
    requested: RequestedExperiment, selection: Selection, site: Site, estimate: Estimate
) -> dict[str, Any]:
    """Return the object that `nagi plan --json` prints, without `schema_version`."""
    get_seconds = make_time_estimator(site.name)
    return {
        "experiment": selection.experiment.name,
        "variant": requested.variant,
        "title": selection.experiment.title,
        "lab": site.name,
        "build": selection.build.model_dump(mode="json"),
        **estimate.to_data(),
        "axes": _list_axis_values(selection),
        "problems": [str(problem) for problem in list_problems(selection)],
        "plans": [
            {
                "run_id": run_plan.run_id,
                "point": run_plan.point,
                "repeat": run_plan.repeat,
                "time_s": round(get_seconds(run_plan), 3),
                "not_available": selection.list_missing(run_plan),
                "flows": [
                    {
                        "name": flow.name,
                        "scheme": flow.scheme,
                        "background": flow.background,
                        "path": [direction.link for direction in flow.path],
                        "nodes": [flow.sender, *map(run_plan.receiver_of, flow.path)],
                        "base_rtt_s": flow.base_rtt_s,
                        "bottleneck_bps": flow.bottleneck_bps,
                        "queue_packets": queue.packets if queue else None,
                        "queue_bytes": queue.bytes if queue else None,
                    }
                    for flow in run_plan.flows
                    for queue in [_get_bottleneck_queue(run_plan, flow)]
                ],
            }
            for run_plan in selection.plans
        ],
    }


def _describe_done(selection: Selection, site: Site, out: Path) -> list[str]:
    """Describe the runs in the directory of results: done, to run, and not part of the campaign.

    Returns:
        Lines for people; none if no run is done.
    """
    directory = CampaignDirectory(out)
    available = selection.list_available()
    verdicts = {plan.run_id: read_verdict(directory.runs, plan.run_id) for plan in available}
    counts = Counter(verdict.status for verdict in verdicts.values() if verdict is not None)
    if not counts:
        return []
    pending = [plan for plan in available if needs_run(verdicts[plan.run_id])]
    states = ", ".join(f"{counts[state]} {state}" for state in ("valid", "invalid", "failed"))
    lines = [f"done in this directory: {states}; to run: {len(pending)}"]
    if pending:
        seconds = estimate_time(pending, site.count_jobs(pending), site.name)
        lines[0] += f", about {format_time(seconds)}"
    if directory.campaign_file.exists():
        lines.append(describe_stray(directory, Campaign.read(directory.campaign_file)))
    return [line for line in lines if line]


def _format_range(minimum: str, maximum: str) -> str:
    return minimum if minimum == maximum else f"{minimum} to {maximum}"


def _is_interrupted() -> bool:
    """Return False, because Ctrl-C ends `nagi plan` at once."""
    return False
