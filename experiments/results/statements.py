# SPDX-License-Identifier: Apache-2.0
"""Evaluate the statements of campaigns that are published in several parts.

    python statements.py westwoodvt-2007-cross ...     # writes westwoodvt-2007-cross.md

The runs of all parts are evaluated together. The report of each part has wider intervals, because
it has fewer runs.
"""

from __future__ import annotations

import sys

from nagi_reports.chapters.statements import describe_condition
from nagi_reports.chapters.words import format_mean
from nagi_reports.outcomes import Finding, evaluate_statements
from publications import HERE, read_published_campaign, read_published_results

_HOLDS = {True: "holds", False: "does not hold", None: "undecided"}


def make_page(name: str) -> str:
    """Return a Markdown page on a campaign, with one section per statement.

    The table of a section has one row per point: value with 95 % interval, and whether the
    statement holds.
    """
    campaign = read_published_campaign(name)
    repeats = len({run.repeat for run in campaign.runs})
    lines = [f"# {campaign.title}: {campaign.variant}", ""]
    lines += [f"{len(campaign.runs)} runs, {repeats} repeats of each point."]
    for outcome in evaluate_statements(campaign, read_published_results(name)):
        lines += ["", f"## {' '.join(outcome.statement.text.split())}", ""]
        lines += [f"Checked: {describe_condition(outcome)} **{outcome.result.capitalize()}.**", ""]
        columns = [*outcome.findings[0].point, "measured", ""]
        lines += [_format_row(columns), _format_row(["---"] * len(columns))]
        lines += map(_format_finding, outcome.findings)
    return "\n".join(lines) + "\n"


def _format_finding(finding: Finding) -> str:
    value = "not tested" if finding.value is None else format_mean(finding.value)
    return _format_row([*finding.point.values(), value, _HOLDS[finding.holds]])


def _format_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("  |", " |")


def main(names: list[str]) -> None:
    for name in names:
        (HERE / f"{name}.md").write_text(make_page(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
