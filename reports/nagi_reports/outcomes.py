# SPDX-License-Identifier: Apache-2.0
"""Evaluation of an experiment's statements (nagi_contracts/statements.py) with measured results.

A value is a mean with its 95 % interval. A statement holds at a point if it holds for the whole
interval, fails if it holds for no part of the interval, and is otherwise undecided. With a single
run there is no interval, so the value decides. A ratio is computed from pairs of runs that had the
same channel, if there are such pairs.

NAGI is the mean over those values of x that a statement selects and at which every series has a
valid run. The other parts of a report follow this rule too (summary.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from nagi_contracts.records import Campaign
from nagi_contracts.statements import Condition, Statement

from nagi_reports.statistics import RunValues, average_by_run, ratio_of_means
from nagi_reports.summary import Mean, average_runs, average_topologies, find_shared_positions

Result = Literal["confirmed", "confirmed in part", "not confirmed", "undecided", "not tested"]
Point = dict[str, str]


@dataclass(frozen=True)
class Finding:
    """The value of a statement at one point, and whether the statement holds there."""

    point: Point  # only the axes that distinguish the points of the statement
    value: Mean | None  # in the metric's unit, or a ratio; None without a valid run
    holds: bool | None  # whether the statement holds; None if undecided or not tested

    @property
    def tested(self) -> bool:
        """True if the statement was tested at this point."""
        return self.value is not None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a statement, with its findings."""

    statement: Statement
    result: Result
    findings: list[Finding]
    no_points_reason: str = ""  # why there was no point to test; empty if there was one
    topologies: int = 0  # number of topologies of a statement about NAGI; 0 for other metrics

    def list_tested(self) -> list[Finding]:
        """Return the findings at points with a value."""
        return [finding for finding in self.findings if finding.tested]

    def list_missing(self) -> list[Finding]:
        """Return the findings at points without a value."""
        return [finding for finding in self.findings if not finding.tested]


def evaluate_statements(campaign: Campaign, table: pd.DataFrame) -> list[Outcome]:
    """Return the outcomes of the campaign's statements, in their order; only valid runs count."""
    evaluation = _Evaluation(campaign, table)
    return [evaluation.evaluate(statement) for statement in campaign.statements]


def decide_result(statement: Statement, findings: list[Finding]) -> Result:
    """Return the result of a statement from its findings.

    A statement is for all points, for most points (more than half), or for some points (at least
    one). "confirmed" means that the statement holds at enough points, "not confirmed" that it fails
    at too many. "confirmed in part" means that it holds at all tested points, which are too few.
    "not tested" means that no point was tested. Otherwise, the statement is "undecided".
    """
    total = len(findings)
    tested = [finding for finding in findings if finding.tested]
    if not tested:
        return "not tested"
    required = {"all": total, "most": total // 2 + 1, "some": 1}[statement.for_]
    holding = sum(finding.holds is True for finding in tested)
    failing = sum(finding.holds is False for finding in tested)
    if holding >= required:
        return "confirmed"
    if total - failing < required:
        return "not confirmed"
    return "confirmed in part" if holding == len(tested) else "undecided"


class _Evaluation:
    """An evaluation of statements with the results of one campaign."""

    def __init__(self, campaign: Campaign, table: pd.DataFrame) -> None:
        self._x, self._series = campaign.x, campaign.series
        self._axes = {
            axis: list(dict.fromkeys(run.point[axis] for run in campaign.runs))
            for axis in campaign.runs[0].point
        }
        valid = table[table["status"] == "valid"]
        valid = valid.assign(agi_of_ceiling=valid["agi"] / valid["agi_ceiling"])
        self._rows = dict(list(valid.groupby([f"point.{axis}" for axis in self._axes])))
        self._means: dict[tuple[str, ...], Mean | None] = {}

    def evaluate(self, statement: Statement) -> Outcome:
        """Return the outcome of a statement.

        The result is "not tested" if no run has the values that the statement selects.
        """
        values_by_axis = {
            axis: self._select_values(axis, statement.where.get(axis)) for axis in self._axes
        }
        empty = [axis for axis, values in values_by_axis.items() if not values]
        if empty:
            reason = "; ".join(f"no run has {axis} {statement.where[axis]}" for axis in empty)
            return Outcome(statement, "not tested", [], reason)
        averaged_axes = [self._x] if statement.metric.startswith("nagi") else []
        point_axes = [axis for axis in self._axes if axis not in averaged_axes]
        varying_axes = [axis for axis in point_axes if len(values_by_axis[axis]) > 1]
        findings = []
        for values in itertools.product(*(values_by_axis[axis] for axis in point_axes)):
            point = dict(zip(point_axes, values, strict=True))
            for other in self._list_compared_points(statement, point):
                value = self._measure(statement, point, other, values_by_axis[self._x])
                # A finding names only the axes that distinguish the points of the statement.
                named_point = {axis: point[axis] for axis in varying_axes or point_axes[-1:]}
                if other is not None:
                    named_point |= {
                        f"against {axis}": other[axis]
                        for axis, condition in statement.against.items()
                        if len(condition.required_values) > 1
                    }
                findings.append(Finding(named_point, value, _decide_at_point(statement, value)))
        result = decide_result(statement, findings)
        return Outcome(
            statement,
            result,
            findings,
            topologies=len(values_by_axis[self._x]) if averaged_axes else 0,
        )

    def _select_values(self, axis: str, condition: Condition | None) -> list[str]:
        """Return the values of an axis that a condition selects or names.

        Values that the condition names but no run has come last. Without a condition, return all
        values of the runs.
        """
        if condition is None:
            return self._axes[axis]
        present = [value for value in self._axes[axis] if condition.holds(value)]
        absent = [
            value
            for value in condition.required_values
            if not any(Condition(value).holds(value_present) for value_present in present)
        ]
        return present + absent

    def _list_compared_points(self, statement: Statement, point: Point) -> Iterator[Point | None]:
        """Yield the points with which the statement compares `point`.

        Yield one None if the statement does not compare points.
        """
        if not statement.against:
            yield None
            return
        values_by_axis = (
            [self._spell_as_in_runs(axis, value) for value in condition.required_values]
            for axis, condition in statement.against.items()
        )
        for values in itertools.product(*values_by_axis):
            other = point | dict(zip(statement.against, values, strict=True))
            if other != point:
                yield other

    def _spell_as_in_runs(self, axis: str, value: str) -> str:
        """Return a value of an axis as the runs spell it, or unchanged if no run has the value."""
        matches = (
            run_value for run_value in self._axes.get(axis, []) if Condition(value).holds(run_value)
        )
        return next(matches, value)

    def _measure(
        self, statement: Statement, point: Point, other: Point | None, selected_x: list[str]
    ) -> Mean | None:
        """Return the metric of a statement at a point, or its ratio to another point.

        Return None without valid runs, and for NAGI if too few values of x can be used.

        Args:
            statement: The statement, with the name of the metric.
            point: The point.
            other: If not None, the metric at `point` is divided by the metric at this point.
            selected_x: The values of x that the statement selects, for NAGI.
        """
        metric = statement.metric
        points = [point] if other is None else [point, other]
        column = "agi_of_ceiling" if metric.endswith("of_ceiling") else "agi"
        if metric.startswith("nagi"):
            selected_x = [
                x
                for x in selected_x
                if all(x in self._find_shared_x(side_point) for side_point in points)
            ]
            if len(selected_x) < (statement.topologies or 1):
                return None
            sides = [[side_point | {self._x: x} for x in selected_x] for side_point in points]
        else:
            column = {"goodput": "goodput_bps", "agi": "agi"}.get(metric, metric)
            sides = [[side_point] for side_point in points]
        if other is not None:
            runs = [
                [self._select_by_seed(side_point, column) for side_point in side] for side in sides
            ]
            return ratio_of_means(*runs)
        means = [self._average(side_point, column) for side_point in sides[0]]
        return average_topologies(means) if metric.startswith("nagi") else means[0]

    def _find_shared_x(self, point: Point) -> list[str]:
        """Return the values of x at which all series have valid runs.

        All other axes have the values of `point`. Series without any valid run are ignored.
        """
        positions = find_shared_positions(
            [
                self._average(point | {self._series: name, self._x: x}, "agi")
                for x in self._axes[self._x]
            ]
            for name in self._axes[self._series]
        )
        return [self._axes[self._x][position] for position in positions]

    def _select_by_seed(self, point: Point, column: str) -> RunValues:
        """Return the metric of each run at a point, by the run's seed."""
        rows = self._rows.get(tuple(point[axis] for axis in self._axes))
        return pd.Series(dtype=float) if rows is None else average_by_run(rows, column, "seed")

    def _average(self, point: Point, column: str) -> Mean | None:
        key = (*(point[axis] for axis in self._axes), column)
        if key not in self._means:
            rows = self._rows.get(key[:-1])
            self._means[key] = None if rows is None else average_runs(rows, column)
        return self._means[key]


def _decide_at_point(statement: Statement, value: Mean | None) -> bool | None:
    """Return whether a statement holds for the whole interval of a value.

    Return None if it holds for a part of the interval, or if there is no value.
    """
    if value is None:
        return None
    halfwidth = 0.0 if math.isnan(value.halfwidth) else value.halfwidth
    return statement.is_.holds(value.value - halfwidth, value.value + halfwidth)
