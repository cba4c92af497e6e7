# SPDX-License-Identifier: Apache-2.0
"""Selection of a planned flow's rows in tables of connections, and their merging into one row.

The tables have the columns capture.FLOW_COLUMNS or capture.MATCH_COLUMNS. A bulk flow is one TCP
connection. Any other flow consists of all TCP and UDP connections between its two hosts with the
flow's port at the listening end. In the merged row, counts are sums over the connections, and
minimum, maximum and mean are over the samples of all connections. Values that cannot be computed
from the connections' rows are nan: quantiles, and bytes in flight.
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
    """Return for each row whether it has the given direction of one of the flow's connections.

    Args:
        flows: A table with the columns of FLOW_COLUMNS or MATCH_COLUMNS.
        flow: The flow.
        data: True for the direction of the data, from sender to receiver; False for the direction
            from receiver to sender.
    """
    addresses = (flow.sender_address, flow.receiver_address)
    source, destination = addresses if data else addresses[::-1]
    from_listener = data == (flow.listening_end == "sender")
    port = flows["source_port" if from_listener else "destination_port"]
    is_match: pd.Series[bool] = (
        (flows["source"] == source) & (flows["destination"] == destination) & (port == flow.port)
    )
    return is_match & (flows["protocol"] == "tcp") if flow.traffic == "bulk" else is_match


def merge_scan_rows(flows: pd.DataFrame, flow: FlowPlan, *, data: bool = True) -> Any:
    """Return a flow's row of capture.scan() as attributes; None if the flow has no packets.

    If a bulk flow has several connections, only the one with the most bytes of data counts. For
    other flows of several connections, the row has only the columns that `nagi_reports.analysis`
    uses.

    Args:
        flows: A table with the columns of FLOW_COLUMNS.
        flow: The flow.
        data: True for the direction of the data, False for the direction to the sender.
    """
    rows = _select_rows(flows, flow, "first_time_bytes", data=data)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    merged: dict[str, Any] = {name: int(rows[name].sum()) for name in _SUMS}
    for method in ("timestamps", "sequence"):
        with_samples = rows[rows[f"rtt_{method}_count"] > 0]
        merged[f"rtt_{method}_count"] = int(with_samples[f"rtt_{method}_count"].sum())
        merged[f"rtt_{method}_min_ns"] = with_samples[f"rtt_{method}_min_ns"].min()
        merged[f"rtt_{method}_max_ns"] = with_samples[f"rtt_{method}_max_ns"].max()
        merged[f"rtt_{method}_mean_ns"] = _average(
            with_samples, f"rtt_{method}_mean_ns", f"rtt_{method}_count"
        )
        for name in _QUANTILES:
            merged[f"rtt_{method}_{name}_ns"] = _take_single_value(
                with_samples, f"rtt_{method}_{name}_ns"
            )
    with_data = rows[rows["data_packets_inside"] > 0]
    for name in ("in_flight_mean_bytes", "in_flight_max_bytes"):
        merged[name] = _take_single_value(with_data, name)
    merged["window_mean_bytes"] = _average(rows, "window_mean_bytes", "packets_inside")
    return SimpleNamespace(**merged)


def merge_match_rows(flows: pd.DataFrame, flow: FlowPlan) -> Any:
    """Return a flow's row of capture.match() as attributes; None if the flow has no packets.

    The direction is that of the data. If a bulk flow has several connections, only the one with the
    most packets of data counts. For other flows of several connections, the row has only the
    columns that `nagi_reports.analysis` uses.
    """
    rows = _select_rows(flows, flow, "data_sent", data=True)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    with_arrivals = rows[rows["received"] > 0]
    delay = _average(with_arrivals, "delay_mean_ns", "received")
    # The smallest delay in the whole captures, not only in the measurement interval.
    smallest = (with_arrivals["delay_mean_ns"] - with_arrivals["queueing_mean_ns"]).min()
    merged = {
        "data_sent": int(rows["data_sent"].sum()),
        "data_lost": int(rows["data_lost"].sum()),
        "delay_mean_ns": delay,
        "delay_p99_ns": _take_single_value(with_arrivals, "delay_p99_ns"),
        "queueing_mean_ns": delay - smallest,
        "queueing_p99_ns": _take_single_value(with_arrivals, "queueing_p99_ns"),
        "bursts": int(rows["bursts"].sum()),
        "burst_packets": _average(rows, "burst_packets", "bursts"),
    }
    for name in ("burst", "gap"):
        lengths = (rows[f"{name}s"] * rows[f"{name}_packets"]).fillna(0)
        lost = (rows[f"{name}_density"] * lengths).sum()
        merged[f"{name}_density"] = lost / lengths.sum() if lengths.sum() else 0.0
    return SimpleNamespace(**merged)


def _select_rows(
    flows: pd.DataFrame, flow: FlowPlan, size_column: str, *, data: bool
) -> pd.DataFrame:
    """Return the rows of a flow's connections in one direction.

    Args:
        flows: A table of connections.
        flow: The flow.
        size_column: If a bulk flow has several connections, only the connection with the largest
            value in this column is returned.
        data: True for the direction of the data, False for the direction to the sender.
    """
    selected = flows[matches_flow(flows, flow)]
    if flow.traffic == "bulk":
        selected = selected.sort_values(size_column, ascending=False, kind="stable")[:1]
    # The rows of the two directions of connection n are 2 x n and 2 x n + 1.
    return selected if data else flows.iloc[selected.index.to_numpy() ^ 1]


def _average(rows: pd.DataFrame, column: str, weight: str) -> float:
    """Return the mean of a column over rows, weighted by the column `weight`.

    Rows without a value or with weight 0 are left out. Return nan if no row remains.
    """
    valid = rows[rows[column].notna() & (rows[weight] > 0)]
    total = valid[weight].sum()
    return float((valid[column] * valid[weight]).sum() / total) if total else math.nan


def _take_single_value(rows: pd.DataFrame, column: str) -> float:
    """Return the value of `column` in the only row; nan if there are several rows or none."""
    return float(rows[column].iloc[0]) if len(rows) == 1 else math.nan
