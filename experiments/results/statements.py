# SPDX-License-Identifier: Apache-2.0
"""Evaluate the statements of campaigns that are published in parts, on all parts together.

    python statements.py westwoodvt-2007-cross ...     # writes westwoodvt-2007-cross.md

Each part has a report of its own, with wider intervals.
"""

from __future__ import annotations

import sys

from nagi_reports.chapters.statements import describe_condition
from nagi_reports.chapters.words import format_mean
from nagi_reports.outcomes import Finding, evaluate_statements
from publications import HERE, campaign_of, published

_HOLDS = {True: "holds", False: "does not hold", None: "undecided"}


def page(name: str) -> str:
    """Return a Markdown page with one table row per statement.

    Each row has values with their 95 % intervals, and whether the statement holds for them.
    """
    campaign = campaign_of(name)
    repeats = len({run.repeat for run in campaign.runs})
    lines = [f"# {campaign.title}: {campaign.variant}", ""]
    lines += [f"{len(campaign.runs)} runs, {repeats} repeats of each point."]
    for outcome in evaluate_statements(campaign, published(name)):
        lines += ["", f"## {' '.join(outcome.statement.text.split())}", ""]
        lines += [f"Checked: {describe_condition(outcome)} **{outcome.result.capitalize()}.**", ""]
        columns = [*outcome.findings[0].point, "measured", ""]
        lines += [_row(columns), _row(["---"] * len(columns)), *map(_found, outcome.findings)]
    return "\n".join(lines) + "\n"


def _found(finding: Finding) -> str:
    value = "not tested" if finding.value is None else format_mean(finding.value)
    return _row([*finding.point.values(), value, _HOLDS[finding.holds]])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  |", " |")


def main(names: list[str]) -> None:
    for name in names:
        (HERE / f"{name}.md").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
