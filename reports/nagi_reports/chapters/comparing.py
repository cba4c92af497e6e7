# SPDX-License-Identifier: Apache-2.0
"""A comparison of two sets of runs, as a report of its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from nagi_contracts import __version__
from nagi_contracts.records import Check, Manifest, Verdict
from nagi_contracts.results import metrics_of_results
from nagi_contracts.units import count_of

from nagi_reports import figures
from nagi_reports.chapters.words import NONE, format_mean, to_words
from nagi_reports.comparison import Side, describe_comparison
from nagi_reports.content import Block, Bullets, Column, Figure, Paragraph, Report, Section, Table
from nagi_reports.statistics import Comparison, PointDifference


def compose(first: Side, second: Side, found: Comparison) -> Report:
    """The report of a comparison."""
    sections = [
        Section("result", "Agreement", _result(first, second, found)),
        Section("points", "Points", [_points(first, second, found)]),
        Section("certificate", "Certificates", _checks(first, second)),
        Section("definitions", "Definitions", [_definitions(found)]),
    ]
    return Report(
        title=f"{first.name} compared with {second.name}",
        reference="",
        footer=f"{first.name} compared with {second.name} · nagi {__version__}",
        created_s=int(max((*_dates(first), *_dates(second)), default=0)),
        sections=[section for section in sections if section.blocks],
    )


def _result(first: Side, second: Side, found: Comparison) -> list[Block]:
    pairs = [
        figures.Pair(_label(each), each.first, each.second, each.difference, each.differs)
        for each in found.points
    ]
    intervals = any(not math.isnan(each.difference.halfwidth) for each in found.points)
    bars = "Bars span 95 % intervals." if intervals else "One pair per point: no intervals."
    drawn: list[Block] = []
    for at, drawing in enumerate(
        figures.paired_means((first.name, second.name), pairs, to_words(found.metric))
    ):
        caption = (
            f"{to_words(found.metric)} of each point, and the difference, {second.name} - "
            f"{first.name}. {bars} A star marks a significant difference."
        )
        drawn.append(
            Figure(
                f"side-by-side-{at + 1}",
                figures.render_svg(drawing),
                caption if at == 0 else "Further points.",
                f"{to_words(found.metric)} of {count_of(len(pairs), 'point')}, as in the table.",
            )
        )
    return [Bullets(describe_comparison(first, second, found)), *drawn]


def _points(first: Side, second: Side, found: Comparison) -> Table:
    rows = [
        [
            *each.point.values(),
            str(each.difference.runs),
            format_mean(each.first),
            format_mean(each.second),
            format_mean(each.difference, digits=4),
            NONE if each.corrected is None else f"{each.corrected:.2g}",
            "differs" if each.differs else "",
        ]
        for each in found.points
    ]
    return Table(
        f"Means of {to_words(found.metric)} over pairs of runs, and their differences.",
        [
            *(Column(to_words(axis)) for axis in found.points[0].point),
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


def _checks(first: Side, second: Side) -> list[Block]:
    sides = [_by_name(side) for side in (first, second)]
    rows = []
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        same = [side.get(name, []) for side in sides]
        check = (same[0] or same[1])[0]
        rows.append(
            [
                check.description,
                *(_written(checks, worst) for checks in same for worst in (False, True)),
                f"{check.limit:g} {check.unit}",
            ]
        )
    if not rows:
        return []
    return [
        Table(
            "The certificates of both, of all runs that were tried to their end.",
            [
                Column("Check", weight=5),
                *(
                    Column(f"{side.name}\n{what}", "right", 2)
                    for side in (first, second)
                    for what in ("median", "worst")
                ),
                Column("Limit", "right"),
            ],
            rows,
            small=True,
        )
    ]


def _written(checks: list[Check], worst: bool) -> str:
    known = [check.value for check in checks if check.value is not None]
    if not known:
        return NONE
    return f"{max(known) if worst else statistics.median(known):.3g} {checks[0].unit}"


def _by_name(side: Side) -> dict[str, list[Check]]:
    found: dict[str, list[Check]] = {}
    for run_id in dict.fromkeys(side.table["run_id"]):
        file = side.campaign / "runs" / run_id / "verdict.json"
        for check in Verdict.read(file).checks if file.exists() else []:
            found.setdefault(check.name, []).append(check)
    return found


def _dates(side: Side) -> Iterator[float]:
    for run_id in dict.fromkeys(side.table["run_id"]):
        file = side.campaign / "runs" / run_id / "manifest.json"
        if file.exists():
            yield Manifest.read(file).date_s


def _label(each: PointDifference) -> str:
    return ", ".join(each.point.values())


def _definitions(found: Comparison) -> Paragraph:
    return Paragraph(
        f"{found.metric}: {metrics_of_results()[found.metric]}. A pair is a run of each side with "
        "the same point and seed, so that both met the same losses on the channel as far as they "
        "sent the same; the mean of a run's flows counts. Differences of a point are tested by the "
        "paired t test, p-values corrected for the number of points by Holm's method: the chance "
        "of calling any point different that is not is at most 5 %. Over all points it is the "
        "Wilcoxon signed-rank test of the points' mean differences."
    )
