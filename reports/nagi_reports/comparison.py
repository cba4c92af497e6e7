# SPDX-License-Identifier: Apache-2.0
"""`nagi compare`: comparison of the runs of two campaigns, or of two values of one axis."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.base import refuse_links
from nagi_contracts.errors import refuse
from nagi_contracts.results import list_metrics
from rich.box import SIMPLE_HEAD
from rich.table import Table

from nagi_reports.parquet import read_parquet, require_kinds
from nagi_reports.statistics import CONFIDENCE, Comparison, Mean, compare


def require_metric(name: str, key: str) -> None:
    """Check that there is a metric called `name`.

    Args:
        name: Name of the metric.
        key: Option or key that the user gave the name with, for the message.

    Raises:
        InputError: There is no such metric.
    """
    if name not in list_metrics():
        raise refuse(
            f"there is no metric {name!r}", f"one of: {', '.join(list_metrics())}", key=key
        )


@dataclass(frozen=True)
class Side:
    """One of the two sets of runs that are compared."""

    name: str  # of the campaign, or the value of the axis
    table: pd.DataFrame  # rows of results
    directory: Path  # of the campaign that has the runs

    @property
    def labs(self) -> list[str]:
        """The labs that executed the runs."""
        return sorted(set(self.table["lab"]))

    @property
    def builds(self) -> list[str]:
        """The ids of the builds of nagi that executed the runs."""
        return sorted(set(self.table["build"]))


def compare_campaigns(first: Path, second: Path, metric: str) -> tuple[Side, Side, Comparison]:
    """Compare the runs of two campaigns, paired by point and seed.

    Args:
        first: The directory of the first campaign.
        second: The directory of the second campaign.
        metric: The metric to compare.

    Returns:
        Both sets of runs, and their comparison.

    Raises:
        InputError: The campaigns have no pair of runs, a campaign has no results, or there is no
            such metric.
    """
    require_metric(metric, "--metric")
    names = (first.name, second.name)
    if not all(names) or names[0] == names[1]:
        names = (str(first), str(second))
    sides = (
        Side(names[0], _read_results(first, metric), first),
        Side(names[1], _read_results(second, metric), second),
    )
    comparison = _compare_sides(*sides, metric, ["point_id", "seed"])
    if not comparison.points:
        point_ids = [set(side.table["point_id"]) for side in sides]
        if not point_ids[0] & point_ids[1]:
            problem = "the two campaigns have no point in common"
            cure = (
                "compare runs of the same experiment and variant; `--by` compares runs of one "
                "campaign"
            )
        else:
            problem = "the two campaigns have no valid run with the same point and seed"
            cure = "give their experiments the same `seed`"
        raise refuse(problem, cure, file=str(second))
    return *sides, comparison


def compare_within(campaign: Path, by: str, metric: str) -> tuple[Side, Side, Comparison]:
    """Compare runs of one campaign, in pairs that differ in one axis only.

    Args:
        campaign: The directory of the campaign.
        by: The axis and its two values, as AXIS=VALUE,VALUE.
        metric: The metric to compare.

    Returns:
        The runs of both values, and their comparison.

    Raises:
        InputError: `by` is malformed or names no axis or value of the campaign, the campaign has no
            results, there is no such metric, or no pair of runs.
    """
    require_metric(metric, "--metric")
    axis, _, values = by.partition("=")
    names = [value.strip() for value in values.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise refuse(f"--by {by}: not AXIS=VALUE,VALUE", "write it like --by scheme=newreno,cubic")
    table = _read_results(campaign, metric)
    column = f"point.{axis}"
    axes = [name for name in table.columns if name.startswith("point.")]
    if column not in axes:
        choices = ", ".join(name.removeprefix("point.") for name in axes)
        raise refuse(f"--by {axis}=...: there is no such axis", f"axes: {choices}")
    for name in names:
        if name not in set(table[column]):
            choices = ", ".join(dict.fromkeys(table[column]))
            raise refuse(f"--by {axis}={name}: no such value", f"values: {choices}")
    sides = tuple(Side(name, table[table[column] == name], campaign) for name in names)
    comparison = _compare_sides(
        sides[0], sides[1], metric, [*(a for a in axes if a != column), "seed"]
    )
    if not comparison.points:
        raise refuse(
            f"no two valid runs differ in {axis} only",
            f"runs have the same seed only if {axis} changes no link; give an axis such as scheme",
            file=str(campaign),
        )
    return sides[0], sides[1], comparison


def _compare_sides(first: Side, second: Side, metric: str, key: list[str]) -> Comparison:
    return compare(first.table, second.table, metric, key)


def _read_results(campaign: Path, metric: str) -> pd.DataFrame:
    """Read a campaign's table of results, and check the columns that a comparison needs.

    Raises:
        InputError: The table is missing or damaged, or lacks a column.
    """
    refuse_links(campaign)
    path = campaign / "results.parquet"
    if not path.exists():
        raise refuse(
            "has no results.parquet",
            "give the --out of `nagi run`; if the run was stopped, `nagi analyze` writes the file",
            file=str(campaign),
        )
    cure = f"write it again with `nagi analyze {shlex.quote(str(campaign))}`"
    table = read_parquet(path, cure=cure)
    texts = dict.fromkeys(("run_id", "point_id", "status", "lab", "build"), "text")
    points = {name: "text" for name in table.columns if name.startswith("point.")}
    require_kinds(table, {**texts, **points, "seed": "number", metric: "number"}, path, cure)
    return table


def make_comparison_table(first: Side, second: Side, comparison: Comparison) -> Table:
    """Return the comparison as a text table, one row per point.

    Rows are bold if the difference is significant. The comparison must have at least one point.
    """
    table = Table(
        title=f"{comparison.metric}: {second.name} - {first.name}",
        title_justify="left",
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=0,
    )
    for axis in comparison.points[0].point:
        table.add_column(axis)
    for head in ("pairs", first.name, second.name, "difference", "±", "p (Holm)", ""):
        table.add_column(head, justify="left" if not head else "right", overflow="fold")
    for point in comparison.points:
        p_value = "-" if point.corrected_p_value is None else f"{point.corrected_p_value:.2g}"
        table.add_row(
            *point.point.values(),
            str(point.difference.runs),
            f"{point.first.value:.3g}",
            f"{point.second.value:.3g}",
            f"{point.difference.value:+.2g}",
            "-" if math.isnan(point.difference.halfwidth) else f"{point.difference.halfwidth:.1g}",
            p_value,
            "differs" if point.differs else "",
            style="bold" if point.differs else None,
        )
    return table


def describe_comparison(first: Side, second: Side, comparison: Comparison) -> list[str]:
    """Return the lines that follow the table of a comparison.

    They list labs and builds, how many points differ, the mean over all points, and the runs that
    were not compared.
    """
    differing = sum(point.differs for point in comparison.points)
    tested = sum(point.corrected_p_value is not None for point in comparison.points)
    percent = f"{CONFIDENCE:.0%}".replace("%", " %")
    lines = [
        f"{side.name}: lab {', '.join(side.labs)}, build {', '.join(side.builds)}"
        for side in (first, second)
    ]
    lines += [
        f"{differing} of {tested} points tested differ (paired t test, corrected by Holm, "
        f"{percent}).",
    ]
    if tested < len(comparison.points):
        lines.append(
            f"{len(comparison.points) - tested} points have one pair only and are not tested: "
            "give the experiment more `repeats`."
        )
    if comparison.overall is not None:
        mean = _format_with_interval(comparison.overall)
        overall = f"Mean over the {comparison.overall.runs} points: {mean}"
        if comparison.overall_p_value is not None:
            overall += (
                f", p = {comparison.overall_p_value:.2g} (Wilcoxon signed-rank test over points)"
            )
        lines.append(overall + ".")
    for side, count in ((first, comparison.only_first), (second, comparison.only_second)):
        if count:
            lines.append(f"Without a partner: {count} valid runs of {side.name}.")
    if comparison.not_valid:
        lines.append(f"Left out: {comparison.not_valid} runs that are not valid.")
    return lines


def comparison_to_json(first: Side, second: Side, comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain data for JSON.

    The form is {"points": [...], "overall": {...}, ...}. Differences are second - first, in the
    metric's unit. Values that are not known are None.
    """

    def finite_or_none(value: float | None) -> float | None:
        return None if value is None or not math.isfinite(value) else value

    return {
        "schema_version": 1,
        "metric": comparison.metric,
        "description": list_metrics()[comparison.metric],
        "first": {"name": first.name, "labs": first.labs, "builds": first.builds},
        "second": {"name": second.name, "labs": second.labs, "builds": second.builds},
        "confidence": CONFIDENCE,
        "points": [
            {
                "point": point.point,
                "pairs": point.difference.runs,
                "first_mean": point.first.value,
                "second_mean": point.second.value,
                "difference": point.difference.value,
                "difference_halfwidth": finite_or_none(point.difference.halfwidth),
                "p_value": finite_or_none(point.p_value),
                "p_value_holm": finite_or_none(point.corrected_p_value),
                "differs": point.differs,
            }
            for point in comparison.points
        ],
        "overall": comparison.overall
        and {
            "points": comparison.overall.runs,
            "difference": comparison.overall.value,
            "difference_halfwidth": finite_or_none(comparison.overall.halfwidth),
            "p_value": finite_or_none(comparison.overall_p_value),
        },
        "unpaired_first": comparison.only_first,
        "unpaired_second": comparison.only_second,
        "not_valid": comparison.not_valid,
    }


def _format_with_interval(mean: Mean) -> str:
    if math.isnan(mean.halfwidth):
        return f"{mean.value:+.3g}"
    return f"{mean.value:+.3g} ±{mean.halfwidth:.2g}"
