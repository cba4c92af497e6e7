# SPDX-License-Identifier: Apache-2.0
"""The section Applications: figures over x, and one table per flow that has an application."""

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
    """Return the blocks of the section; empty if no flow has metrics of an application."""
    campaign = material.campaign
    applications = _describe_applications(material)
    composed: list[Block] = list(_compose_figures(material))
    for flow_summary in summarise_flows(campaign, material.table):
        where = f" at {to_words(campaign.panels)} {flow_summary.panel}" if campaign.panels else ""
        columns = [Column(capitalise(to_words(axis)), weight=1) for axis in flow_summary.axes]
        columns += [
            Column(APPLICATION_METRICS[name].title, "right", 1) for name in flow_summary.columns
        ]
        rows = [
            [
                *values,
                *(
                    format_mean(mean, digits=APPLICATION_METRICS[name].digits)
                    for name, mean in zip(flow_summary.columns, means, strict=True)
                ),
            ]
            for values, means in flow_summary.rows
        ]
        application = applications.get(flow_summary.flow, "application")
        composed.append(
            Table(f"Flow {flow_summary.flow}: {application}{where}.", columns, rows, small=True)
        )
    return composed


def _compose_figures(material: Material) -> Iterator[Block]:
    """Yield the figures of each panel, which show one metric of each flow over x.

    The metric of a flow is the first of LEADING_METRICS that has values. Yield no figure if x has a
    single value, or is the axis of the series.
    """
    campaign, summary = material.campaign, material.summary
    if len(summary.x.values) < 2 or campaign.x == campaign.series:
        return
    by_panel: dict[str, list[FlowSummary]] = {}
    for flow_summary in summarise_flows(campaign, material.table):
        by_panel.setdefault(flow_summary.panel, []).append(flow_summary)
    for number, (panel, flows) in enumerate(by_panel.items(), 1):
        curves = [_select_curves(flow_summary, summary.x.values) for flow_summary in flows]
        where = f" at {to_words(campaign.panels)} {panel}" if campaign.panels else ""
        for part, figure in enumerate(figures.make_application_figures(summary.x, curves), 1):
            yield Figure(
                f"applications-{number}-{part}",
                figures.render_svg(figure),
                f"Metrics of applications against {summary.x.phrase}{where}: one metric of each "
                f"flow. {describe_bars(summary)}",
                _describe_figures(curves, summary.x.values),
            )


def _select_curves(flow_summary: FlowSummary, values: list[str]) -> ApplicationCurves:
    """Return one curve per series: a flow's leading metric at each value of x.

    The leading metric is the first of LEADING_METRICS that has values.
    """
    name = next(name for name in LEADING_METRICS if name in flow_summary.columns)
    position = flow_summary.columns.index(name)
    means = {
        tuple(values_of_row): row_means[position] for values_of_row, row_means in flow_summary.rows
    }
    series = dict.fromkeys(values_of_row[0] for values_of_row, _ in flow_summary.rows)
    curves = [
        (name_of_series, [means.get((name_of_series, value)) for value in values])
        for name_of_series in series
    ]
    return ApplicationCurves(f"Flow {flow_summary.flow}", APPLICATION_METRICS[name].title, curves)


def _describe_figures(curves_of_flows: list[ApplicationCurves], values: list[str]) -> str:
    """Return the curves in words: the first and the last point of each curve."""
    sentences = []
    for flow_curves in curves_of_flows:
        parts = []
        for series, means in flow_curves.curves:
            points = [
                f"{mean.value:.3g} at {value}"
                for value, mean in zip(values, means, strict=True)
                if mean is not None
            ]
            ends = (
                f"from {points[0]} to {points[-1]}" if len(points) > 1 else (points or ["none"])[0]
            )
            parts.append(f"{series} {ends}")
        sentences.append(f"{flow_curves.title}, {flow_curves.y_label}: {'; '.join(parts)}.")
    return " ".join(sentences)


def define_metrics(material: Material) -> list[Block]:
    """Return definitions of the metrics that the tables show."""
    names = {
        name
        for flow_summary in summarise_flows(material.campaign, material.table)
        for name in flow_summary.columns
    }
    return [
        Definition(metric.head, None, metric.definition)
        for name, metric in APPLICATION_METRICS.items()
        if name in names
    ]


def _describe_applications(material: Material) -> dict[str, str]:
    """Return a description of each flow's application, by the flow's name.

    If an axis changes the application, the description names all applications.
    """
    descriptions: dict[str, dict[str, None]] = {}
    for plan in material.plans.values():
        for flow in plan.flows:
            if flow.application is not None:
                descriptions.setdefault(flow.name, {})[flow.application.describe()] = None
    return {name: " or ".join(names) for name, names in descriptions.items()}
