# SPDX-License-Identifier: Apache-2.0
"""The report of a comparison of two sets of runs (`nagi compare`)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from nagi_contracts import __version__
from nagi_contracts.records import Check, Manifest, Verdict
from nagi_contracts.results import list_metrics
from nagi_contracts.units import format_count

from nagi_reports import figures
from nagi_reports.chapters.words import NONE, format_mean, to_words
from nagi_reports.comparison import Side, describe_comparison
from nagi_reports.content import Block, Bullets, Column, Figure, Paragraph, Report, Section, Table
from nagi_reports.statistics import Comparison, PointDifference


def compose(first: Side, second: Side, comparison: Comparison) -> Report:
    """Return the report of `comparison`, which compares the sets of runs `first` and `second`."""
    sections = [
        Section("result", "Agreement", _compose_result(first, second, comparison)),
        Section("points", "Points", [_compose_points(first, second, comparison)]),
        Section("certificate", "Certificates", _compose_checks(first, second)),
        Section("definitions", "Definitions", [_compose_definitions(comparison)]),
    ]
    return Report(
        title=f"{first.name} compared with {second.name}",
        reference="",
        footer=f"{first.name} compared with {second.name} · nagi {__version__}",
        created_s=int(max((*_list_run_dates(first), *_list_run_dates(second)), default=0)),
        sections=[section for section in sections if section.blocks],
    )


def _compose_result(first: Side, second: Side, comparison: Comparison) -> list[Block]:
    """Return the lines that summarise the comparison, and its figures."""
    pairs = [
        figures.Pair(
            _label_point(point), point.first, point.second, point.difference, point.differs
        )
        for point in comparison.points
    ]
    has_intervals = any(not math.isnan(point.difference.halfwidth) for point in comparison.points)
    bars = "Bars span 95 % intervals." if has_intervals else "One pair per point: no intervals."
    figure_blocks: list[Block] = []
    for index, drawing in enumerate(
        figures.make_comparison_figures(
            (first.name, second.name), pairs, to_words(comparison.metric)
        )
    ):
        caption = (
            f"{to_words(comparison.metric)} of each point, and the difference, {second.name} - "
            f"{first.name}. {bars} A star marks a significant difference."
        )
        figure_blocks.append(
            Figure(
                f"side-by-side-{index + 1}",
                figures.render_svg(drawing),
                caption if index == 0 else "Further points.",
                f"{to_words(comparison.metric)} of {format_count(len(pairs), 'point')}, "
                "as in the table.",
            )
        )
    return [Bullets(describe_comparison(first, second, comparison)), *figure_blocks]


def _compose_points(first: Side, second: Side, comparison: Comparison) -> Table:
    """Return the table of means and differences, one row per point."""
    rows = [
        [
            *point.point.values(),
            str(point.difference.runs),
            format_mean(point.first),
            format_mean(point.second),
            format_mean(point.difference, digits=4),
            NONE if point.corrected_p_value is None else f"{point.corrected_p_value:.2g}",
            "differs" if point.differs else "",
        ]
        for point in comparison.points
    ]
    return Table(
        f"Means of {to_words(comparison.metric)} over pairs of runs, and their differences.",
        [
            *(Column(to_words(axis)) for axis in comparison.points[0].point),
            Column("Pairs", "right"),
            Column(first.name, "right", 1),
            Column(second.name, "right", 1),
            Column("Difference", "right", 1),
            Column("p (Holm)", "right"),
            Column(""),
        ],
        rows,
        small=True,
        strong_first=False,
    )


def _compose_checks(first: Side, second: Side) -> list[Block]:
    """Return the table of the certificates' checks on both sides; no block without checks."""
    first_checks, second_checks = _group_checks(first), _group_checks(second)
    rows = []
    for name in dict.fromkeys([*first_checks, *second_checks]):
        checks_by_side = [first_checks.get(name, []), second_checks.get(name, [])]
        check = (checks_by_side[0] or checks_by_side[1])[0]
        rows.append(
            [
                check.description,
                *(
                    _format_value(checks, is_worst)
                    for checks in checks_by_side
                    for is_worst in (False, True)
                ),
                f"{check.limit:g} {check.unit}",
            ]
        )
    if not rows:
        return []
    return [
        Table(
            "The certificates of all runs that completed.",
            [
                Column("Check", weight=5),
                *(
                    Column(f"{side.name}\n{statistic}", "right", 2)
                    for side in (first, second)
                    for statistic in ("median", "worst")
                ),
                Column("Limit", "right"),
            ],
            rows,
            small=True,
        )
    ]


def _format_value(checks: list[Check], is_worst: bool) -> str:
    """Return the median or the worst (largest) value of a check over runs, with its unit."""
    values = [check.value for check in checks if check.value is not None]
    if not values:
        return NONE
    return f"{max(values) if is_worst else statistics.median(values):.3g} {checks[0].unit}"


def _group_checks(side: Side) -> dict[str, list[Check]]:
    """Return the checks of all runs of a side, by the name of the check."""
    checks_by_name: dict[str, list[Check]] = {}
    for run_id in dict.fromkeys(side.table["run_id"]):
        file = side.directory / "runs" / run_id / "verdict.json"
        for check in Verdict.read(file).checks if file.exists() else []:
            checks_by_name.setdefault(check.name, []).append(check)
    return checks_by_name


def _list_run_dates(side: Side) -> Iterator[float]:
    for run_id in dict.fromkeys(side.table["run_id"]):
        file = side.directory / "runs" / run_id / "manifest.json"
        if file.exists():
            yield Manifest.read(file).date_s


def _label_point(difference: PointDifference) -> str:
    return ", ".join(difference.point.values())


def _compose_definitions(comparison: Comparison) -> Paragraph:
    return Paragraph(
        f"{comparison.metric}: {list_metrics()[comparison.metric]}. A pair is a run of each "
        "side with the same point and seed. Both runs have the same losses on the channel if they "
        "send the same packets. A run counts with the mean of its flows. Differences at a point "
        "are tested by the paired t test, with p-values corrected for the number of points by "
        "Holm's method: the probability that any point without a difference is called different is "
        "at most 5 %. Over all points, the points' mean differences are tested by the Wilcoxon "
        "signed-rank test."
    )
