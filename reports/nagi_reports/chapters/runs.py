# SPDX-License-Identifier: Apache-2.0
"""All runs."""

from __future__ import annotations

import re

import pandas as pd
from nagi_contracts.records import Campaign, sha256_of

from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import (
    NONE,
    capitalise,
    to_words,
)
from nagi_reports.content import (
    Block,
    Column,
    Table,
)

_DIGITS = 8  # of a checksum
_LETTERS = 40  # that have room beside the numbers


def compose_blocks(material: Material) -> list[Block]:
    campaign, table = material.campaign, material.table
    repeats = any(run.repeat for run in campaign.runs)
    flows = material.has_several_flows
    flow_letters = max(map(len, table["flow"].astype(str))) + 2 if flows else 0
    columns = _axis_columns(campaign, _LETTERS - flow_letters)
    axes = list(campaign.runs[0].point)
    columns += [Column("Rep.", "right")] if repeats else []
    columns += [Column("Flow")] if flows else []
    counts = ("segments_sent", "segments_retransmitted", "queue_overflows", "channel_losses")
    columns += [
        Column(head, "right") for head in ("AG (Mb/s)", "AGI", "Sent", "Retr.", "Overfl.", "Lost")
    ]
    columns += [Column("Status"), Column("Run", mono=True), Column("Manifest", mono=True)]
    by_run = dict(list(table.groupby("run_id")))
    rows = []
    for run in campaign.runs:
        point = [_breakable(run.point[axis]) for axis in axes]
        point += [str(run.repeat + 1)] if repeats else []
        verdict = material.verdicts.get(run.run_id)
        status = verdict.status if verdict else "not run"
        manifest = material.directory(run.run_id) / "manifest.json"
        digest = sha256_of(manifest)[:_DIGITS] if manifest.exists() else ""
        if run.run_id not in by_run:
            blanks = [""] * (6 + flows)
            rows.append([*point, *blanks, status, run.run_id, digest])
            continue
        for _, found in by_run[run.run_id].iterrows():
            rows.append(
                [
                    *point,
                    *([str(found["flow"])] if flows else []),
                    _cell(found["goodput_bps"] / 1e6),
                    _cell(found["agi"]),
                    *(
                        f"{int(found[name]):,}" if pd.notna(found[name]) else NONE
                        for name in counts
                    ),
                    status,
                    run.run_id,
                    digest,
                ]
            )
    return [
        Table(
            "Every flow of every run. Sent, Retr.: data segments sent and retransmitted. Overfl., "
            "Lost: packets dropped by queues and lost on channels of the path. Manifest: the "
            "first digits of its SHA-256.",
            columns,
            rows,
            small=True,
            strong_first=False,
        )
    ]


def _axis_columns(campaign: Campaign, letters: int) -> list[Column]:
    """A column an axis: as wide as its values, or sharing what is left if they are longer than
    `letters` in all."""
    found = []
    longest = {
        axis: max(
            len(capitalise(to_words(axis))),
            *(len(run.point[axis]) for run in campaign.runs),
        )
        for axis in campaign.runs[0].point
    }
    fit = sum(length + 2 for length in longest.values()) <= letters
    for axis, length in longest.items():
        # A heading is broken between its words.
        words = max(map(len, to_words(axis).split()))
        values = max(len(run.point[axis]) for run in campaign.runs)
        weight = max(7, min(max(words, values) + 1, length, 24))
        found.append(Column(capitalise(to_words(axis)), weight=0 if fit else weight))
    return found


def _cell(value: float) -> str:
    return NONE if pd.isna(value) else f"{value:.3f}"


def _breakable(value: str) -> str:
    """A value that may be broken after its hyphens and underscores, and within long words."""
    hyphened = re.sub(r"([-_/])(?=\w)", "\\1\u200b", value)
    return re.sub(r"(\w{12})(?=\w)", "\\1\u200b", hyphened)
