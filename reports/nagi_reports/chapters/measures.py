# SPDX-License-Identifier: Apache-2.0
"""The section Other metrics: means of further columns of the results."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import NONE, capitalise, format_mean, to_words
from nagi_reports.content import Block, Column, Paragraph, Table
from nagi_reports.summary import Mean, average_runs, average_topologies
from nagi_reports.text import name_panel


@dataclass(frozen=True)
class Measure:
    """A column of the results, with the heading and format of the report."""

    column: str
    head: str
    scale: float  # factor from the column's unit to the unit in `head`
    digits: int  # decimals


RETRANSMITTED = "retransmitted"  # computed from two columns
MEASURES = (
    Measure(RETRANSMITTED, "Retransmitted (%)", 100, 2),
    Measure("loss_rate", "Lost on the path (%)", 100, 2),
    Measure("rtt_mean_s", "RTT, mean (ms)", 1e3, 1),
    Measure("rtt_p99_s", "RTT, 99th percentile (ms)", 1e3, 1),
    Measure("queueing_delay_mean_s", "Queueing delay, mean (ms)", 1e3, 1),
    Measure("cwnd_mean_packets", "cwnd, mean (packets)", 1, 1),
    Measure("link_drop_probability", "Given up on media (%)", 100, 2),
    Measure("retries_per_hop", "Retries per hop", 1, 2),
    Measure("airtime_share", "Airtime (%)", 100, 1),
)


def compose_blocks(material: Material) -> list[Block]:
    """Return a paragraph and one table per panel; empty if no column of MEASURES has values."""
    campaign, summary = material.campaign, material.summary
    valid = material.table[material.table["status"] == "valid"]
    valid = valid.assign(
        **{RETRANSMITTED: valid["segments_retransmitted"] / valid["segments_sent"].clip(lower=1)}
        if "segments_retransmitted" in valid
        else {}
    )
    shown_measures = [
        measure
        for measure in MEASURES
        if measure.column in valid and valid[measure.column].notna().any()
    ]
    if not shown_measures:
        return []
    composed: list[Block] = [
        Paragraph(f"Each value is a mean over the same values of {summary.x.phrase} as NAGI.")
    ]
    for panel in summary.panels:
        panel_rows = valid
        if campaign.panels is not None:
            panel_rows = valid[valid[f"point.{campaign.panels}"] == panel.label]
        compared_x = [summary.x.values[position] for position in panel.compared]
        rows = []
        for curve in panel.curves:
            series_rows = panel_rows[panel_rows[f"point.{campaign.series}"] == curve.series]
            points = [
                series_rows[series_rows[f"point.{campaign.x}"] == value] for value in compared_x
            ]
            rows.append(
                [curve.series, *(_format_cell(points, measure) for measure in shown_measures)]
            )
        where = f" at {name_panel(summary, panel).lower()}" if summary.panels_axis else ""
        composed.append(
            Table(
                f"Other metrics{where}.",
                [
                    Column(capitalise(to_words(campaign.series)), weight=1),
                    *(Column(measure.head, "right", 1) for measure in shown_measures),
                ],
                rows,
                small=True,
            )
        )
    return composed


def _format_cell(points: list[pd.DataFrame], measure: Measure) -> str:
    """Return the mean over all points as text, or NONE if a point has no value."""
    mean = average_topologies([average_runs(rows, measure.column) for rows in points])
    if mean is None:
        return NONE
    scaled = Mean(mean.value * measure.scale, mean.halfwidth * measure.scale, mean.runs)
    return format_mean(scaled, digits=measure.digits)
