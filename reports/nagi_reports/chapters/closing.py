# SPDX-License-Identifier: Apache-2.0
"""The sections Definitions and Reproduction."""

from __future__ import annotations

import shlex

from nagi_contracts.records import CampaignRun

from nagi_reports.attribution import NO_THRESHOLD, REDUCED_BELOW, RESTORED_RTTS
from nagi_reports.chapters import applications
from nagi_reports.chapters.backends import Notes
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import (
    to_words,
)
from nagi_reports.content import (
    Block,
    Column,
    Commands,
    Definition,
    Facts,
    Table,
)
from nagi_reports.formula import fraction, root, row, squared, symbol, text, total
from nagi_reports.series import find_bottleneck


def compose_definitions(material: Material, notes: Notes) -> list[Block]:
    """Return the blocks of the section Definitions.

    `notes` are texts of backends; those on "queue" and "bottleneck" continue these definitions.
    """
    g, b, a = (symbol(name, "i") for name in "gba")
    flow = material.plan.flows[0]
    direction = find_bottleneck(material.plan, flow)
    transfer_note = (
        " The interval of a completed transfer ends when the last of its data arrives."
        if material.has_transfers
        else ""
    )
    return [
        Definition(
            "Goodput",
            row(
                symbol("g"),
                "=",
                fraction(
                    row(symbol("8"), "·", text("payload bytes delivered for the first time")),
                    text("measurement interval"),
                ),
            ),
            "In bit/s. From the receiver's capture: a byte counts when it first reaches the "
            "receiver's interface during the interval, in whatever order (RFC 2647, 3.17)."
            f"{transfer_note}",
        ),
        Definition(
            "Bottleneck",
            None,
            "b, the smallest rate configured on the flow's path, in bit/s of IP bytes. A rate that "
            "changes counts with its mean, a medium with its data rate. The bottleneck of flow "
            f"{flow.name} in the first run is {'medium' if direction.is_hop else 'link'} "
            f"{direction.link}.",
        ),
        Definition(
            "Achieved goodput",
            row(symbol("AG"), "=", text("(g, b)")),
            "The pair of goodput and bottleneck (Lee et al. 2008, 3.1).",
        ),
        Definition(
            "Achieved goodput index (AGI)",
            row(a, "=", fraction(g, b)),
            "On topology i (Lee et al. 2008, equation 1).",
        ),
        Definition(
            "Ceiling",
            row(
                text("ceiling"),
                "=",
                fraction(text("payload of a full-size segment"), text("its IP bytes")),
            ),
            "The largest AGI that headers permit. AGI / ceiling is 1 for a sender that fills the "
            "bottleneck.",
        ),
        Definition(
            "Normalised index (NAGI)",
            row(text("NAGI"), "=", fraction(symbol("1"), symbol("n")), total(a, "i", "n")),
            "The mean AGI over a set of topologies, here the values of "
            f"{material.summary.x.phrase} at which all series have valid runs (Lee et al. 2008, "
            "equation 2). The half width of its interval is the root of the sum of the AGIs' "
            "squared half widths, divided by n.",
        ),
        Definition(
            "Mean and 95 % interval",
            row(
                symbol("m"),
                "±",
                symbol("t", "0.975, k−1"),
                "·",
                fraction(symbol("s"), root(symbol("k"))),
            ),
            "Over k valid runs, with their standard deviation s and Student's t. A run with "
            "several flows counts with the mean of its flows. A single run has no interval.",
        ),
        Definition(
            "Queue",
            None,
            "Packets that have entered a link's queue and whose transmission has not begun. The "
            "transmission of a packet begins when the packet has arrived and the transmission of "
            "the previous packet has ended. It ends the propagation delay before the packet "
            "arrives at the other end." + notes["queue"],
        ),
        *applications.define_metrics(material),
        *_define_classification(material),
        *_define_fairness_metrics(material, notes),
    ]


def _define_fairness_metrics(material: Material, notes: Notes) -> list[Block]:
    """Return the definitions of fairness metrics; empty if no flows share a bottleneck."""
    if "share" not in material.table or material.table["share"].isna().all():
        return []
    g = symbol("g", "i")
    definitions: list[Block] = [
        Definition(
            "Jain's index",
            row(
                symbol("J"),
                "=",
                fraction(
                    squared(total(g, "i", "n"), is_sum=True),
                    row(symbol("n"), total(squared(g), "i", "n")),
                ),
            ),
            "Over the goodputs of the n flows that share a bottleneck, without background traffic "
            "(Jain, Chiu, Hawe 1984; RFC 5166, 2.3.1). Here, a flow's bottleneck is the direction "
            "of a link on its path with the smallest rate / number of crossing flows."
            + notes["bottleneck"],
        )
    ]
    if "harm_goodput" in material.table and material.table["harm_goodput"].notna().any():
        definitions.append(
            Definition(
                "Harm",
                row(
                    symbol("h"),
                    "=",
                    fraction(row(symbol("x"), "−", symbol("y")), symbol("x")),
                    text("of goodput, "),
                    fraction(row(symbol("y"), "−", symbol("x")), symbol("y")),
                    text("of RTT"),
                ),
                "x without competitors, y with competitors, in runs of the same repeat (Ware et "
                "al., HotNets 2019).",
            )
        )
    return definitions


def _define_classification(material: Material) -> list[Block]:
    """Return definitions of how losses are classified; empty if no losses were classified."""
    if "reactions" not in material.table:
        return []
    methods = set(material.table["reactions"].dropna())
    definitions: list[Block] = []
    if methods:
        definitions.append(
            Definition(
                "Lost segment",
                None,
                "A data segment of a flow, also a retransmission, that was lost on a link's "
                "channel or dropped by its queue, by the emulator's drop log. Losses of the whole "
                "run count.",
            )
        )
    if "told" in methods:
        definitions.append(
            Definition(
                "Classification, reported",
                None,
                "The first event of the scheme after the loss that covers the segment classifies "
                "the loss. An event covers segments from the first that is not acknowledged to the "
                "last that was sent. Events are three duplicate ACKs, a timeout, or a partial ACK "
                "at this segment, which has the classification of its recovery. A segment that is "
                "lost again during recovery, and of which later events show only that it was "
                "acknowledged, has the classification of this recovery. Other losses were not "
                "noticed, because the flow ended first, or another copy of the segment had "
                "arrived.",
            )
        )
    if "inferred" in methods:
        definitions.append(
            Definition(
                "Classification, inferred",
                None,
                "From TCP_INFO, sampled every "
                f"{material.plan.tcp_info_interval_s:g} s. The last sample outside of recovery "
                "before the segment was sent again is compared with the first sample outside of "
                "recovery after that. Congestion: the slow start threshold changed, or the window "
                f"fell below {REDUCED_BELOW * 100:.0f} % of its value. Channel loss: neither. "
                f"({' and '.join(NO_THRESHOLD)} sets no threshold on a loss, so only the window "
                "decides, from the last sample before to the samples of the following "
                f"{RESTORED_RTTS} RTTs.) "
                "Undecided: there are no such samples. Not noticed: the segment was not sent "
                "again. A reduction counts for all losses between the same two samples, and a "
                "reduction that no sample shows is missed. These errors grow with sampling "
                "interval / RTT.",
            )
        )
    return definitions


def compose_reproduction(
    material: Material, backend_programs: list[tuple[str, str | None]]
) -> list[Block]:
    """Return the blocks of the section Reproduction.

    Args:
        material: The records of the campaign.
        backend_programs: Name and SHA-256 of programs of backends. The SHA-256 of a program that
            was not used is None.
    """
    campaign = material.campaign
    seeds = _list_seeds(material)
    build = campaign.build
    command = campaign.command(f"experiments/{campaign.experiment}.yaml")
    lab_option = "-i INVENTORY" if campaign.lab == "physical" else f"--lab {campaign.lab}"
    analysis_command = ["nagi analyze DIRECTORY    # the same numbers from the recorded captures"]
    if campaign.keep.captures == "none":
        analysis_command = []
    other_programs = [
        ("nagi-traffic", build.nagi_traffic),
        *backend_programs,
        *build.parts.items(),
    ]
    return [
        Commands(
            [
                f"{shlex.join(command)} {lab_option}",
                *analysis_command,
                "nagi report DIRECTORY     # this report, equal to the byte",
            ]
        ),
        Facts(
            [
                ("Build", build.id),
                ("nagi-link", f"SHA-256 {build.nagi_link}"),
                ("nagi-agent", f"SHA-256 {build.nagi_agent}"),
                *((program, f"SHA-256 {digest}") for program, digest in other_programs if digest),
                (
                    "Runs",
                    "Every run's plan, captures, settings and verdict are in runs/RUN. The "
                    "table of all runs has the first digits of the SHA-256 of each manifest.json; "
                    "a manifest has the checksums of the other files.",
                ),
                (
                    "Seeds",
                    "They depend on campaign, links and repeat, not on the scheme: all schemes see "
                    "the same channel.",
                ),
            ]
        ),
        Table(
            "The seeds of all random draws.",
            [Column("Where", weight=1), Column("Seed", "right", mono=True)],
            seeds,
            small=True,
        ),
    ]


def _list_seeds(material: Material) -> list[list[str]]:
    """Return the rows of the table of seeds.

    Each row has two texts: the values of axes and the repeat that all runs with this seed have in
    common, and the seed. Axes that have one value in all runs are left out.
    """
    runs = [run for run in material.campaign.runs if run.run_id in material.plans]
    by_seed: dict[int, list[CampaignRun]] = {}
    for run in runs:
        by_seed.setdefault(material.plans[run.run_id].seed, []).append(run)
    axes = [
        axis
        for axis in runs[0].point
        if len({run.point[axis] for run in runs}) > 1
        and all(
            len({run.point[axis] for run in runs_of_seed}) == 1 for runs_of_seed in by_seed.values()
        )
    ]
    has_repeats = len({run.repeat for run in runs}) > 1
    rows = []
    for seed, runs_of_seed in by_seed.items():
        values = [f"{to_words(axis)} {runs_of_seed[0].point[axis]}" for axis in axes]
        values += [f"repeat {runs_of_seed[0].repeat + 1}"] if has_repeats else []
        rows.append([", ".join(values) or "all runs", str(seed)])
    return rows
