# SPDX-License-Identifier: Apache-2.0
"""Repeats points until the confidence interval of a metric is narrow enough: `until`.

A point is evaluated whenever all its runs have ended. If the 95 % interval over its valid runs is
wider than `until` requires, runs are added: as many as the interval would need if the standard
deviation stayed the same. The runs of the point are at most doubled at once, and never exceed
`at_most`. Decisions depend only on the results, so a resumed campaign makes the same decisions.

This rule stops when an interval happens to be narrow, so intervals contain the true value less
often than in 95 % of cases. For normal values the coverage is 91 to 94 % with at least 3 repeats,
93 to 95 % with 5, 94 to 95 % with 10 (Chow and Robbins, 1965, for the limit).

Statistics are imported where they are used, because most campaigns have no `until`, and importing
pandas takes long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Until
from nagi_contracts.results import Metrics

from nagi.campaign.run_directory import read_verdict
from nagi.campaign.selection import Selection
from nagi.plan.planner import plan_runs


@dataclass(frozen=True)
class PointWidth:
    """The number of runs of a point, and the half-width of its confidence interval."""

    point: dict[str, str]
    runs: int
    valid: int  # the number of valid runs
    halfwidth: float  # NaN for fewer than two valid runs


def add_repeats(selection: Selection, runs: Path) -> Selection:
    """Return the selection with the repeats that `until` requires; unchanged without `until`.

    A point gets no repeats while one of its runs has no verdict.

    Args:
        selection: The runs of the campaign.
        runs: The directory of all run directories.
    """
    until = selection.experiment.until
    if until is None:
        return selection
    plans = []
    for point, point_plans in zip(selection.points, selection.group_by_point(), strict=True):
        # An added repeat may have a result already, from before the campaign was interrupted.
        while (target := _choose_target(point_plans, runs, until)) > len(point_plans):
            added = plan_runs(
                point, selection.variant, range(len(point_plans), target), switch=selection.switch
            )
            point_plans = [*point_plans, *(plan.with_ids(selection.build.id) for plan in added)]
        plans += point_plans
    return replace(selection, plans=plans) if len(plans) > len(selection.plans) else selection


def list_wide_points(selection: Selection, runs: Path) -> list[PointWidth]:
    """Return the points whose interval is wider than `until` requires, or cannot be computed.

    Points that this machine cannot execute are left out. The list is empty without `until`.
    """
    until = selection.experiment.until
    if until is None:
        return []
    from nagi_reports.statistics import halfwidth

    widths = []
    for point, point_plans in zip(selection.points, selection.group_by_point(), strict=True):
        if not selection.list_missing(point_plans[0]):
            values = _read_metric(point_plans, runs, until.metric)
            point_halfwidth = halfwidth(values)
            if not point_halfwidth <= until.halfwidth:
                widths.append(
                    PointWidth(point.values, len(point_plans), len(values), point_halfwidth)
                )
    return widths


def describe_wide_points(selection: Selection, runs: Path) -> list[str]:
    """Return one line for each point of list_wide_points(): its interval, and the required one."""
    until = selection.experiment.until
    return [
        f"{', '.join(width.point.values())}: the interval of {until.metric} is "
        + ("not known" if math.isnan(width.halfwidth) else f"±{width.halfwidth:.3g}")
        + f" after {width.runs} runs ({width.valid} valid); `until` requires ±{until.halfwidth:g}"
        for width in list_wide_points(selection, runs)
        if until is not None
    ]


def choose_run_count(values: list[float], run_count: int, until: Until) -> int:
    """Return the number of runs that a point should have: at least `run_count`.

    Args:
        values: The metric of the valid runs.
        run_count: The number of runs that the point has.
        until: The required half-width, and the maximum number of runs.
    """
    from nagi_reports.statistics import count_runs_needed, halfwidth

    if run_count >= until.at_most or halfwidth(values) <= until.halfwidth:
        return run_count
    missing = 1
    if len(values) > 1:
        missing = count_runs_needed(values, until.halfwidth, until.at_most) - len(values)
    return min(run_count + max(1, min(missing, run_count)), until.at_most)


def _choose_target(plans: list[RunPlan], runs: Path, until: Until) -> int:
    """Return the number of runs that a point should have.

    Return the current number if one of its runs has no verdict yet.
    """
    if any(read_verdict(runs, plan.run_id) is None for plan in plans):
        return len(plans)
    return choose_run_count(_read_metric(plans, runs, until.metric), len(plans), until)


def _read_metric(plans: list[RunPlan], runs: Path, metric: str) -> list[float]:
    """Return the metric of each valid run: its mean over those flows that are not cross traffic.

    Runs that are not valid, or lack the metric, are left out.
    """
    values = []
    for plan in plans:
        verdict = read_verdict(runs, plan.run_id)
        if verdict is None or verdict.status != "valid":
            continue
        try:
            rows = Metrics.read(runs / plan.run_id / "metrics.json").rows
        except InputError:
            continue  # not computed yet
        foreground = [row for row in rows if not row.background]
        flow_values = [value for row in foreground if (value := getattr(row, metric)) is not None]
        if flow_values and not math.isnan(sum(flow_values)):
            values.append(sum(flow_values) / len(flow_values))
    return values
