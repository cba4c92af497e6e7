# SPDX-License-Identifier: Apache-2.0
"""The section Certificate: the checks that the links did what the plans require."""

from __future__ import annotations

from collections.abc import Iterable

from nagi_contracts import noise
from nagi_contracts.records import Check, Verdict
from nagi_contracts.units import format_count

from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import (
    describe_point,
)
from nagi_reports.content import (
    Block,
    Column,
    Paragraph,
    Table,
)


def compose_blocks(material: Material) -> list[Block]:
    """Return an introduction, the table of checks, and the table of runs that are not valid."""
    verdicts = [verdict for verdict in material.verdicts.values() if verdict.checks]
    valid = sum(verdict.status == "valid" for verdict in verdicts)
    introduction = (
        f"{valid} of {format_count(len(verdicts), 'run')} passed all checks. Three records are "
        "compared "
        "with the plan and each other: the emulator's counters, the model replayed on the "
        "recorded arrivals, and the captures at the hosts. Each row shows the worst value of all "
        f"runs. {describe_loss_test(verdicts)}"
    ).strip()
    checks_by_name: dict[str, list[tuple[Verdict, Check]]] = {}
    for verdict in verdicts:
        for check in verdict.checks:
            checks_by_name.setdefault(check.name, []).append((verdict, check))
    rows = []
    for verdict_checks in checks_by_name.values():
        valued = [(check.value, check) for _, check in verdict_checks if check.value is not None]
        value, check = max(valued, key=lambda pair: pair[0], default=(None, verdict_checks[0][1]))
        rows.append(
            [
                check.description,
                "n/a" if value is None else f"{value:.3g} {check.unit}",
                f"{check.limit:g} {check.unit}",
                check.subject if value or value is None else "",
                str(sum(not pair.ok for _, pair in verdict_checks)),
            ]
        )
    blocks: list[Block] = [
        Paragraph(introduction),
        Table(
            "Checks, and the worst value of each.",
            [
                Column("Check", weight=6),
                Column("Worst", "right"),
                Column("Limit", "right"),
                Column("Where", weight=3),
                Column("Runs over", "right"),
            ],
            rows,
            small=True,
        ),
    ]
    if noise_lines := noise.summarise(material.verdicts.values()):
        blocks.append(Paragraph(" ".join(f"{line[0].upper()}{line[1:]}." for line in noise_lines)))
    failed_rows = [
        [run.run_id, describe_point(run), verdict.status, _format_reasons(verdict)]
        for run in material.campaign.runs
        for verdict in [material.verdicts.get(run.run_id)]
        if verdict is not None and verdict.status != "valid"
    ]
    if failed_rows:
        blocks.append(
            Table(
                "Invalid and failed runs, with reasons. They are not in any mean.",
                [
                    Column("Run", mono=True),
                    Column("Point", weight=2),
                    Column("Status"),
                    Column("Reasons", weight=4),
                ],
                failed_rows,
                small=True,
                ruled=True,
            )
        )
    return blocks


def _format_reasons(verdict: Verdict) -> str:
    """Return the reasons why a run is not valid, then the probable causes, one per line."""
    return "\n".join([*verdict.reasons, *noise.describe_explanations(verdict)]) or "no reason given"


def describe_loss_test(verdicts: Iterable[Verdict]) -> str:
    """Return a sentence on the smallest p-value of all tests of channels' loss rates.

    The sentence also has this p-value after Bonferroni's correction for the number of channels.
    Return an empty text if no channel was tested.
    """
    p_values = [
        item.value
        for verdict in verdicts
        for item in verdict.information
        if item.name == "loss_p_value"
    ]
    if not p_values:
        return ""
    return (
        f"Packets lost on {format_count(len(p_values), 'channel')} were tested against the "
        "configured "
        f"loss rates: the smallest p-value is {min(p_values):.2g}, "
        f"{min(1.0, min(p_values) * len(p_values)):.2g} corrected for the number of channels."
    )
