# SPDX-License-Identifier: Apache-2.0
"""Repeating points until the interval of a metric's mean is narrow enough: `until`.

A point is looked at whenever all its runs are over. If the 95 % interval over its valid runs is
wider than asked for, runs are added: as many as are needed if their standard deviation stays what
it is, at most as many as there are, at most `at_most` in all. What is decided follows from the
results alone, so a campaign that is resumed decides the same.

To stop when an interval happens to be narrow makes intervals hold the truth somewhat less often
than 95 %, the fewer repeats there are at least the more so. Of normal values: 91 to 94 % with 3
at least, 93 to 95 % with 5, 94 to 95 % with 10 (Chow and Robbins, 1965, for the limit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Until
from nagi_contracts.results import Metrics
from nagi_reports.statistics import count_runs_needed, halfwidth

from nagi.campaign.campaign import Selection
from nagi.campaign.collection import verdict_of
from nagi.plan.planner import plan_runs


@dataclass(frozen=True)
class Width:
    """How far a point has come."""

    point: dict[str, str]
    runs: int
    valid: int
    halfwidth: float  # nan for fewer than two valid runs


def add_repeats(selection: Selection, runs: Path) -> Selection:
    """The selection with the repeats that `until` asks for, given what is in `runs`; the same if
    there are none to add."""
    until = selection.experiment.until
    if until is None:
        return selection
    plans = []
    for point, mine in zip(selection.points, selection.by_point(), strict=True):
        # What is added may have been run already, before the campaign was stopped.
        while (wanted := _wanted(mine, runs, until)) > len(mine):
            added = plan_runs(
                point, selection.variant, range(len(mine), wanted), switch=selection.switch
            )
            mine = [*mine, *(plan.with_ids(selection.build.id) for plan in added)]
        plans += mine
    return replace(selection, plans=plans) if len(plans) > len(selection.plans) else selection


def too_wide(selection: Selection, runs: Path) -> list[Width]:
    """The points whose interval is wider than asked for."""
    until = selection.experiment.until
    if until is None:
        return []
    found = []
    for point, mine in zip(selection.points, selection.by_point(), strict=True):
        if not selection.missing(mine[0]):
            values = _values(mine, runs, until.metric)
            width = halfwidth(values)
            if not width <= until.halfwidth:
                found.append(Width(point.values, len(mine), len(values), width))
    return found


def too_wide_in_words(selection: Selection, runs: Path) -> list[str]:
    """A line for each of them."""
    until = selection.experiment.until
    return [
        f"{', '.join(each.point.values())}: the interval of {until.metric} is "
        + ("not known" if math.isnan(each.halfwidth) else f"±{each.halfwidth:.3g}")
        + f" after {each.runs} runs ({each.valid} valid); ±{until.halfwidth:g} was asked for"
        for each in too_wide(selection, runs)
        if until is not None
    ]


def next_count(values: list[float], runs: int, until: Until) -> int:
    """How many runs a point should have that has `runs`, the valid ones with these values."""
    if runs >= until.at_most or halfwidth(values) <= until.halfwidth:
        return runs
    missing = 1
    if len(values) > 1:
        missing = count_runs_needed(values, until.halfwidth, until.at_most) - len(values)
    return min(runs + max(1, min(missing, runs)), until.at_most)


def _wanted(plans: list[RunPlan], runs: Path, until: Until) -> int:
    if any(verdict_of(runs, plan.run_id) is None for plan in plans):
        return len(plans)
    return next_count(_values(plans, runs, until.metric), len(plans), until)


def _values(plans: list[RunPlan], runs: Path, metric: str) -> list[float]:
    """The metric of each valid run, the mean of its flows without cross traffic."""
    values = []
    for plan in plans:
        verdict = verdict_of(runs, plan.run_id)
        if verdict is None or verdict.status != "valid":
            continue
        try:
            rows = Metrics.read(runs / plan.run_id / "metrics.json").rows
        except InputError:
            continue  # not computed yet
        mine = [row for row in rows if not row.background]
        found = [value for row in mine if (value := getattr(row, metric)) is not None]
        if found and not math.isnan(sum(found)):
            values.append(sum(found) / len(found))
    return values
