# SPDX-License-Identifier: Apache-2.0
"""What was achieved: AG, AGI and NAGI, in figures and numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure as Drawing
from nagi_contracts.units import count_of

from nagi_reports import figures
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.statements import order_results
from nagi_reports.chapters.words import (
    capitalise,
    describe_bars,
    format_mean,
    mention_intervals,
    to_words,
)
from nagi_reports.content import (
    Block,
    Bullets,
    Column,
    Figure,
    Paragraph,
    Table,
)
from nagi_reports.outcomes import Outcome
from nagi_reports.summary import Curve, Panel, Summary
from nagi_reports.text import describe_compared_points, explain_missing_points, name_panel


def compose_blocks(material: Material, found: list[Outcome]) -> list[Block]:
    summary = material.summary
    first, *others = _figures(
        "ag",
        figures.achieved_goodput(summary),
        f"Achieved goodput (AG) against {summary.x.in_words}",
        f"The thick grey line is the bottleneck rate. {describe_bars(summary)}",
        _alt_of_curves(summary, "Achieved goodput in Mb/s", "goodput_bps", 1e-6),
    )
    abstract = Paragraph(_abstract(material, found))
    return [abstract, first, *_headline(material), *_notes(material), *others]


def _abstract(material: Material, found: list[Outcome]) -> str:
    summary, campaign, plan = material.summary, material.campaign, material.plan
    counts = [f"{summary.valid} valid"]
    for count, word in ((summary.invalid, "invalid"), (summary.failed, "failed or not run")):
        if count:
            counts.append(f"{count} {word}")
    times = sorted(Counter(tuple(run.point.values()) for run in campaign.runs).values())
    each = "once" if times[-1] == 1 else f"{times[-1]} times"
    if times[0] != times[-1]:
        each = f"{times[0]} to {times[-1]} times"
    measured = plan.measure.end_s - plan.measure.start_s
    until = ", or until its transfer was complete" if material.has_transfers else ""
    said = (
        f"{count_of(summary.runs, 'run')} ({', '.join(counts)}) of real kernel TCP over emulated "
        f"{'links' if plan.links else 'media'}. Each point was run {each}; each run was "
        f"measured for {measured:g} s{until}."
    )
    if found:
        results = Counter(outcome.result for outcome in found)
        parts = ", ".join(f"{count} {result}" for result, count in order_results(results))
        said += f" {count_of(len(found), 'statement')} checked: {parts}."
    return said


def _headline(material: Material) -> list[Block]:
    """NAGI of every series in every panel."""
    summary = material.summary
    names = [curve.series for curve in summary.panels[0].curves]
    labels = [
        (name_panel(summary, panel) if summary.panels_axis else "NAGI")
        + describe_compared_points(summary, panel)
        for panel in summary.panels
    ]
    caption = (
        f"NAGI: the mean AGI over the values of {summary.x.in_words}"
        f"{mention_intervals(summary)}. Headers set a ceiling of {summary.panels[0].ceiling:.3f}."
    )
    blocks: list[Block] = []
    for part, first in enumerate(range(0, len(labels), 6)):
        rows = []
        for index, name in enumerate(names):
            means = [panel.curves[index].nagi for panel in summary.panels[first : first + 6]]
            rows.append([name, *map(format_mean, means)])
        heads = [Column(label, "right", 1) for label in labels[first : first + 6]]
        blocks.append(
            Table(
                caption if part == 0 else "NAGI, further panels.",
                [
                    Column(capitalise(to_words(material.campaign.series)), weight=1),
                    *heads,
                ],
                rows,
            )
        )
    return blocks


def _notes(material: Material) -> list[Block]:
    campaign, summary = material.campaign, material.summary
    notes = [f"Left out: {scheme}: {why}." for scheme, why in campaign.left_out.items()]
    notes += [note for panel in summary.panels if (note := explain_missing_points(summary, panel))]
    if summary.failed:
        notes.append(f"{count_of(summary.failed, 'run')} failed or not run: not in any mean.")
    if summary.invalid:
        notes.append(
            f"{count_of(summary.invalid, 'run')} invalid, as links did not do what the plan asks: "
            "listed under Certificate, not in any mean."
        )
    return [Bullets(notes)] if notes else []


def compose_index(material: Material) -> list[Block]:
    summary = material.summary
    x = summary.x.in_words
    blocks: list[Block] = [
        *_figures(
            "agi",
            figures.achieved_goodput_index(summary),
            f"AGI, goodput / bottleneck, against {x}",
            f"The thin grey line is the ceiling that headers set. {describe_bars(summary)}",
            _alt_of_curves(summary, "Achieved goodput index", "agi", 1.0),
        ),
        *_figures(
            "nagi",
            figures.normalised_index(summary),
            f"NAGI: the mean AGI over the {_compared_values(summary)} of {x}",
            describe_bars(summary),
            _alt_of_bars(summary),
        ),
    ]
    numbers, unit = summary.x.to_numbers()
    heads = [f"{number:g} {unit}" for number in numbers] if unit else summary.x.values
    for panel in summary.panels:
        blocks += _index_tables(summary, panel, heads)
    return blocks


def _compared_values(summary: Summary) -> str:
    if all(len(panel.compared) == len(summary.x.values) for panel in summary.panels):
        return count_of(len(summary.x.values), "value")
    return "common values"


def _index_tables(summary: Summary, panel: Panel, heads: list[str]) -> Iterator[Table]:
    """AGI in numbers: a row a value of x, a column a series; as many tables as it takes."""
    intervals = any(mean and not math.isnan(mean.halfwidth) for c in panel.curves for mean in c.agi)
    for curves in _packed(panel.curves, cell=15 if intervals else 7):
        rows = [
            [head, *(format_mean(curve.agi[index]) for curve in curves)]
            for index, head in enumerate(heads)
        ]
        rows.append(
            [
                f"NAGI{describe_compared_points(summary, panel)}",
                *(format_mean(curve.nagi) for curve in curves),
            ]
        )
        which = f" at {name_panel(summary, panel).lower()}" if summary.panels_axis else ""
        yield Table(
            f"AGI{which}{mention_intervals(summary)}; the ceiling is {panel.ceiling:.3f}.",
            [Column(summary.x.title), *(Column(curve.series, "right", 1) for curve in curves)],
            rows,
            small=True,
            last_apart=True,
        )


def _packed(curves: list[Curve], cell: int) -> Iterator[list[Curve]]:
    """Curves whose columns fit beside each other in a line of about 95 letters."""
    room, taken = 100, 0
    found: list[Curve] = []
    for curve in curves:
        longest = max(map(len, re.split(r"[-_ /+]", curve.series)))
        width = max(cell, longest + 2)
        if found and taken + width > room:
            yield found
            found, taken = [], 0
        found.append(curve)
        taken += width
    if found:
        yield found


def _figures(
    name: str, drawn: Sequence[Drawing], what: str, legend: str, alt: str
) -> Iterator[Figure]:
    """One figure in as many parts as were drawn; the caption is what is shown, and its legend."""
    for number, figure in enumerate(drawn, 1):
        of_several = len(drawn) > 1
        yield Figure(
            f"{name}-{number}" if of_several else name,
            figures.render_svg(figure),
            f"{what}{f' (part {number})' if of_several else ''}. {legend}",
            alt,
        )


def _alt_of_curves(summary: Summary, what: str, column: str, scale: float) -> str:
    """The curves in words: where each begins and ends."""
    said = [f"{what} against {summary.x.in_words}, a line a series."]
    for panel in summary.panels:
        parts = []
        for curve in panel.curves:
            means = getattr(curve, column)
            ends = [
                f"{mean.value * scale:.3g} at {x}"
                for x, mean in zip(summary.x.values, means, strict=True)
                if mean is not None
            ]
            said_of = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else (ends or ["no run"])[0]
            parts.append(f"{curve.series} {said_of}")
        label = f"{name_panel(summary, panel)}: " if summary.panels_axis else ""
        said.append(f"{label}{'; '.join(parts)}.")
    return " ".join(said)


def _alt_of_bars(summary: Summary) -> str:
    said = ["NAGI as a bar a series."]
    for panel in summary.panels:
        label = f"{name_panel(summary, panel)}: " if summary.panels_axis else ""
        parts = [f"{curve.series} {format_mean(curve.nagi)}" for curve in panel.curves]
        said.append(f"{label}{'; '.join(parts)}.")
    return " ".join(said)
