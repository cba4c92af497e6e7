# SPDX-License-Identifier: Apache-2.0
"""Loss differentiation: how many channel losses each scheme classified as congestion, and how many
queue losses as channel losses."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from nagi_contracts.units import count_of

from nagi_reports import figures
from nagi_reports.attribution import (
    KEPT,
    MISTAKE,
    NO_THRESHOLD,
    OUTCOMES,
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

MAX_PANELS = 4  # more are taken together
_SOURCES = {"told": "reported", "inferred": "inferred"}  # `reactions` of results


def compose_blocks(material: Material) -> list[Block]:
    """A figure, and a table a panel; nothing where no flow lost anything, or nothing is known."""
    table = material.table
    if "reactions" not in table:
        return []
    known = table[(table["status"] == "valid") & table["reactions"].notna()]
    groups = [(label, list(_losses(material, rows))) for label, rows in _panels(material, known)]
    groups = [(label, senders) for label, senders in groups if senders]
    if not any(each.channel.total + each.queue.total for _, senders in groups for each in senders):
        return []
    found: list[Block] = [
        Paragraph(_words(material, known)),
        Figure(
            "losses",
            figures.render_svg(figures.loss_classification(groups)),
            "How each scheme classified its lost segments, as shares; the number beside a bar is "
            "how many there were. Congestion is wrong for channel losses (left), channel loss is "
            "wrong for queue losses (right).",
            _alt(groups),
        ),
    ]
    for label, senders in groups:
        which = f" at {label[:1].lower()}{label[1:]}" if label else ""
        found.append(_table(material, which, senders))
    return found


def _panels(material: Material, known: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    summary, campaign = material.summary, material.campaign
    if summary.panels_axis is None or len(summary.panels) > MAX_PANELS:
        yield "", known
        return
    for panel in summary.panels:
        inside = known[known[f"point.{campaign.panels}"] == panel.label]
        yield name_panel(summary, panel), inside


def _losses(material: Material, rows: pd.DataFrame) -> Iterator[ClassifiedLosses]:
    """A row a series; where its flows have several schemes, a row a scheme of them."""
    campaign = material.campaign
    for name in dict.fromkeys(run.point[campaign.series] for run in campaign.runs):
        mine = rows[rows[f"point.{campaign.series}"] == name]
        schemes = list(dict.fromkeys(mine["scheme"]))
        for scheme in schemes:
            of_scheme = mine[mine["scheme"] == scheme]
            other = len(schemes) > 1 and scheme != name
            yield ClassifiedLosses(
                f"{scheme} beside {name}" if other else name,
                " and ".join(_SOURCES[each] for each in dict.fromkeys(of_scheme["reactions"])),
                sum_classified(of_scheme, "channel"),
                sum_classified(of_scheme, "queue"),
            )


def _words(material: Material, known: pd.DataFrame) -> str:
    summary = material.summary
    runs = known["run_id"].nunique()
    over = [f"all values of {summary.x.in_words}"]
    if len(summary.panels) > MAX_PANELS and summary.panels_axis is not None:
        over.append(f"of {summary.panels_axis.in_words}")
    said = (
        "Links record every packet they drop, with the cause. How the sender classified the loss "
        "is reported by nagi's own schemes. For the kernel's schemes it is inferred from slow "
        f"start threshold and window, sampled every {material.plan.tcp_info_interval_s:g} s. The "
        f"counts are of data segments lost in {count_of(runs, 'valid run')}, retransmissions "
        f"included, over {' and '.join(over)}."
    )
    if known["congestion_control"].isin(NO_THRESHOLD).any():
        said += (
            f" {' and '.join(NO_THRESHOLD)} sets no threshold on a loss: its losses count as "
            f"classified as congestion if the window stays below {KEPT * 100:.0f} % of its earlier "
            f"value for {RESTORED_RTTS} RTTs, as it also does at the end of its startup."
        )
    marks = known[known["mark_reactions"].fillna(0).astype(float) > 0]
    if len(marks):
        counts = marks.groupby("scheme", sort=False)["mark_reactions"].sum()
        each = ", ".join(f"{scheme} {int(count):,}" for scheme, count in counts.items())
        said += f" Reductions for congestion marks (ECN) are not among them: {each}."
    return said


def _table(material: Material, which: str, senders: list[ClassifiedLosses]) -> Table:
    runs = [share.runs for each in senders for share in (*each.channel.shares, *each.queue.shares)]
    said = ", with 95 % intervals over runs" if max(runs, default=0) > 1 else ""
    return Table(
        f"Loss differentiation{which}{said}. The rest was classified correctly.",
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
                each.name,
                each.source,
                *_cells(each.channel, MISTAKE["channel"]),
                *_cells(each.queue, MISTAKE["queue"]),
            ]
            for each in senders
        ],
        small=True,
    )


def _cells(classified: Classified, mistake: int) -> list[str]:
    others = range(UNDECIDED, len(OUTCOMES))
    if not classified.shares:
        return ["0", NONE, *(NONE for _ in others)]
    share = classified.shares[mistake]
    percent = Mean(share.value * 100, share.halfwidth * 100, share.runs)
    return [
        f"{classified.total:,}",
        format_mean(percent, digits=1),
        *(f"{classified.shares[outcome].value * 100:.1f}" for outcome in others),
    ]


def _alt(groups: list[tuple[str, list[ClassifiedLosses]]]) -> str:
    said = ["How lost segments were classified, a bar per row and cause."]
    for label, senders in groups:
        parts = []
        for each in senders:
            causes = []
            for cause, classified in (("channel", each.channel), ("queue", each.queue)):
                shares = ", ".join(
                    f"{share.value * 100:.0f} % {outcome}"
                    for outcome, share in zip(OUTCOMES, classified.shares, strict=False)
                )
                causes.append(
                    f"{classified.total} {cause} losses" + (f" ({shares})" if shares else "")
                )
            parts.append(f"{each.name}, {each.source}: {', '.join(causes)}")
        said.append(f"{f'{label}: ' if label else ''}{'; '.join(parts)}.")
    return " ".join(said)
