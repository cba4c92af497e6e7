# SPDX-License-Identifier: Apache-2.0
"""Fairness: groups of flows that share a bottleneck, their shares, and the harm by competitors.

Background flows do not count. The bottleneck of a flow is the hop on its path (a direction of a
link, or a shared medium) with the smallest rate / number of crossing flows. If several hops have
the smallest value, the bottleneck is the hop that most flows cross; if several have this number of
flows, the first of them. A flow crosses a medium once per hop over the medium. So an access link
that is slower than the shared link, but faster than a flow's share of the shared link, is no
bottleneck. Flows share a bottleneck if the same hop is the bottleneck of each.

Shares over time are shares of the goodput in windows, which begin when the traffic starts. A window
lasts WINDOW_S, or WINDOW_RTTS times the longest base RTT if that is longer.

Harm (Ware, Mukerjee, Seshan, Sherry: Beyond Jain's Fairness Index, HotNets 2019) compares a run
with a run without the competitors: see add_harm().
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from nagi_contracts.plan import FlowPlan, RunPlan
from nagi_contracts.records import Campaign

from nagi_reports.connections import to_json_value
from nagi_reports.metrics import (
    convergence_time_s,
    harm,
    jain_index,
    max_min_ratio,
    potential_delay,
    product_measure,
    proportional_fairness,
    shares,
)
from nagi_reports.statistics import drop_background

WINDOW_S, WINDOW_RTTS = 1.0, 10
# Shares have converged when they stay within TOLERANCE of equal shares for HOLD_S.
TOLERANCE, HOLD_S = 0.2, 5.0
ALONE = "none"  # the value of the competitor's axis at which there is no competitor

Floats = npt.NDArray[np.floating[Any]]
Convergence = Literal["converged", "never", "too short"]


@dataclass(frozen=True)
class BottleneckGroup:
    """Two or more flows that share a bottleneck, in the plan's order."""

    flows: list[FlowPlan]

    @property
    def names(self) -> list[str]:
        return [flow.name for flow in self.flows]

    @property
    def last_start_s(self) -> float:
        """Start of the last flow, in s since the run began."""
        return max(flow.start_s for flow in self.flows)


def group_by_bottleneck(plan: RunPlan) -> list[BottleneckGroup]:
    """Return the groups of two or more flows that share a bottleneck.

    Groups are in the order of their first flows in the plan. Background flows are left out.
    """
    flows = [flow for flow in plan.flows if not flow.background]
    flow_counts = Counter[tuple[str, str]](
        (hop.link, hop.direction) for flow in flows for hop in flow.path
    )

    rates: dict[tuple[str, str], int | None] = {
        (hop.link, hop.direction): plan.channel(hop).mean_rate_bps
        for hop in {(hop.link, hop.direction): hop for flow in flows for hop in flow.path}.values()
    }

    def rank(hop: tuple[str, str]) -> tuple[float, int]:
        rate = rates[hop]
        return (math.inf if rate is None else rate / flow_counts[hop]), -flow_counts[hop]

    groups: dict[tuple[str, str], list[FlowPlan]] = {}
    for flow in flows:
        bottleneck = min(((hop.link, hop.direction) for hop in flow.path), key=rank)
        groups.setdefault(bottleneck, []).append(flow)
    return [BottleneckGroup(members) for members in groups.values() if len(members) > 1]


def choose_window_s(plan: RunPlan) -> float:
    """Return the length of the windows over which shares are computed, in s."""
    return max(WINDOW_S, WINDOW_RTTS * max(flow.base_rtt_s for flow in plan.flows))


@dataclass(frozen=True)
class GoodputWindows:
    """Goodput over time: one row per window, one column per flow."""

    width_s: float
    ends_s: Floats  # since the run began
    goodput_bps: Mapping[str, Floats]

    def select(self, flows: Sequence[str]) -> Floats:
        """Return the goodput of the named flows: one row per window, one column per flow."""
        return np.stack([self.goodput_bps[name] for name in flows], axis=1)

    def to_table(self, begin_s: float) -> pd.DataFrame:
        """Return the rows of goodput.parquet, with times in s since `begin_s`.

        Rows are sorted by time; rows of one window are in the order of `goodput_bps`.
        """
        columns = [
            pd.DataFrame(
                {"end_s": np.round(self.ends_s - begin_s, 6), "flow": name, "goodput_bps": rates}
            )
            for name, rates in self.goodput_bps.items()
        ]
        table = pd.concat(columns, ignore_index=True)
        return table.sort_values("end_s", kind="stable", ignore_index=True)


def compute_jain_over_time(goodputs: Floats) -> npt.NDArray[np.float64]:
    """Return Jain's index of each window (row of `goodputs`); nan for windows without goodput."""
    return np.array([jain_index(row) for row in goodputs])


def compute_fairness(
    plan: RunPlan, goodput_bps: Mapping[str, float], windows: GoodputWindows | None
) -> dict[str, dict[str, Any]]:
    """Return the columns of results on fairness, as flow -> column -> value.

    Flows that share their bottleneck with no other flow are left out.

    Args:
        plan: The plan of the run.
        goodput_bps: Goodput of each flow over the measurement interval, by name.
        windows: Goodput over time of all flows that share a bottleneck; None if the traffic is
            shorter than one window.
    """
    columns: dict[str, dict[str, Any]] = {}
    for group in group_by_bottleneck(plan):
        rates = [goodput_bps[name] / 1e6 for name in group.names]
        values: dict[str, Any] = {
            "jain_index": jain_index(rates),
            "max_min_ratio": max_min_ratio(rates),
            "product_measure": product_measure(rates),
            "proportional_fairness": proportional_fairness(rates),
            "potential_delay_s": potential_delay(rates),
        }
        if windows is None:  # the traffic is shorter than one window
            values["convergence"] = "too short"
        else:
            over_time = windows.select(group.names)
            begins = windows.ends_s - windows.width_s
            is_inside = (begins >= plan.measure.start_s - 1e-6) & (
                windows.ends_s <= plan.measure.end_s + 1e-6
            )
            indices = compute_jain_over_time(over_time[is_inside])
            values["jain_index_windows"] = (
                float(np.nanmean(indices)) if np.isfinite(indices).any() else math.nan
            )
            seconds, outcome = measure_convergence(windows.ends_s, over_time, group.last_start_s)
            values |= {"convergence_time_s": seconds, "convergence": outcome}
        group_columns = {
            name: value if isinstance(value, str) else to_json_value(value)
            for name, value in values.items()
        }
        for name, share in zip(group.names, shares(rates), strict=True):
            columns[name] = group_columns | {
                "share": to_json_value(float(share)),
                "sharing_flows": len(rates),
            }
    return columns


def measure_convergence(
    ends_s: Floats, goodputs: Floats, last_start_s: float
) -> tuple[float, Convergence]:
    """Return the convergence time in s since the last start, and the outcome.

    TOLERANCE and HOLD_S define convergence. Without convergence the time is nan, and the outcome is
    `never`, or `too short` if less than HOLD_S follows the last start.

    Args:
        ends_s: The end of each window, in s since the run began.
        goodputs: One row per window, one column per flow.
        last_start_s: Start of the last flow, in s since the run began.
    """
    seconds = convergence_time_s(ends_s, goodputs, last_start_s, TOLERANCE, HOLD_S)
    if math.isnan(seconds):
        return math.nan, "too short"
    if math.isinf(seconds):
        return math.nan, "never"
    return seconds, "converged"


def add_harm(table: pd.DataFrame, campaign: Campaign) -> pd.DataFrame:
    """Write the columns harm_goodput and harm_rtt into `table`, and return `table`.

    The table is unchanged if the campaign has no axis of competitors.

    The baseline of a run is the valid run of the same repeat with the value ALONE on the axis of
    competitors and the same values on all other axes. Harm compares the flows whose names are in
    both runs, by the sum of their goodputs and the average of their mean RTTs. Rows of other flows,
    of runs without a baseline or without one of its flows, and of baselines have no harm.
    """
    axis = None if campaign.competitor is None else f"point.{campaign.competitor}"
    if axis is None or axis not in table or table.empty:
        return table
    other_axes = [f"point.{name}" for name in campaign.runs[0].point if name != campaign.competitor]
    keys = [*other_axes, "repeat"]
    counted = drop_background(table)
    alone = counted[(counted[axis] == ALONE) & (counted["status"] == "valid")]
    baselines = {
        key: rows for key, rows in alone.groupby(keys, sort=False) if rows["run_id"].nunique() == 1
    }
    keys_by_run = counted.drop_duplicates("run_id").set_index("run_id")[keys]
    for run_id, rows in counted[counted[axis] != ALONE].groupby("run_id", sort=False):
        baseline = baselines.get(tuple(keys_by_run.loc[run_id]))
        if baseline is None:
            continue
        flow_rows = rows[rows["flow"].isin(baseline["flow"])]
        if len(flow_rows) != len(baseline):
            continue
        table.loc[flow_rows.index, "harm_goodput"] = harm(
            _add_up(baseline["goodput_bps"]), _add_up(flow_rows["goodput_bps"])
        )
        table.loc[flow_rows.index, "harm_rtt"] = harm(
            _average(baseline["rtt_mean_s"]),
            _average(flow_rows["rtt_mean_s"]),
            more_is_better=False,
        )
    return table


def _add_up(values: pd.Series[float]) -> float:
    return float(values.sum(skipna=False))


def _average(values: pd.Series[float]) -> float:
    return float(values.mean(skipna=False))
