# SPDX-License-Identifier: Apache-2.0
"""The section Fairness: Jain's index, convergence, shares over time, and harm by competitors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import format_count

from nagi_reports import figures
from nagi_reports.analysis import GOODPUT
from nagi_reports.chapters.material import Material
from nagi_reports.chapters.words import NONE, capitalise, format_mean, to_words
from nagi_reports.content import Block, Column, Figure, Paragraph, Table
from nagi_reports.fairness import (
    ALONE,
    HOLD_S,
    TOLERANCE,
    BottleneckGroup,
    choose_window_s,
    compute_jain_over_time,
    group_by_bottleneck,
)
from nagi_reports.parquet import read_parquet
from nagi_reports.statistics import Mean, drop_background, mean
from nagi_reports.summary import average_runs

MAX_SHOWN = 9  # number of runs whose shares are shown over time
MAX_MATRICES = 6  # number of pairs of matrices of harm
_TOLERANCE = f"{TOLERANCE * 100:g} %"


def compose_blocks(material: Material) -> list[Block]:
    """Return the blocks of the section; empty if no two flows of a run share a bottleneck."""
    groups = list(_collect_groups(material))
    if not groups:
        return []
    return [
        _compose_introduction(material),
        *_compose_index_figures(material),
        _compose_table(material, groups),
        *_compose_shares_figure(material, groups),
        *_compose_harm(material),
    ]


@dataclass(frozen=True)
class _PointGroup:
    """Flows that share a bottleneck at one point, with their rows of the point's valid runs."""

    point: dict[str, str]
    bottleneck: BottleneckGroup
    rows: pd.DataFrame
    has_siblings: bool  # whether the point has more than one group

    def select_by_run(self, column: str) -> pd.Series[Any]:
        """Return a column's value in each run, by run id. Runs without a value are left out."""
        return self.rows.drop_duplicates("run_id").set_index("run_id")[column].dropna()


def _collect_groups(material: Material) -> Iterator[_PointGroup]:
    """Yield the groups of all points with valid runs, in the order of the matrix."""
    if "jain_index" not in material.table or "share" not in material.table:
        return
    valid = drop_background(material.table[material.table["status"] == "valid"])
    by_run = dict(list(valid.groupby("run_id", sort=False)))
    points: dict[tuple[str, ...], list[str]] = {}
    for run in material.campaign.runs:
        if run.run_id in by_run:
            points.setdefault(tuple(run.point.values()), []).append(run.run_id)
    for runs in points.values():
        plan: RunPlan = material.plans[runs[0]]
        groups = group_by_bottleneck(plan)
        for group in groups:
            rows = pd.concat([by_run[run] for run in runs])
            rows = rows[rows["flow"].isin(group.names) & rows["jain_index"].notna()]
            if len(rows):
                yield _PointGroup(plan.point, group, rows, len(groups) > 1)


def _compose_introduction(material: Material) -> Paragraph:
    """Return the paragraph that defines index and convergence time."""
    widths = sorted(
        {choose_window_s(plan) for plan in material.plans.values() if group_by_bottleneck(plan)}
    )
    range_of_widths = " to ".join(
        f"{width:g} s" for width in dict.fromkeys((widths[0], widths[-1]))
    )
    return Paragraph(
        "Over flows that share a bottleneck and are not background traffic: Jain's index of their "
        "goodputs, (Σ g)² / (n Σ g²), from 1/n (one flow has everything) to 1 (equal shares). In "
        f"windows: the mean of the index over windows of {range_of_widths} within the measurement "
        "interval. Convergence time: from the last flow's start until every flow's share stays "
        f"within {_TOLERANCE} of equal, window by window, for {HOLD_S:g} s."
    )


def _compose_index_figures(material: Material) -> Iterator[Figure]:
    """Yield the figures of Jain's index over x."""
    campaign, summary = material.campaign, material.summary
    valid = material.table[material.table["status"] == "valid"]
    means: dict[tuple[str, str], list[Mean | None]] = {}
    series_descriptions = []
    for panel in summary.panels:
        panel_rows = valid
        if campaign.panels is not None:
            panel_rows = valid[valid[f"point.{campaign.panels}"] == panel.label]
        for curve in panel.curves:
            series_rows = panel_rows[panel_rows[f"point.{campaign.series}"] == curve.series]
            series_means = [
                average_runs(series_rows[series_rows[f"point.{campaign.x}"] == value], "jain_index")
                for value in summary.x.values
            ]
            if any(series_means):
                means[panel.label, curve.series] = series_means
                values = [
                    f"{format_mean(mean)} at {value}"
                    for value, mean in zip(summary.x.values, series_means, strict=True)
                    if mean is not None
                ]
                label = (
                    f"{summary.panels_axis.title} {panel.label}, " if summary.panels_axis else ""
                )
                series_descriptions.append(f"{label}{curve.series}: {', '.join(values)}")
    has_intervals = any(
        mean is not None and not math.isnan(mean.halfwidth)
        for series_means in means.values()
        for mean in series_means
    )
    drawings = figures.make_mean_figures(summary, means, "Jain's index")
    for number, figure in enumerate(drawings, 1):
        has_parts = len(drawings) > 1
        yield Figure(
            f"jain-{number}" if has_parts else "jain",
            figures.render_svg(figure),
            f"Jain's index against {summary.x.phrase}{f' (part {number})' if has_parts else ''}. "
            + (
                "Bars span 95 % intervals." if has_intervals else "One run per point: no intervals."
            ),
            f"Jain's index against {summary.x.phrase}. {'; '.join(series_descriptions)}.",
        )


def _compose_table(material: Material, groups: list[_PointGroup]) -> Table:
    """Return the table of fairness, one row per group of flows."""
    axes = list(groups[0].point)
    has_several_entries = any(
        len({flow.group for flow in group.bottleneck.flows}) > 1 for group in groups
    )
    columns = [Column(capitalise(to_words(axis))) for axis in axes]
    columns += [
        Column("Flows", weight=1 if any(group.has_siblings for group in groups) else 0),
        Column("Jain's index", "right", 1),
        Column("In windows", "right", 1),
        *([Column("Shares", weight=2)] if has_several_entries else []),
        Column("Smallest, largest", "right", 1),
        Column("Convergence time", "right", 1),
    ]
    rows = []
    for group in groups:
        names = (
            ", ".join(group.bottleneck.names)
            if group.has_siblings
            else str(len(group.bottleneck.names))
        )
        row = [*group.point.values(), names]
        row += [
            format_mean(mean(group.select_by_run(name).to_numpy()))
            for name in ("jain_index", "jain_index_windows")
        ]
        row += [_format_shares(group)] if has_several_entries else []
        by_run = group.rows.groupby("run_id")["share"]
        row += [f"{by_run.min().mean():.3f}, {by_run.max().mean():.3f}", _format_convergence(group)]
        rows.append(row)
    return Table(
        "Fairness at each point: means over valid runs"
        + (", with 95 % intervals" if any(run.repeat for run in material.campaign.runs) else "")
        + ". Shares: the sum over the flows of each entry of the experiment file. Convergence "
        f"time: never: shares did not stay within {_TOLERANCE} of equal for {HOLD_S:g} s; too "
        f"short: less than {HOLD_S:g} s of traffic after the last flow's start.",
        columns,
        rows,
        small=True,
        strong_first=False,
    )


def _format_shares(group: _PointGroup) -> str:
    """Return one line per entry of the experiment file's `flows`: its scheme and mean share."""
    names_by_entry: dict[str, list[str]] = {}
    for flow in group.bottleneck.flows:
        names_by_entry.setdefault(flow.group, []).append(flow.name)
    schemes = {flow.group: flow.scheme for flow in group.bottleneck.flows}
    lines = []
    for entry, names in names_by_entry.items():
        total = group.rows[group.rows["flow"].isin(names)].groupby("run_id")["share"].sum()
        lines.append(f"{entry} ({schemes[entry]}) {total.mean():.2f}")
    return "\n".join(lines)


def _format_convergence(group: _PointGroup) -> str:
    """Return the mean convergence time, and the number of runs without one, per reason."""
    outcomes = group.select_by_run("convergence").value_counts()
    times = mean(group.select_by_run("convergence_time_s").to_numpy(np.float64))
    if outcomes.empty:
        return NONE
    parts = []
    if times is not None:
        count = "" if times.runs == outcomes.sum() else f" ({times.runs} of {outcomes.sum()})"
        parts.append(f"{format_mean(times, 1)} s{count}")
    parts += [
        name
        if outcomes[name] == outcomes.sum()
        else f"{name} ({outcomes[name]} of {outcomes.sum()})"
        for name in ("never", "too short")
        if name in outcomes
    ]
    return ", ".join(parts)


def _compose_shares_figure(material: Material, groups: list[_PointGroup]) -> Iterator[Block]:
    """Yield the figure of shares over time, which shows one run of each selected point.

    The run shown is the run with the median of Jain's index at its point. If there are more than
    MAX_SHOWN points, three groups of MAX_SHOWN / 3 points are selected: with the lowest values of
    the index, around the median, and with the highest values. Yield no figure if no selected run
    has recorded its goodput over time.
    """
    chosen = groups
    if len(groups) > MAX_SHOWN:
        part = MAX_SHOWN // 3
        order = sorted(
            range(len(groups)),
            key=lambda index: (float(groups[index].select_by_run("jain_index").mean()), index),
        )
        middle = (len(order) - part) // 2
        indices = [*order[:part], *order[middle : middle + part], *order[-part:]]
        chosen = [groups[index] for index in indices]
    shares_of_runs, descriptions = [], []
    for group in chosen:
        series = _read_shares(material, group)
        if series is not None:
            shares_of_runs.append(series)
            ends = [
                f"{name} ({scheme}) {sum(float(share[-1]) for share in shares):.2f}"
                for name, scheme, shares in series.groups
            ]
            descriptions.append(
                f"{series.title}: in the last window {', '.join(ends)}, Jain's index "
                f"{series.jain[-1]:.2f}"
            )
    if not shares_of_runs:
        return
    selection = (
        "The three points with the lowest Jain's index, three around the median, and the three "
        "with the highest"
        if len(groups) > MAX_SHOWN
        else "Every point"
    )
    yield Figure(
        "shares",
        figures.render_svg(figures.make_shares_figure(shares_of_runs)),
        f"Shares of goodput over time, stacked, and Jain's index in the same windows. "
        f"{selection}, each with the run of the median index (the lower of two). White lines "
        "separate flows. Dashed lines would separate flows with equal shares.",
        f"Shares of goodput over time. {'; '.join(descriptions)}.",
        floats=True,
    )


def _read_shares(material: Material, group: _PointGroup) -> figures.SharesOverTime | None:
    """Return the shares over time of the group's run with the median of Jain's index.

    Return None if the run has no goodput over time of these flows.
    """
    order = group.select_by_run("jain_index").sort_index().sort_values(kind="stable").index
    run = str(order[(len(order) - 1) // 2])
    path = material.run_directory(run) / GOODPUT
    if not path.exists():
        return None
    table = read_parquet(path).pivot(index="end_s", columns="flow", values="goodput_bps")
    if not set(group.bottleneck.names) <= set(table):
        return None
    rates = table[group.bottleneck.names].to_numpy(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = rates / rates.sum(axis=1, keepdims=True)
    parts: dict[str, tuple[str, list[Any]]] = {}
    for column, flow in enumerate(group.bottleneck.flows):
        parts.setdefault(flow.group, (flow.scheme, []))[1].append(np.nan_to_num(shares[:, column]))
    ends = table.index.to_numpy(np.float64)
    title = ", ".join(f"{to_words(axis)} {value}" for axis, value in group.point.items())
    return figures.SharesOverTime(
        title,
        np.append(0.0, ends),
        [(name, scheme, flows) for name, (scheme, flows) in parts.items()],
        compute_jain_over_time(rates),
    )


def _compose_harm(material: Material) -> Iterator[Block]:
    """Yield a text and a figure of harm; if harm is not known, only a text with the reason.

    For each combination of the values of other axes, the figure has two matrices: harm to goodput
    and harm to RTT. The figure shows the first MAX_MATRICES combinations. Yield no block if the
    campaign has no axis of competitors.
    """
    campaign, table = material.campaign, material.table
    if campaign.competitor is None:
        return
    competitors = list(dict.fromkeys(run.point[campaign.competitor] for run in campaign.runs))
    if ALONE not in competitors:
        yield Paragraph(
            f"Harm: n/a. There is no run without competitors: add the value {ALONE} to the axis "
            f"{campaign.competitor}."
        )
        return
    valid = drop_background(table[table["status"] == "valid"])
    if "harm_goodput" not in valid or valid["harm_goodput"].notna().sum() == 0:
        yield Paragraph(
            "Harm: n/a. For no valid run is there a valid run without competitors "
            f"({campaign.competitor} {ALONE}) of the same repeat and at the same values of all "
            "other axes. The certificate lists invalid runs. Execute runs that are missing."
        )
        return
    schemes = list(dict.fromkeys(run.point[campaign.series] for run in campaign.runs))
    competitors = [competitor for competitor in competitors if competitor != ALONE]
    other_axes = [
        axis
        for axis in campaign.runs[0].point
        if axis not in (campaign.series, campaign.competitor)
    ]
    combinations = list(
        dict.fromkeys(tuple(run.point[a] for a in other_axes) for run in campaign.runs)
    )
    pairs, descriptions = [], []
    for values in combinations[:MAX_MATRICES]:
        point_rows = valid
        for axis, value in zip(other_axes, values, strict=True):
            point_rows = point_rows[point_rows[f"point.{axis}"] == value]
        point_words = ", ".join(
            f"{to_words(a)} {v}" for a, v in zip(other_axes, values, strict=True)
        )
        matrices = []
        for column, quantity in (("harm_goodput", "goodput"), ("harm_rtt", "RTT")):
            cells = [
                [
                    _average_harm(point_rows, campaign.series, s, campaign.competitor, c, column)
                    for c in competitors
                ]
                for s in schemes
            ]
            title = f"{quantity}, {point_words}" if point_words else quantity
            matrices.append(
                figures.HarmMatrix(
                    capitalise(title),
                    schemes,
                    competitors,
                    cells,
                    _find_excess(schemes, competitors, cells),
                )
            )
            descriptions += [
                f"{quantity} {point_words}: to {s} by "
                + ", ".join(
                    f"{c} {format_mean(cell, 2)}" for c, cell in zip(competitors, row, strict=True)
                )
                for s, row in zip(schemes, cells, strict=True)
            ]
        pairs.append((matrices[0], matrices[1]))
    omitted = len(combinations) - len(pairs)
    yield Paragraph(
        "Harm (Ware, Mukerjee, Seshan, Sherry, HotNets 2019) is the part of a metric that is lost "
        "to competitors: (alone − competing) / alone of goodput, (competing − alone) / competing "
        "of the mean RTT. 0: no harm; 1: everything is lost; below 0: better with competitors. "
        "Alone: the run of the same repeat at the same values of all other axes, with "
        f"{to_words(campaign.competitor)} {ALONE}. The flows of that run count, with the sum of "
        "their goodputs and the mean of their RTTs."
    )
    yield Figure(
        "harm",
        figures.render_svg(figures.make_harm_figure(pairs)),
        "Harm to a scheme (row) by a competitor (column). Framed: harm of the scheme to itself, "
        "which is the bound for a competitor by Ware et al. *: above this bound"
        + (", by more than both 95 % intervals" if _has_intervals(pairs) else "")
        + ". n/a: no valid run, or none of the same repeat without competitors."
        + (f" {format_count(omitted, 'further pair')} of matrices not shown." if omitted else ""),
        f"Harm as a matrix. {'; '.join(descriptions)}.",
    )


def _average_harm(
    rows: pd.DataFrame,
    scheme_axis: str,
    scheme: str,
    competitor_axis: str,
    competitor: str,
    column: str,
) -> Mean | None:
    """Return the mean harm to a scheme by a competitor; None without a value.

    Args:
        rows: Rows of the results.
        scheme_axis: The axis whose value is the scheme.
        scheme: The scheme.
        competitor_axis: The axis whose value is the competitor.
        competitor: The competitor.
        column: The column of harm.
    """
    cell_rows = rows[
        (rows[f"point.{scheme_axis}"] == scheme) & (rows[f"point.{competitor_axis}"] == competitor)
    ]
    return average_runs(cell_rows, column)


def _find_excess(
    schemes: list[str], competitors: list[str], cells: list[list[Mean | None]]
) -> list[list[bool]]:
    """Return for each cell whether its harm exceeds the harm of the row's scheme to itself."""
    exceeds = []
    for scheme, row in zip(schemes, cells, strict=True):
        own_harm = row[competitors.index(scheme)] if scheme in competitors else None
        exceeds.append(
            [own_harm is not None and cell is not None and _exceeds(cell, own_harm) for cell in row]
        )
    return exceeds


def _exceeds(cell: Mean, bound: Mean) -> bool:
    """Return whether a harm exceeds `bound` by more than the sum of both half widths."""
    halfwidths = sum(
        0.0 if math.isnan(mean.halfwidth) else mean.halfwidth for mean in (cell, bound)
    )
    return cell is not bound and cell.value - bound.value > halfwidths


def _has_intervals(pairs: list[tuple[figures.HarmMatrix, figures.HarmMatrix]]) -> bool:
    return any(
        cell is not None and not math.isnan(cell.halfwidth)
        for pair in pairs
        for matrix in pair
        for row in matrix.cells
        for cell in row
    )
