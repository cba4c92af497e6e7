# SPDX-License-Identifier: Apache-2.0
"""The section Results: AG, AGI and NAGI in figures and numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure as Drawing
from nagi_contracts.units import format_count

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


def compose_blocks(material: Material, outcomes: list[Outcome]) -> list[Block]:
    """Return the blocks of the section: an abstract, figures of AG, tables of NAGI, and notes."""
    summary = material.summary
    first_figure, *further_figures = _compose_figures(
        "ag",
        figures.make_goodput_figures(summary),
        f"Achieved goodput (AG) against {summary.x.phrase}",
        f"The thick grey line is the bottleneck rate. {describe_bars(summary)}",
        _describe_curves(summary, "Achieved goodput in Mb/s", "goodput_bps", 1e-6),
    )
    abstract = Paragraph(_compose_abstract(material, outcomes))
    return [
        abstract,
        first_figure,
        *_compose_nagi_tables(material),
        *_compose_notes(material),
        *further_figures,
    ]


def _compose_abstract(material: Material, outcomes: list[Outcome]) -> str:
    """Return a text on the number and length of runs, and the outcomes of statements."""
    summary, campaign, plan = material.summary, material.campaign, material.plan
    counts = [f"{summary.valid} valid"]
    for count, word in ((summary.invalid, "invalid"), (summary.failed, "failed or not run")):
        if count:
            counts.append(f"{count} {word}")
    times = sorted(Counter(tuple(run.point.values()) for run in campaign.runs).values())
    frequency = "once" if times[-1] == 1 else f"{times[-1]} times"
    if times[0] != times[-1]:
        frequency = f"{times[0]} to {times[-1]} times"
    measured = plan.measure.end_s - plan.measure.start_s
    transfer_clause = ", or until its transfer was complete" if material.has_transfers else ""
    text = (
        f"{format_count(summary.runs, 'run')} ({', '.join(counts)}) of real kernel TCP over "
        "emulated "
        f"{'links' if plan.links else 'media'}. Each point was run {frequency}; each run was "
        f"measured for {measured:g} s{transfer_clause}."
    )
    if outcomes:
        results = Counter(outcome.result for outcome in outcomes)
        parts = ", ".join(f"{count} {result}" for result, count in order_results(results))
        text += f" {format_count(len(outcomes), 'statement')} checked: {parts}."
    return text


def _compose_nagi_tables(material: Material) -> list[Block]:
    """Return tables of NAGI: one row per series, one column per panel, six panels per table."""
    summary = material.summary
    names = [curve.series for curve in summary.panels[0].curves]
    labels = [
        (name_panel(summary, panel) if summary.panels_axis else "NAGI")
        + describe_compared_points(summary, panel)
        for panel in summary.panels
    ]
    caption = (
        f"NAGI: the mean AGI over the values of {summary.x.phrase}"
        f"{mention_intervals(summary)}. Headers set a ceiling of {summary.panels[0].ceiling:.3f}."
    )
    blocks: list[Block] = []
    for part, first in enumerate(range(0, len(labels), 6)):
        rows = []
        for index, name in enumerate(names):
            means = [panel.curves[index].nagi for panel in summary.panels[first : first + 6]]
            rows.append([name, *map(format_mean, means)])
        panel_columns = [Column(label, "right", 1) for label in labels[first : first + 6]]
        blocks.append(
            Table(
                caption if part == 0 else "NAGI, further panels.",
                [
                    Column(capitalise(to_words(material.campaign.series)), weight=1),
                    *panel_columns,
                ],
                rows,
            )
        )
    return blocks


def _compose_notes(material: Material) -> list[Block]:
    """Return notes on schemes, points and runs that are left out; empty if there are none."""
    campaign, summary = material.campaign, material.summary
    notes = [f"Left out: {scheme}: {reason}." for scheme, reason in campaign.left_out.items()]
    notes += [note for panel in summary.panels if (note := explain_missing_points(summary, panel))]
    if summary.failed:
        notes.append(f"{format_count(summary.failed, 'run')} failed or not run: not in any mean.")
    if summary.invalid:
        notes.append(
            f"{format_count(summary.invalid, 'run')} invalid, as links did not do what the plan "
            "requires: listed under Certificate, not in any mean."
        )
    return [Bullets(notes)] if notes else []


def compose_index(material: Material) -> list[Block]:
    """Return the blocks of the section on AGI: figures of AGI and NAGI, and tables of AGI."""
    summary = material.summary
    x = summary.x.phrase
    blocks: list[Block] = [
        *_compose_figures(
            "agi",
            figures.make_index_figures(summary),
            f"AGI, goodput / bottleneck, against {x}",
            f"The thin grey line is the ceiling that headers set. {describe_bars(summary)}",
            _describe_curves(summary, "Achieved goodput index", "agi", 1.0),
        ),
        *_compose_figures(
            "nagi",
            figures.make_nagi_figures(summary),
            f"NAGI: the mean AGI over the {_describe_compared_values(summary)} of {x}",
            describe_bars(summary),
            _describe_bars_of_nagi(summary),
        ),
    ]
    numbers, unit = summary.x.to_numbers()
    heads = [f"{number:g} {unit}" for number in numbers] if unit else summary.x.values
    for panel in summary.panels:
        blocks += _compose_index_tables(summary, panel, heads)
    return blocks


def _describe_compared_values(summary: Summary) -> str:
    if all(len(panel.compared) == len(summary.x.values) for panel in summary.panels):
        return format_count(len(summary.x.values), "value")
    return "common values"


def _compose_index_tables(summary: Summary, panel: Panel, heads: list[str]) -> Iterator[Table]:
    """Yield tables of AGI of a panel: one row per value of x, one column per series.

    Args:
        summary: The results of the campaign.
        panel: The panel.
        heads: The heading of each row.
    """
    has_intervals = any(
        mean and not math.isnan(mean.halfwidth) for curve in panel.curves for mean in curve.agi
    )
    for curves in _pack_curves(panel.curves, min_width=15 if has_intervals else 7):
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
        where = f" at {name_panel(summary, panel).lower()}" if summary.panels_axis else ""
        yield Table(
            f"AGI{where}{mention_intervals(summary)}; the ceiling is {panel.ceiling:.3f}.",
            [Column(summary.x.title), *(Column(curve.series, "right", 1) for curve in curves)],
            rows,
            small=True,
            last_apart=True,
        )


def _pack_curves(curves: list[Curve], min_width: int) -> Iterator[list[Curve]]:
    """Yield groups of curves whose columns fit side by side in a table.

    Args:
        curves: The curves.
        min_width: The width of a column's numbers, in letters.
    """
    max_width, used_width = 100, 0
    packed: list[Curve] = []
    for curve in curves:
        longest_word = max(map(len, re.split(r"[-_ /+]", curve.series)))
        width = max(min_width, longest_word + 2)
        if packed and used_width + width > max_width:
            yield packed
            packed, used_width = [], 0
        packed.append(curve)
        used_width += width
    if packed:
        yield packed


def _compose_figures(
    name: str, drawings: Sequence[Drawing], content: str, legend: str, alt: str
) -> Iterator[Figure]:
    """Yield one figure per drawing.

    Args:
        name: Name of the figure; if there are several drawings, a number is added.
        drawings: The drawings.
        content: First sentence of the caption, without its full stop.
        legend: End of the caption.
        alt: Description for readers who do not see the figures.
    """
    for number, figure in enumerate(drawings, 1):
        has_parts = len(drawings) > 1
        yield Figure(
            f"{name}-{number}" if has_parts else name,
            figures.render_svg(figure),
            f"{content}{f' (part {number})' if has_parts else ''}. {legend}",
            alt,
        )


def _describe_curves(summary: Summary, content: str, attribute: str, scale: float) -> str:
    """Return the curves in words: the first and the last point of each curve.

    Args:
        summary: The results of the campaign.
        content: What the curves show, with the unit.
        attribute: The attribute of Curve that has the means.
        scale: Factor from the unit of the means to the unit in `content`.
    """
    sentences = [f"{content} against {summary.x.phrase}, one line per series."]
    for panel in summary.panels:
        parts = []
        for curve in panel.curves:
            means = getattr(curve, attribute)
            ends = [
                f"{mean.value * scale:.3g} at {x}"
                for x, mean in zip(summary.x.values, means, strict=True)
                if mean is not None
            ]
            range_of_means = (
                f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else (ends or ["no run"])[0]
            )
            parts.append(f"{curve.series} {range_of_means}")
        label = f"{name_panel(summary, panel)}: " if summary.panels_axis else ""
        sentences.append(f"{label}{'; '.join(parts)}.")
    return " ".join(sentences)


def _describe_bars_of_nagi(summary: Summary) -> str:
    sentences = ["NAGI, one bar per series."]
    for panel in summary.panels:
        label = f"{name_panel(summary, panel)}: " if summary.panels_axis else ""
        parts = [f"{curve.series} {format_mean(curve.nagi)}" for curve in panel.curves]
        sentences.append(f"{label}{'; '.join(parts)}.")
    return " ".join(sentences)
