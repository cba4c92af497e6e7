# SPDX-License-Identifier: Apache-2.0
"""What a campaign's results make of its experiment's statements (nagi_contracts/statements.py).

A value is a mean with its 95 % interval. A claim holds at a point if it holds of the whole
interval, fails if it holds of none of it, and is undecided there if the interval straddles a limit.
Of a single run there is no interval: its value decides. A ratio is of pairs of runs that met the
same channel, where there are such.

NAGI is over the values of x that a statement chooses, as far as every series has a valid run there,
as everywhere in a report (summary.py).
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

from nagi_reports.statistics import RunValues, by_run, ratio_of_means
from nagi_reports.summary import Mean, mean_of_runs, normalised, shared

Result = Literal["confirmed", "confirmed in part", "not confirmed", "undecided", "not tested"]
Point = dict[str, str]


@dataclass(frozen=True)
class Finding:
    """A statement at one point."""

    point: Point  # only the axes that tell this point from the statement's others
    value: Mean | None  # in the metric's unit, or a ratio; None: without a valid run
    holds: bool | None  # None: undecided, or not tested

    @property
    def tested(self) -> bool:
        return self.value is not None


@dataclass(frozen=True)
class Outcome:
    """What became of a statement."""

    statement: Statement
    result: Result
    findings: list[Finding]
    nowhere: str = ""  # why there was no point to test it at
    topologies: int = 0  # that the statement is about, if it is about NAGI

    def tested(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.tested]

    def missing(self) -> list[Finding]:
        return [finding for finding in self.findings if not finding.tested]


def outcomes(campaign: Campaign, table: pd.DataFrame) -> list[Outcome]:
    """What became of the campaign's statements, in their order. Only valid runs count."""
    evaluate = _Evaluation(campaign, table)
    return [evaluate.outcome(statement) for statement in campaign.statements]


def result_of(statement: Statement, findings: list[Finding]) -> Result:
    """The outcome of a statement from what was found at its points."""
    total = len(findings)
    tested = [finding for finding in findings if finding.tested]
    if not tested:
        return "not tested"
    needed = {"all": total, "most": total // 2 + 1, "some": 1}[statement.for_]
    hold = sum(finding.holds is True for finding in tested)
    fail = sum(finding.holds is False for finding in tested)
    if hold >= needed:
        return "confirmed"
    if total - fail < needed:
        return "not confirmed"
    return "confirmed in part" if hold == len(tested) else "undecided"


class _Evaluation:
    """The results of a campaign by point."""

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

    def outcome(self, statement: Statement) -> Outcome:
        chosen = {axis: self._chosen(axis, statement.where.get(axis)) for axis in self._axes}
        empty = [axis for axis, values in chosen.items() if not values]
        if empty:
            nowhere = "; ".join(f"no run has {axis} {statement.where[axis]}" for axis in empty)
            return Outcome(statement, "not tested", [], nowhere)
        along = [self._x] if statement.metric.startswith("nagi") else []
        free = [axis for axis in self._axes if axis not in along]
        told = [axis for axis in free if len(chosen[axis]) > 1]
        findings = []
        for values in itertools.product(*(chosen[axis] for axis in free)):
            point = dict(zip(free, values, strict=True))
            for other in self._others(statement, point):
                value = self._value(statement, point, other, chosen[self._x])
                named = {axis: point[axis] for axis in told or free[-1:]}
                if other is not None:
                    named |= {
                        f"against {axis}": other[axis]
                        for axis, condition in statement.against.items()
                        if len(condition.required_values) > 1
                    }
                findings.append(Finding(named, value, _holds(statement, value)))
        result = result_of(statement, findings)
        return Outcome(statement, result, findings, topologies=len(chosen[self._x]) if along else 0)

    def _chosen(self, axis: str, condition: Condition | None) -> list[str]:
        """The values of an axis that a condition chooses; those it wants and no run has, too."""
        if condition is None:
            return self._axes[axis]
        present = [value for value in self._axes[axis] if condition.holds(value)]
        absent = [
            value
            for value in condition.required_values
            if not any(Condition(value).holds(each) for each in present)
        ]
        return present + absent

    def _others(self, statement: Statement, point: Point) -> Iterator[Point | None]:
        """The points to compare `point` with; None if the statement does not compare."""
        if not statement.against:
            yield None
            return
        wanted = (
            [self._spelled(axis, value) for value in condition.required_values]
            for axis, condition in statement.against.items()
        )
        for values in itertools.product(*wanted):
            other = point | dict(zip(statement.against, values, strict=True))
            if other != point:
                yield other

    def _spelled(self, axis: str, value: str) -> str:
        """A value as the runs have it."""
        known = (each for each in self._axes.get(axis, []) if Condition(value).holds(each))
        return next(known, value)

    def _value(
        self, statement: Statement, point: Point, other: Point | None, over: list[str]
    ) -> Mean | None:
        """The metric at a point, or its ratio to that at another; `over`: the values of x that a
        statement about NAGI chooses."""
        metric = statement.metric
        points = [point] if other is None else [point, other]
        column = "agi_of_ceiling" if metric.endswith("of_ceiling") else "agi"
        if metric.startswith("nagi"):
            over = [x for x in over if all(x in self._compared(each) for each in points)]
            if len(over) < (statement.topologies or 1):
                return None
            sides = [[each | {self._x: x} for x in over] for each in points]
        else:
            column = {"goodput": "goodput_bps", "agi": "agi"}.get(metric, metric)
            sides = [[each] for each in points]
        if other is not None:
            runs = [[self._runs(each, column) for each in side] for side in sides]
            return ratio_of_means(*runs)
        means = [self._mean(each, column) for each in sides[0]]
        return normalised(means) if metric.startswith("nagi") else means[0]

    def _compared(self, point: Point) -> list[str]:
        """The values of x at which all series have valid runs, the other axes being as in `point`
        (a series without any such run does not count)."""
        at = shared(
            [
                self._mean(point | {self._series: name, self._x: x}, "agi")
                for x in self._axes[self._x]
            ]
            for name in self._axes[self._series]
        )
        return [self._axes[self._x][position] for position in at]

    def _runs(self, point: Point, column: str) -> RunValues:
        """The metric of each run at a point, by its seed."""
        rows = self._rows.get(tuple(point[axis] for axis in self._axes))
        return pd.Series(dtype=float) if rows is None else by_run(rows, column, "seed")

    def _mean(self, point: Point, column: str) -> Mean | None:
        key = (*(point[axis] for axis in self._axes), column)
        if key not in self._means:
            rows = self._rows.get(key[:-1])
            self._means[key] = None if rows is None else mean_of_runs(rows, column)
        return self._means[key]


def _holds(statement: Statement, value: Mean | None) -> bool | None:
    if value is None:
        return None
    apart = 0.0 if math.isnan(value.halfwidth) else value.halfwidth
    return statement.is_.holds(value.value - apart, value.value + apart)
