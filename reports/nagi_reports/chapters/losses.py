# SPDX-License-Identifier: Apache-2.0
"""The section Loss differentiation: how each scheme classified channel losses and queue losses."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from nagi_contracts.units import format_count

from nagi_reports import figures
from nagi_reports.attribution import (
    MISTAKE,
    NO_THRESHOLD,
    OUTCOMES,
    REDUCED_BELOW,
    RESTORED_RTTS,
    UNDECIDED,
    Classified,
    sum_classified,
)
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import NONE, capitalise, format_mean, to_words
from nagi_reports.content import Block, Column, Figure, Paragraph, Table
from nagi_reports.figures import ClassifiedLosses
from nagi_reports.summary import Mean
from nagi_reports.text import name_panel

MAX_PANELS = 4  # if there are more panels, all are combined
_SOURCES = {"told": "reported", "inferred": "inferred"}  # value of `reactions` -> word in reports


def compose_blocks(material: Material) -> list[Block]:
    """Return a paragraph, a figure and one table per panel; empty if no losses were classified."""
    table = material.table
    if "reactions" not in table:
        return []
    classified_rows = table[(table["status"] == "valid") & table["reactions"].notna()]
    groups = [
        (label, list(_sum_losses(material, panel_rows)))
        for label, panel_rows in _split_by_panel(material, classified_rows)
    ]
    groups = [(label, rows) for label, rows in groups if rows]
    if not any(row.channel.total + row.queue.total for _, rows in groups for row in rows):
        return []
    composed: list[Block] = [
        Paragraph(_compose_introduction(material, classified_rows)),
        Figure(
            "losses",
            figures.render_svg(figures.make_loss_figure(groups)),
            "How each scheme classified its lost segments, as shares, with the number of lost "
            "segments next to each bar. Congestion is wrong for channel losses (left), channel "
            "loss is wrong for queue losses (right).",
            _describe_figure(groups),
        ),
    ]
    for label, rows in groups:
        where = f" at {label[:1].lower()}{label[1:]}" if label else ""
        composed.append(_compose_table(material, where, rows))
    return composed


def _split_by_panel(
    material: Material, classified_rows: pd.DataFrame
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield label and rows of each panel; all rows, with an empty label, if panels are combined."""
    summary, campaign = material.summary, material.campaign
    if summary.panels_axis is None or len(summary.panels) > MAX_PANELS:
        yield "", classified_rows
        return
    for panel in summary.panels:
        panel_rows = classified_rows[classified_rows[f"point.{campaign.panels}"] == panel.label]
        yield name_panel(summary, panel), panel_rows


def _sum_losses(material: Material, rows: pd.DataFrame) -> Iterator[ClassifiedLosses]:
    """Yield the classified losses of each series, summed over `rows`.

    If flows of a series have several schemes, yield the losses of each scheme.
    """
    campaign = material.campaign
    for name in dict.fromkeys(run.point[campaign.series] for run in campaign.runs):
        series_rows = rows[rows[f"point.{campaign.series}"] == name]
        schemes = list(dict.fromkeys(series_rows["scheme"]))
        for scheme in schemes:
            scheme_rows = series_rows[series_rows["scheme"] == scheme]
            is_competitor = len(schemes) > 1 and scheme != name
            yield ClassifiedLosses(
                f"{scheme} beside {name}" if is_competitor else name,
                " and ".join(
                    _SOURCES[method] for method in dict.fromkeys(scheme_rows["reactions"])
                ),
                sum_classified(scheme_rows, "channel"),
                sum_classified(scheme_rows, "queue"),
            )


def _compose_introduction(material: Material, classified_rows: pd.DataFrame) -> str:
    """Return the paragraph on how losses were recorded and classified."""
    summary = material.summary
    runs = classified_rows["run_id"].nunique()
    scope = [f"all values of {summary.x.phrase}"]
    if len(summary.panels) > MAX_PANELS and summary.panels_axis is not None:
        scope.append(f"of {summary.panels_axis.phrase}")
    text = (
        "Links record every packet they drop, with the cause. How the sender classified the loss "
        "is reported by nagi's own schemes. For the kernel's schemes it is inferred from slow "
        f"start threshold and window, sampled every {material.plan.tcp_info_interval_s:g} s. The "
        f"counts are of data segments lost in {format_count(runs, 'valid run')}, retransmissions "
        f"included, over {' and '.join(scope)}."
    )
    if classified_rows["congestion_control"].isin(NO_THRESHOLD).any():
        text += (
            f" {' and '.join(NO_THRESHOLD)} sets no threshold on a loss: its losses count as "
            f"classified as congestion if the window stays below {REDUCED_BELOW * 100:.0f} % of "
            f"its earlier value for {RESTORED_RTTS} RTTs, as it also does at the end of its "
            "startup."
        )
    marks = classified_rows[classified_rows["mark_reactions"].fillna(0).astype(float) > 0]
    if len(marks):
        counts = marks.groupby("scheme", sort=False)["mark_reactions"].sum()
        counts_in_words = ", ".join(f"{scheme} {int(count):,}" for scheme, count in counts.items())
        text += f" Reductions for congestion marks (ECN) are not included: {counts_in_words}."
    return text


def _compose_table(material: Material, where: str, rows: list[ClassifiedLosses]) -> Table:
    """Return the table of losses by classification, one row per series or scheme."""
    runs = [share.runs for row in rows for share in (*row.channel.shares, *row.queue.shares)]
    interval_clause = ", with 95 % intervals over runs" if max(runs, default=0) > 1 else ""
    return Table(
        f"Loss differentiation{where}{interval_clause}. Other losses were classified correctly.",
        [
            Column(capitalise(to_words(material.campaign.series)), weight=1),
            Column("Source"),
            Column("Channel losses", "right"),
            Column("as congestion (%)", "right", 1),
            *(Column(f"{outcome} (%)", "right", 1) for outcome in OUTCOMES[UNDECIDED:]),
            Column("Queue losses", "right"),
            Column("as channel loss (%)", "right", 1),
            *(Column(f"{outcome} (%)", "right", 1) for outcome in OUTCOMES[UNDECIDED:]),
        ],
        [
            [
                row.name,
                row.source,
                *_format_cells(row.channel, MISTAKE["channel"]),
                *_format_cells(row.queue, MISTAKE["queue"]),
            ]
            for row in rows
        ],
        small=True,
    )


def _format_cells(classified: Classified, mistake: int) -> list[str]:
    """Return the cells on the losses of one cause: their number, and three shares of them.

    The shares are of losses classified wrongly, of undecided losses and of losses not noticed.

    Args:
        classified: The losses.
        mistake: The wrong outcome, as a position in OUTCOMES.
    """
    other_outcomes = range(UNDECIDED, len(OUTCOMES))
    if not classified.shares:
        return ["0", NONE, *(NONE for _ in other_outcomes)]
    share = classified.shares[mistake]
    percent = Mean(share.value * 100, share.halfwidth * 100, share.runs)
    return [
        f"{classified.total:,}",
        format_mean(percent, digits=1),
        *(f"{classified.shares[outcome].value * 100:.1f}" for outcome in other_outcomes),
    ]


def _describe_figure(groups: list[tuple[str, list[ClassifiedLosses]]]) -> str:
    """Return the figure in words."""
    sentences = ["How lost segments were classified, one bar per row and cause."]
    for label, rows in groups:
        parts = []
        for row in rows:
            causes = []
            for cause, classified in (("channel", row.channel), ("queue", row.queue)):
                shares = ", ".join(
                    f"{share.value * 100:.0f} % {outcome}"
                    for outcome, share in zip(OUTCOMES, classified.shares, strict=False)
                )
                causes.append(
                    f"{classified.total} {cause} losses" + (f" ({shares})" if shares else "")
                )
            parts.append(f"{row.name}, {row.source}: {', '.join(causes)}")
        sentences.append(f"{f'{label}: ' if label else ''}{'; '.join(parts)}.")
    return " ".join(sentences)
