# SPDX-License-Identifier: Apache-2.0
"""The section Time series: window, RTT and queue of runs that a rule selects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nagi_reports import figures
from nagi_reports.chapters.backends import Notes
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import to_words
from nagi_reports.content import (
    Block,
    Figure,
    Paragraph,
)
from nagi_reports.series import RunSeries, read_series
from nagi_reports.summary import Panel, Summary
from nagi_reports.text import name_panel


@dataclass(frozen=True)
class ChosenRuns:
    """The runs that are shown over time in one panel, one per series."""

    panel: Panel
    x: str  # value of x; empty if x is the axis of the series
    runs: list[tuple[str, str | None]]  # series and run id; None without a valid run

    def describe_point(self, summary: Summary) -> str:
        """Return panel and value of x in words."""
        x = f"{summary.x.phrase} {self.x}" if self.x else f"each {summary.x.phrase}"
        return f"{name_panel(summary, self.panel).lower()}, {x}" if summary.panels_axis else x


MAX_PANELS = 3  # number of panels of which runs are shown
MAX_FLOWS = 4  # number of flows that are shown per run


_VERDICTS = (
    " Marks at the edges of the window: the scheme classified a loss as congestion (upper edge) or "
    "as channel loss (lower edge; grey: undecided)."
)


def choose_runs(material: Material) -> list[ChosenRuns]:
    """Choose one run per series and panel; panels without a valid run are left out.

    All runs of a panel have the same value of x: the middle one of the values at which the largest
    number of series have a valid run. If a series has several valid runs at this value, the run
    with the median AGI (the lower one of two) is chosen. If there are more than MAX_PANELS panels,
    only the first, the middle and the last are used.
    """
    campaign, summary = material.campaign, material.summary
    valid = material.table[material.table["status"] == "valid"]
    panels = summary.panels
    if len(panels) > MAX_PANELS:
        panels = [panels[0], panels[len(panels) // 2], panels[-1]]
    selected = []
    for panel in panels:
        panel_rows = valid
        if campaign.panels is not None:
            panel_rows = valid[valid[f"point.{campaign.panels}"] == panel.label]
        series_counts = [
            sum(curve.agi[i] is not None for curve in panel.curves)
            for i in range(len(summary.x.values))
        ]
        positions = [i for i, count in enumerate(series_counts) if count == max(series_counts)]
        if not max(series_counts):
            continue
        x = (
            ""
            if campaign.x == campaign.series
            else summary.x.values[positions[len(positions) // 2]]
        )
        point_rows = panel_rows[panel_rows[f"point.{campaign.x}"] == x] if x else panel_rows
        runs: list[tuple[str, str | None]] = []
        for curve in panel.curves:
            series_rows = point_rows[point_rows[f"point.{campaign.series}"] == curve.series]
            means = (
                series_rows.groupby("run_id")["agi"].mean().sort_index().sort_values(kind="stable")
            )
            runs.append(
                (curve.series, str(means.index[(len(means) - 1) // 2]) if len(means) else None)
            )
        selected.append(ChosenRuns(panel, x, runs))
    return selected


def compose_blocks(material: Material, notes: Notes) -> list[Block]:
    """Return the blocks of the section; empty if no chosen run has values over time.

    `notes` are texts of backends; the text on "time series" is appended to the introduction.
    """
    summary = material.summary
    blocks: list[Block] = []
    for number, chosen in enumerate(choose_runs(material), 1):
        where = chosen.describe_point(summary)
        rows = [row for name, run in chosen.runs for row in _read_rows(material, name, run)]
        for first in range(0, len(rows), figures.MAX_ROWS):
            part = rows[first : first + figures.MAX_ROWS]
            recorded = [series for _, series in part if series is not None]
            if not any(series.has_curves for series in recorded):
                continue
            links = " and ".join(sorted({series.bottleneck for series in recorded}))
            has_verdicts = any(series.verdicts for series in recorded)
            label = f"-{number}" + (f"-{first // figures.MAX_ROWS + 1}" if first else "")
            blocks.append(
                Figure(
                    f"time{label}",
                    figures.render_svg(figures.make_time_series_figure(part)),
                    f"At {where}: congestion window and slow start threshold, smoothed RTT, and "
                    f"the queue at the bottleneck ({links or 'none'}). Rows share a scale unless "
                    f"their maxima differ by more than a factor of {figures.MAX_SCALE_RATIO:g}."
                    f"{_VERDICTS if has_verdicts else ''}",
                    _describe_figure(where, part),
                    floats=len(part) > 3,  # a small figure stays near its text
                )
            )
    if not blocks:
        return []
    panels = (
        f"the first, the middle and the last of {len(summary.panels)} panels"
        if len(summary.panels) > MAX_PANELS
        else "each panel"
    )
    middle = f" at the middle value of {summary.x.phrase}, of the values with the most valid runs"
    if material.campaign.x == material.campaign.series:
        middle = ""
    introduction = (
        f"One run per {to_words(material.campaign.series)} is shown for {panels}: the run with the "
        f"median AGI{middle}. Window and RTT are sampled from the sender's kernel every "
        f"{material.plan.tcp_info_interval_s:g} s. The queue follows from the emulator's record of "
        "every packet's arrival and departure; packets in transmission are not counted."
    )
    introduction += notes["time series"]
    flows = max(len(plan.flows) for plan in material.plans.values())
    if flows > MAX_FLOWS:
        introduction += f" Of up to {flows} flows of a run, the first {MAX_FLOWS} are shown."
    return [Paragraph(introduction), *blocks]


def _read_rows(
    material: Material, name: str, run_id: str | None
) -> Iterator[tuple[str, RunSeries | None]]:
    """Yield label and values over time of each of the first MAX_FLOWS flows of a run.

    If `run_id` is None, yield the label `name` without values.
    """
    if run_id is None:
        yield name, None
        return
    flows = material.plans[run_id].flows
    for number, flow in enumerate(flows[:MAX_FLOWS]):
        label = name if len(flows) == 1 else f"{name}, flow {flow.name}"
        yield label, read_series(material.run_directory(run_id), number)


def _describe_figure(where: str, rows: list[tuple[str, RunSeries | None]]) -> str:
    """Return the figure in words: the largest values of each row."""
    parts = []
    for name, series in rows:
        if series is None:
            parts.append(f"{name}: no valid run")
            continue
        phrases = []
        if series.cwnd is not None:
            phrases.append(f"window up to {series.cwnd.maximum.max():.0f} packets")
        if series.verdicts is not None:
            phrases.append(
                f"losses classified {len(series.verdicts.congestion_s)} times as congestion and "
                f"{len(series.verdicts.channel_s)} times as channel loss"
            )
        if series.rtt_ms is not None:
            phrases.append(f"RTT up to {series.rtt_ms.maximum.max():.0f} ms")
        if series.queue is not None:
            phrases.append(
                f"queue up to {series.queue.waiting.maximum.max(initial=0):.0f} packets, "
                f"{len(series.queue.overflow_s)} overflows, {len(series.queue.loss_s)} losses"
            )
        parts.append(f"{name}: {', '.join(phrases) or 'nothing recorded'}")
    return f"Window, RTT and queue over time at {where}. {'; '.join(parts)}."
