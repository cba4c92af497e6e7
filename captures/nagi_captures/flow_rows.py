# SPDX-License-Identifier: Apache-2.0
"""A plan's flow in tables of connections (capture.FLOW_COLUMNS, MATCH_COLUMNS): which rows are its,
and several rows as one.

A bulk flow is one TCP connection. Any other flow is every TCP and UDP connection between its two
hosts with its port at the end that listens. Of several connections counts add up,
smallest and largest are over all, means are over all samples. What does not follow from the rows is
not known (nan): quantiles, and bytes in flight at one time.
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
    """Which rows are a flow's: from its sender to its receiver, or (not `data`) back."""
    addresses = (flow.sender_address, flow.receiver_address)
    source, destination = addresses if data else addresses[::-1]
    from_listener = data == (flow.listens == "sender")
    port = flows["source_port" if from_listener else "destination_port"]
    found: pd.Series[bool] = (
        (flows["source"] == source) & (flows["destination"] == destination) & (port == flow.port)
    )
    return found & (flows["protocol"] == "tcp") if flow.traffic == "bulk" else found


def merge_scan_rows(flows: pd.DataFrame, flow: FlowPlan, *, data: bool = True) -> Any:
    """A flow's row of a scan (the columns that `analysis` asks for); None if it has no packet."""
    rows = _rows(flows, flow, "first_time_bytes", data=data)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    merged: dict[str, Any] = {name: int(rows[name].sum()) for name in _SUMS}
    for direction in ("timestamps", "sequence"):
        sampled = rows[rows[f"rtt_{direction}_count"] > 0]
        merged[f"rtt_{direction}_count"] = int(sampled[f"rtt_{direction}_count"].sum())
        merged[f"rtt_{direction}_min_ns"] = sampled[f"rtt_{direction}_min_ns"].min()
        merged[f"rtt_{direction}_max_ns"] = sampled[f"rtt_{direction}_max_ns"].max()
        merged[f"rtt_{direction}_mean_ns"] = _mean(
            sampled, f"rtt_{direction}_mean_ns", f"rtt_{direction}_count"
        )
        for name in _QUANTILES:
            merged[f"rtt_{direction}_{name}_ns"] = _only(sampled, f"rtt_{direction}_{name}_ns")
    carrying = rows[rows["data_packets_inside"] > 0]
    for name in ("in_flight_mean_bytes", "in_flight_max_bytes"):
        merged[name] = _only(carrying, name)
    merged["window_mean_bytes"] = _mean(rows, "window_mean_bytes", "packets_inside")
    return SimpleNamespace(**merged)


def merge_match_rows(flows: pd.DataFrame, flow: FlowPlan) -> Any:
    """A flow's row of a match, in the direction of its data; None if it has no packet."""
    rows = _rows(flows, flow, "data_sent", data=True)
    if len(rows) < 2:
        return next(rows.itertuples(), None)
    came = rows[rows["received"] > 0]
    delay = _mean(came, "delay_mean_ns", "received")
    # Of the whole captures, not only of the measurement interval.
    smallest = (came["delay_mean_ns"] - came["queueing_mean_ns"]).min()
    merged = {
        "data_sent": int(rows["data_sent"].sum()),
        "data_lost": int(rows["data_lost"].sum()),
        "delay_mean_ns": delay,
        "delay_p99_ns": _only(came, "delay_p99_ns"),
        "queueing_mean_ns": delay - smallest,
        "queueing_p99_ns": _only(came, "queueing_p99_ns"),
        "bursts": int(rows["bursts"].sum()),
        "burst_packets": _mean(rows, "burst_packets", "bursts"),
    }
    for name in ("burst", "gap"):
        packets = (rows[f"{name}s"] * rows[f"{name}_packets"]).fillna(0)
        lost = (rows[f"{name}_density"] * packets).sum()
        merged[f"{name}_density"] = lost / packets.sum() if packets.sum() else 0.0
    return SimpleNamespace(**merged)


def _rows(flows: pd.DataFrame, flow: FlowPlan, most: str, *, data: bool) -> pd.DataFrame:
    """A flow's rows, or those of the other direction; of a bulk flow's, should there be several,
    the one with the most in `most`."""
    mine = flows[matches_flow(flows, flow)]
    if flow.traffic == "bulk":
        mine = mine.sort_values(most, ascending=False, kind="stable")[:1]
    # A connection's two rows follow each other, the first at an even place.
    return mine if data else flows.iloc[mine.index.to_numpy() ^ 1]


def _mean(rows: pd.DataFrame, column: str, weight: str) -> float:
    known = rows[rows[column].notna() & (rows[weight] > 0)]
    total = known[weight].sum()
    return float((known[column] * known[weight]).sum() / total) if total else math.nan


def _only(rows: pd.DataFrame, column: str) -> float:
    """The value of the only row."""
    return float(rows[column].iloc[0]) if len(rows) == 1 else math.nan
