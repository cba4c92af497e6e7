# SPDX-License-Identifier: Apache-2.0
"""The rows of a plan's flow in tables of connections (capture.FLOW_COLUMNS, MATCH_COLUMNS).

A bulk flow is one TCP connection. Any other flow consists of all TCP and UDP connections between
its two hosts with the flow's port at the listening end. Several connections are merged into one
row: counts are added, minimum and maximum are over all, means are over all samples. Values that do
not follow from the rows are nan: quantiles, and bytes in flight at one time.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
from nagi_contracts.plan import FlowPlan

_SUMS = (
    "packets",
    "data_packets",
    "retransmitted_packets",
    "first_time_bytes",
    "ip_bytes_inside",
    "packets_inside",
    "payload_bytes_inside",
    "first_time_bytes_inside",
    "retransmitted_bytes_inside",
)
_QUANTILES = ("median", "p95", "p99")


def matches_flow(flows: pd.DataFrame, flow: FlowPlan, *, data: bool = True) -> pd.Series[bool]:
    """Return which rows belong to a flow, as a column of booleans.

    Args:
        flows: A table with the columns of FLOW_COLUMNS or MATCH_COLUMNS.
        flow: The flow.
        data: Whether rows are selected from sender to receiver; otherwise from receiver to sender.
    """
    addresses = (flow.sender_address, flow.receiver_address)
    source, destination = addresses if data else addresses[::-1]
    from_listener = data == (flow.listens == "sender")
    port = flows["source_port" if from_listener else "destination_port"]
    is_flow: pd.Series[bool] = (
        (flows["source"] == source) & (flows["destination"] == destination) & (port == flow.port)
    )
    return is_flow & (flows["protocol"] == "tcp") if flow.traffic == "bulk" else is_flow


def merge_scan_rows(flows: pd.DataFrame, flow: FlowPlan, *, data: bool = True) -> Any:
    """Return a flow's row of a scan, or None if it has no packet.

    The row has the columns that `nagi_reports.analysis` uses.
    """
    rows = _select_rows(flows, flow, "first_time_bytes", data=data)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    merged: dict[str, Any] = {name: int(rows[name].sum()) for name in _SUMS}
    for direction in ("timestamps", "sequence"):
        sampled = rows[rows[f"rtt_{direction}_count"] > 0]
        merged[f"rtt_{direction}_count"] = int(sampled[f"rtt_{direction}_count"].sum())
        merged[f"rtt_{direction}_min_ns"] = sampled[f"rtt_{direction}_min_ns"].min()
        merged[f"rtt_{direction}_max_ns"] = sampled[f"rtt_{direction}_max_ns"].max()
        merged[f"rtt_{direction}_mean_ns"] = _average(
            sampled, f"rtt_{direction}_mean_ns", f"rtt_{direction}_count"
        )
        for name in _QUANTILES:
            merged[f"rtt_{direction}_{name}_ns"] = _take_single_value(
                sampled, f"rtt_{direction}_{name}_ns"
            )
    carrying = rows[rows["data_packets_inside"] > 0]
    for name in ("in_flight_mean_bytes", "in_flight_max_bytes"):
        merged[name] = _take_single_value(carrying, name)
    merged["window_mean_bytes"] = _average(rows, "window_mean_bytes", "packets_inside")
    return SimpleNamespace(**merged)


def merge_match_rows(flows: pd.DataFrame, flow: FlowPlan) -> Any:
    """Return a flow's row of a match, in the direction of its data; None if it has no packet."""
    rows = _select_rows(flows, flow, "data_sent", data=True)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    arrived = rows[rows["received"] > 0]
    delay = _average(arrived, "delay_mean_ns", "received")
    # Of the whole captures, not only of the measurement interval.
    smallest = (arrived["delay_mean_ns"] - arrived["queueing_mean_ns"]).min()
    merged = {
        "data_sent": int(rows["data_sent"].sum()),
        "data_lost": int(rows["data_lost"].sum()),
        "delay_mean_ns": delay,
        "delay_p99_ns": _take_single_value(arrived, "delay_p99_ns"),
        "queueing_mean_ns": delay - smallest,
        "queueing_p99_ns": _take_single_value(arrived, "queueing_p99_ns"),
        "bursts": int(rows["bursts"].sum()),
        "burst_packets": _average(rows, "burst_packets", "bursts"),
    }
    for name in ("burst", "gap"):
        lengths = (rows[f"{name}s"] * rows[f"{name}_packets"]).fillna(0)
        lost = (rows[f"{name}_density"] * lengths).sum()
        merged[f"{name}_density"] = lost / lengths.sum() if lengths.sum() else 0.0
    return SimpleNamespace(**merged)


def _select_rows(flows: pd.DataFrame, flow: FlowPlan, largest: str, *, data: bool) -> pd.DataFrame:
    """Return a flow's rows, or those of the other direction.

    If a bulk flow has several connections, the one with the most in `largest` is returned.
    """
    selected = flows[matches_flow(flows, flow)]
    if flow.traffic == "bulk":
        selected = selected.sort_values(largest, ascending=False, kind="stable")[:1]
    # A connection's two rows follow each other, the first at an even place.
    return selected if data else flows.iloc[selected.index.to_numpy() ^ 1]


def _average(rows: pd.DataFrame, column: str, weight: str) -> float:
    valid = rows[rows[column].notna() & (rows[weight] > 0)]
    total = valid[weight].sum()
    return float((valid[column] * valid[weight]).sum() / total) if total else math.nan


def _take_single_value(rows: pd.DataFrame, column: str) -> float:
    """Return the value of the only row; nan if there are several."""
    return float(rows[column].iloc[0]) if len(rows) == 1 else math.nan
