# SPDX-License-Identifier: Apache-2.0
"""The certificate: whether the links did what the plan asks."""

from __future__ import annotations

from collections.abc import Iterable

from nagi_contracts import noise
from nagi_contracts.records import Check, Verdict
from nagi_contracts.units import count_of

from nagi_reports.chapters import switches
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import (
    point_of,
)
from nagi_reports.content import (
    Block,
    Column,
    Paragraph,
    Table,
)


def blocks(material: Material) -> list[Block]:
    judged = [verdict for verdict in material.verdicts.values() if verdict.checks]
    valid = sum(verdict.status == "valid" for verdict in judged)
    said = (
        f"{valid} of {count_of(len(judged), 'run')} passed all checks. Three records are checked "
        "against the plan and each other: the emulator's own account, the model replayed on the "
        "recorded arrivals, and the captures at the hosts. Each row shows the worst value of all "
        f"runs. {losses_in_words(judged)}"
    ).strip()
    by_name: dict[str, list[tuple[Verdict, Check]]] = {}
    for verdict in judged:
        for check in verdict.checks:
            by_name.setdefault(check.name, []).append((verdict, check))
    rows = []
    for same in by_name.values():
        known = [(check.value, check) for _, check in same if check.value is not None]
        value, check = max(known, key=lambda each: each[0], default=(None, same[0][1]))
        rows.append(
            [
                check.description,
                "n/a" if value is None else f"{value:.3g} {check.unit}",
                f"{check.limit:g} {check.unit}",
                check.subject if value or value is None else "",
                str(sum(not each.ok for _, each in same)),
            ]
        )
    blocks: list[Block] = [
        Paragraph(said),
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
    if late := noise.summarise(material.verdicts.values()):
        blocks.append(Paragraph(" ".join(f"{line[0].upper()}{line[1:]}." for line in late)))
    bad = [
        [run.run_id, point_of(run), verdict.status, _reasons(verdict)]
        for run in material.campaign.runs
        for verdict in [material.verdicts.get(run.run_id)]
        if verdict is not None and verdict.status != "valid"
    ]
    if bad:
        blocks.append(
            Table(
                "Invalid and failed runs, with reasons. They are not in any mean.",
                [
                    Column("Run", mono=True),
                    Column("Point", weight=2),
                    Column("Status"),
                    Column("Reasons", weight=4),
                ],
                bad,
                small=True,
                ruled=True,
            )
        )
    return [*blocks, *switches.blocks(material)]


def _reasons(verdict: Verdict) -> str:
    """A line a reason, then a line for what probably caused them."""
    return "\n".join([*verdict.reasons, *noise.describe_explanations(verdict)]) or "no reason given"


def losses_in_words(verdicts: Iterable[Verdict]) -> str:
    """How likely the losses were, by the channel whose were the least likely. The p-value is
    corrected for the number of channels by Bonferroni's inequality."""
    found = [
        each.value
        for verdict in verdicts
        for each in verdict.information
        if each.name == "loss_p_value"
    ]
    if not found:
        return ""
    return (
        f"Packets lost on {count_of(len(found), 'channel')} were tested against the configured "
        f"loss rates: the smallest p-value is {min(found):.2g}, "
        f"{min(1.0, min(found) * len(found)):.2g} corrected for the number of channels."
    )
