# SPDX-License-Identifier: Apache-2.0
"""Fairness between flows that share a bottleneck: Jain's index, convergence, shares over time, and
the harm that competitors do. Nothing where no run has two such flows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import count_of

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
    group_by_bottleneck,
    jain_over_time,
)
from nagi_reports.parquet import read_parquet
from nagi_reports.statistics import Mean, drop_background, mean
from nagi_reports.summary import average_runs

MAX_SHOWN = 9  # runs whose shares are shown over time
MAX_MATRICES = 6  # of harm
_TOLERANCE = f"{TOLERANCE * 100:g} %"


def compose_blocks(material: Material) -> list[Block]:
    found = list(_groups(material))
    if not found:
        return []
    return [
        _said(material),
        *_index_figures(material),
        _table(material, found),
        *_over_time(material, found),
        *_harm(material),
    ]


@dataclass(frozen=True)
class _Group:
    """Flows that share a bottleneck, at one point: the valid rows of its runs."""

    point: dict[str, str]
    group: BottleneckGroup
    rows: pd.DataFrame
    several: bool  # whether the point has more than one group

    def by_run(self, column: str) -> pd.Series[Any]:
        return self.rows.drop_duplicates("run_id").set_index("run_id")[column].dropna()


def _groups(material: Material) -> Iterator[_Group]:
    """In the order of the matrix."""
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
                yield _Group(plan.point, group, rows, len(groups) > 1)


def _said(material: Material) -> Paragraph:
    widths = sorted(
        {choose_window_s(plan) for plan in material.plans.values() if group_by_bottleneck(plan)}
    )
    wide = " to ".join(f"{width:g} s" for width in dict.fromkeys((widths[0], widths[-1])))
    return Paragraph(
        "Over flows that share a bottleneck and are not background traffic: Jain's index of their "
        "goodputs, (Σ g)² / (n Σ g²), from 1/n (one flow has everything) to 1 (equal shares). In "
        f"windows: the mean of the index over windows of {wide} within the measurement interval. "
        "Convergence time: from the last flow's start until every flow's share stays within "
        f"{_TOLERANCE} of equal, window by window, for {HOLD_S:g} s."
    )


def _index_figures(material: Material) -> Iterator[Figure]:
    campaign, summary = material.campaign, material.summary
    valid = material.table[material.table["status"] == "valid"]
    means: dict[tuple[str, str], list[Mean | None]] = {}
    said = []
    for panel in summary.panels:
        inside = valid
        if campaign.panels is not None:
            inside = valid[valid[f"point.{campaign.panels}"] == panel.label]
        for curve in panel.curves:
            mine = inside[inside[f"point.{campaign.series}"] == curve.series]
            found = [
                average_runs(mine[mine[f"point.{campaign.x}"] == value], "jain_index")
                for value in summary.x.values
            ]
            if any(found):
                means[panel.label, curve.series] = found
                values = [
                    f"{format_mean(each)} at {value}"
                    for value, each in zip(summary.x.values, found, strict=True)
                    if each is not None
                ]
                label = (
                    f"{summary.panels_axis.title} {panel.label}, " if summary.panels_axis else ""
                )
                said.append(f"{label}{curve.series}: {', '.join(values)}")
    bars = any(
        each is not None and not math.isnan(each.halfwidth)
        for all_ in means.values()
        for each in all_
    )
    drawn = figures.means_over_x(summary, means, "Jain's index")
    for number, figure in enumerate(drawn, 1):
        several = len(drawn) > 1
        yield Figure(
            f"jain-{number}" if several else "jain",
            figures.render_svg(figure),
            f"Jain's index against {summary.x.in_words}{f' (part {number})' if several else ''}. "
            + ("Bars span 95 % intervals." if bars else "One run per point: no intervals."),
            f"Jain's index against {summary.x.in_words}. {'; '.join(said)}.",
        )


def _table(material: Material, found: list[_Group]) -> Table:
    axes = list(found[0].point)
    parts = any(len({flow.group for flow in each.group.flows}) > 1 for each in found)
    columns = [Column(capitalise(to_words(axis))) for axis in axes]
    columns += [
        Column("Flows", weight=1 if any(each.several for each in found) else 0),
        Column("Jain's index", "right", 1),
        Column("In windows", "right", 1),
        *([Column("Shares", weight=2)] if parts else []),
        Column("Smallest, largest", "right", 1),
        Column("Convergence time", "right", 1),
    ]
    rows = []
    for each in found:
        names = ", ".join(each.group.names) if each.several else str(len(each.group.names))
        row = [*each.point.values(), names]
        row += [
            format_mean(mean(each.by_run(name).to_numpy()))
            for name in ("jain_index", "jain_index_windows")
        ]
        row += [_shares(each)] if parts else []
        by_run = each.rows.groupby("run_id")["share"]
        row += [f"{by_run.min().mean():.3f}, {by_run.max().mean():.3f}", _convergence(each)]
        rows.append(row)
    return Table(
        "Fairness at each point: means over valid runs"
        + (", with 95 % intervals" if any(run.repeat for run in material.campaign.runs) else "")
        + ". Shares: of the flows of each entry of the experiment file together. Convergence time: "
        f"never: shares did not stay within {_TOLERANCE} of equal for {HOLD_S:g} s; too short: "
        f"less than {HOLD_S:g} s of traffic after the last flow's start.",
        columns,
        rows,
        small=True,
        strong_first=False,
    )


def _shares(each: _Group) -> str:
    """Each entry's scheme with its share."""
    parts: dict[str, list[str]] = {}
    for flow in each.group.flows:
        parts.setdefault(flow.group, []).append(flow.name)
    scheme = {flow.group: flow.scheme for flow in each.group.flows}
    said = []
    for name, flows in parts.items():
        total = each.rows[each.rows["flow"].isin(flows)].groupby("run_id")["share"].sum()
        said.append(f"{name} ({scheme[name]}) {total.mean():.2f}")
    return "\n".join(said)


def _convergence(each: _Group) -> str:
    how = each.by_run("convergence").value_counts()
    times = mean(each.by_run("convergence_time_s").to_numpy(np.float64))
    if how.empty:
        return NONE
    parts = []
    if times is not None:
        count = "" if times.runs == how.sum() else f" ({times.runs} of {how.sum()})"
        parts.append(f"{format_mean(times, 1)} s{count}")
    parts += [
        name if how[name] == how.sum() else f"{name} ({how[name]} of {how.sum()})"
        for name in ("never", "too short")
        if name in how
    ]
    return ", ".join(parts)


def _over_time(material: Material, found: list[_Group]) -> Iterator[Block]:
    """Of some points the run with the median index: of all points if there are few, else those with
    the lowest index, those around the median, those with the highest."""
    chosen = found
    if len(found) > MAX_SHOWN:
        part = MAX_SHOWN // 3
        order = sorted(
            range(len(found)), key=lambda at: (float(found[at].by_run("jain_index").mean()), at)
        )
        middle = (len(order) - part) // 2
        some = [*order[:part], *order[middle : middle + part], *order[-part:]]
        chosen = [found[at] for at in some]
    shown, said = [], []
    for each in chosen:
        series = _series(material, each)
        if series is not None:
            shown.append(series)
            ends = [
                f"{name} ({scheme}) {sum(float(share[-1]) for share in shares):.2f}"
                for name, scheme, shares in series.groups
            ]
            said.append(
                f"{series.title}: in the last window {', '.join(ends)}, Jain's index "
                f"{series.jain[-1]:.2f}"
            )
    if not shown:
        return
    which = (
        "The three points with the lowest Jain's index, three around the median, and the three "
        "with the highest"
        if len(found) > MAX_SHOWN
        else "Every point"
    )
    yield Figure(
        "shares",
        figures.render_svg(figures.shares_over_time(shown)),
        f"Shares of goodput over time, upon each other, and Jain's index in the same windows. "
        f"{which}; of each the run with the median index (the lower of two). White lines part "
        "flows. Dashed: where flows would be parted with equal shares.",
        f"Shares of goodput over time. {'; '.join(said)}.",
        floats=True,
    )


def _series(material: Material, each: _Group) -> figures.SharesOverTime | None:
    order = each.by_run("jain_index").sort_index().sort_values(kind="stable").index
    run = str(order[(len(order) - 1) // 2])
    path = material.directory(run) / GOODPUT
    if not path.exists():
        return None
    table = read_parquet(path).pivot(index="end_s", columns="flow", values="goodput_bps")
    if not set(each.group.names) <= set(table):
        return None
    rates = table[each.group.names].to_numpy(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = rates / rates.sum(axis=1, keepdims=True)
    parts: dict[str, tuple[str, list[Any]]] = {}
    for column, flow in enumerate(each.group.flows):
        parts.setdefault(flow.group, (flow.scheme, []))[1].append(np.nan_to_num(shares[:, column]))
    ends = table.index.to_numpy(np.float64)
    title = ", ".join(f"{to_words(axis)} {value}" for axis, value in each.point.items())
    return figures.SharesOverTime(
        title,
        np.append(0.0, ends),
        [(name, scheme, flows) for name, (scheme, flows) in parts.items()],
        jain_over_time(rates),
    )


def _harm(material: Material) -> Iterator[Block]:
    """A matrix for every combination of the axes that are neither schemes nor competitors."""
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
            "Harm: n/a. No valid run has a valid run of the same repeat with "
            f"{campaign.competitor} {ALONE} and the same values of all other axes: see the "
            "certificate, or run these."
        )
        return
    schemes = list(dict.fromkeys(run.point[campaign.series] for run in campaign.runs))
    competitors = [each for each in competitors if each != ALONE]
    others = [
        axis
        for axis in campaign.runs[0].point
        if axis not in (campaign.series, campaign.competitor)
    ]
    combinations = list(dict.fromkeys(tuple(run.point[a] for a in others) for run in campaign.runs))
    pairs, said = [], []
    for values in combinations[:MAX_MATRICES]:
        mine = valid
        for axis, value in zip(others, values, strict=True):
            mine = mine[mine[f"point.{axis}"] == value]
        where = ", ".join(f"{to_words(a)} {v}" for a, v in zip(others, values, strict=True))
        pair = []
        for column, what in (("harm_goodput", "goodput"), ("harm_rtt", "RTT")):
            cells = [
                [
                    _cell(mine, campaign.series, s, campaign.competitor, c, column)
                    for c in competitors
                ]
                for s in schemes
            ]
            title = f"{what}, {where}" if where else what
            pair.append(
                figures.HarmMatrix(
                    capitalise(title),
                    schemes,
                    competitors,
                    cells,
                    _beyond(schemes, competitors, cells),
                )
            )
            said += [
                f"{what} {where}: to {s} by "
                + ", ".join(
                    f"{c} {format_mean(cell, 2)}" for c, cell in zip(competitors, row, strict=True)
                )
                for s, row in zip(schemes, cells, strict=True)
            ]
        pairs.append((pair[0], pair[1]))
    left = len(combinations) - len(pairs)
    yield Paragraph(
        "Harm (Ware, Mukerjee, Seshan, Sherry, HotNets 2019) is what competitors take away: of "
        "goodput (alone − beside) / alone, of the mean RTT (beside − alone) / beside. 0: nothing; "
        "1: everything; below 0: better beside them. Alone: the run of the same repeat at the same "
        f"values of all other axes, with {to_words(campaign.competitor)} {ALONE}. The flows of "
        "that run count: their goodputs together, the mean of their RTTs."
    )
    yield Figure(
        "harm",
        figures.render_svg(figures.harm_matrices(pairs)),
        "Harm to a scheme (row) by a competitor (column). Framed: harm to itself, which Ware et "
        "al. set as the bound for a competitor. * more than that"
        + (", by more than both 95 % intervals" if _with_intervals(pairs) else "")
        + ". n/a: no valid run, or none of the same repeat without competitors."
        + (f" {count_of(left, 'further pair')} of matrices not shown." if left else ""),
        f"Harm as a matrix. {'; '.join(said)}.",
    )


def _cell(
    rows: pd.DataFrame, series: str, scheme: str, axis: str, competitor: str, column: str
) -> Mean | None:
    mine = rows[(rows[f"point.{series}"] == scheme) & (rows[f"point.{axis}"] == competitor)]
    return average_runs(mine, column)


def _beyond(
    schemes: list[str], competitors: list[str], cells: list[list[Mean | None]]
) -> list[list[bool]]:
    found = []
    for scheme, row in zip(schemes, cells, strict=True):
        itself = row[competitors.index(scheme)] if scheme in competitors else None
        found.append(
            [itself is not None and cell is not None and _exceeds(cell, itself) for cell in row]
        )
    return found


def _exceeds(cell: Mean, bound: Mean) -> bool:
    apart = sum(0.0 if math.isnan(each.halfwidth) else each.halfwidth for each in (cell, bound))
    return cell is not bound and cell.value - bound.value > apart


def _with_intervals(pairs: list[tuple[figures.HarmMatrix, figures.HarmMatrix]]) -> bool:
    return any(
        cell is not None and not math.isnan(cell.halfwidth)
        for pair in pairs
        for matrix in pair
        for row in matrix.cells
        for cell in row
    )
