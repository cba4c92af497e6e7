# SPDX-License-Identifier: Apache-2.0
"""The section All runs: one row per flow of every run."""

from __future__ import annotations

import re

import pandas as pd
from nagi_contracts.records import Campaign, compute_sha256

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

_DIGITS = 8  # shown digits of a checksum
_LETTERS = 40  # width of the axes' columns together, in letters


def compose_blocks(material: Material) -> list[Block]:
    """Return the table of all runs, one row per flow; runs without results have one row."""
    campaign, table = material.campaign, material.table
    has_repeats = any(run.repeat for run in campaign.runs)
    has_several_flows = material.has_several_flows
    flow_letters = max(map(len, table["flow"].astype(str))) + 2 if has_several_flows else 0
    columns = _make_axis_columns(campaign, _LETTERS - flow_letters)
    axes = list(campaign.runs[0].point)
    columns += [Column("Rep.", "right")] if has_repeats else []
    columns += [Column("Flow")] if has_several_flows else []
    counts = ("segments_sent", "segments_retransmitted", "queue_overflows", "channel_losses")
    columns += [
        Column(head, "right") for head in ("AG (Mb/s)", "AGI", "Sent", "Retr.", "Overfl.", "Lost")
    ]
    columns += [Column("Status"), Column("Run", mono=True), Column("Manifest", mono=True)]
    by_run = dict(list(table.groupby("run_id")))
    rows = []
    for run in campaign.runs:
        point = [_make_breakable(run.point[axis]) for axis in axes]
        point += [str(run.repeat + 1)] if has_repeats else []
        verdict = material.verdicts.get(run.run_id)
        status = verdict.status if verdict else "not run"
        manifest = material.run_directory(run.run_id) / "manifest.json"
        digest = compute_sha256(manifest)[:_DIGITS] if manifest.exists() else ""
        if run.run_id not in by_run:
            blanks = [""] * (6 + has_several_flows)
            rows.append([*point, *blanks, status, run.run_id, digest])
            continue
        for _, row in by_run[run.run_id].iterrows():
            rows.append(
                [
                    *point,
                    *([str(row["flow"])] if has_several_flows else []),
                    _format_number(row["goodput_bps"] / 1e6),
                    _format_number(row["agi"]),
                    *(f"{int(row[name]):,}" if pd.notna(row[name]) else NONE for name in counts),
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


def _make_axis_columns(campaign: Campaign, letters: int) -> list[Column]:
    """Return one column per axis.

    If the longest values of all axes fit into `letters` letters, each column is as wide as its
    longest value. Otherwise, the columns share the width that the table's other columns leave.
    """
    columns = []
    longest = {
        axis: max(
            len(capitalise(to_words(axis))),
            *(len(run.point[axis]) for run in campaign.runs),
        )
        for axis in campaign.runs[0].point
    }
    all_fit = sum(length + 2 for length in longest.values()) <= letters
    for axis, length in longest.items():
        # A heading is broken between its words.
        longest_word = max(map(len, to_words(axis).split()))
        longest_value = max(len(run.point[axis]) for run in campaign.runs)
        weight = max(7, min(max(longest_word, longest_value) + 1, length, 24))
        columns.append(Column(capitalise(to_words(axis)), weight=0 if all_fit else weight))
    return columns


def _format_number(value: float) -> str:
    return NONE if pd.isna(value) else f"{value:.3f}"


def _make_breakable(value: str) -> str:
    """Return a value with permitted line breaks after -, _ and /, and within long words."""
    hyphened = re.sub(r"([-_/])(?=\w)", "\\1\u200b", value)
    return re.sub(r"(\w{12})(?=\w)", "\\1\u200b", hyphened)
