# SPDX-License-Identifier: Apache-2.0
"""How applications fared: figures over x, and a table a flow that has one."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_reports import figures
from nagi_reports.applications import (
    APPLICATION_METRICS,
    LEADING_METRICS,
    FlowSummary,
    summarise_flows,
)
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import capitalise, describe_bars, format_mean, to_words
from nagi_reports.content import Block, Column, Definition, Figure, Table
from nagi_reports.figures import ApplicationCurves


def compose_blocks(material: Material) -> list[Block]:
    """Nothing where no flow is an application's."""
    campaign = material.campaign
    said = _applications(material)
    found: list[Block] = list(_figures(material))
    for each in summarise_flows(campaign, material.table):
        which = f" at {to_words(campaign.panels)} {each.panel}" if campaign.panels else ""
        heads = [Column(capitalise(to_words(axis)), weight=1) for axis in each.axes]
        heads += [Column(APPLICATION_METRICS[name].title, "right", 1) for name in each.columns]
        rows = [
            [
                *values,
                *(
                    format_mean(mean, digits=APPLICATION_METRICS[name].digits)
                    for name, mean in zip(each.columns, means, strict=True)
                ),
            ]
            for values, means in each.rows
        ]
        application = said.get(each.flow, "application")
        found.append(Table(f"Flow {each.flow}: {application}{which}.", heads, rows, small=True))
    return found


def _figures(material: Material) -> Iterator[Block]:
    """The first of LEADING of each flow over x, a figure a panel; nothing of a single value of x,
    or where x is the series."""
    campaign, summary = material.campaign, material.summary
    if len(summary.x.values) < 2 or campaign.x == campaign.series:
        return
    by_panel: dict[str, list[FlowSummary]] = {}
    for each in summarise_flows(campaign, material.table):
        by_panel.setdefault(each.panel, []).append(each)
    for number, (panel, flows) in enumerate(by_panel.items(), 1):
        drawn = [_curves(each, summary.x.values) for each in flows]
        where = f" at {to_words(campaign.panels)} {panel}" if campaign.panels else ""
        for part, figure in enumerate(figures.application_metrics(summary.x, drawn), 1):
            yield Figure(
                f"applications-{number}-{part}",
                figures.render_svg(figure),
                f"How applications fared against {summary.x.in_words}{where}: one metric of each "
                f"flow. {describe_bars(summary)}",
                _alt(drawn, summary.x.values),
            )


def _curves(each: FlowSummary, values: list[str]) -> ApplicationCurves:
    name = next(name for name in LEADING_METRICS if name in each.columns)
    place = each.columns.index(name)
    means = {tuple(at): found[place] for at, found in each.rows}
    series = dict.fromkeys(at[0] for at, _ in each.rows)
    curves = [(one, [means.get((one, value)) for value in values]) for one in series]
    return ApplicationCurves(f"Flow {each.flow}", APPLICATION_METRICS[name].title, curves)


def _alt(drawn: list[ApplicationCurves], values: list[str]) -> str:
    """The curves in words: where each begins and ends."""
    said = []
    for each in drawn:
        parts = []
        for series, means in each.curves:
            known = [
                f"{mean.value:.3g} at {value}"
                for value, mean in zip(values, means, strict=True)
                if mean is not None
            ]
            ends = f"from {known[0]} to {known[-1]}" if len(known) > 1 else (known or ["none"])[0]
            parts.append(f"{series} {ends}")
        said.append(f"{each.title}, {each.y_label}: {'; '.join(parts)}.")
    return " ".join(said)


def define_metrics(material: Material) -> list[Block]:
    """Of what the tables show."""
    known = {
        name for each in summarise_flows(material.campaign, material.table) for name in each.columns
    }
    return [
        Definition(measured.head, None, measured.definition)
        for name, measured in APPLICATION_METRICS.items()
        if name in known
    ]


def _applications(material: Material) -> dict[str, str]:
    """Flow -> its application; where an axis changes that, each."""
    found: dict[str, dict[str, None]] = {}
    for plan in material.plans.values():
        for flow in plan.flows:
            if flow.application is not None:
                found.setdefault(flow.name, {})[flow.application.describe()] = None
    return {name: " or ".join(words) for name, words in found.items()}
