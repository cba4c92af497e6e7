# SPDX-License-Identifier: Apache-2.0
"""Reactions of a sender to losses and marks: its states in TCP_INFO, and events of its scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from nagi_contracts.plan import FlowPlan

from nagi_reports.parquet import read_parquet

if TYPE_CHECKING:
    from nagi_reports.explorer.run import RunFiles

# States of TCP_INFO that are a reaction to a loss or a mark; open and disorder are not.
_STATES = {2: "CWR", 3: "recovery", 4: "timeout"}


def read_states(run: RunFiles, flow: FlowPlan) -> list[tuple[float, float, str]]:
    """Return begin, end and name of each period in which the sender was in a state of _STATES.

    Times are in s since the traffic began, by the emulator's clock. Return [] if the flow's traffic
    is not `bulk`, because it may have several connections, or if there are no samples.
    """
    path = run.directory / "tcp_info.parquet"
    if flow.traffic != "bulk" or not path.exists():
        return []
    table = read_parquet(path, columns=["t_s", "flow", "ca_state"])
    samples = table[(table["flow"] == flow.name) & table["ca_state"].notna()].sort_values("t_s")
    if samples.empty:
        return []
    sampled_s = run.samples_to_traffic_s(flow.sender, samples["t_s"])
    state = samples["ca_state"].to_numpy(np.int64)
    starts = np.flatnonzero(np.append(True, state[1:] != state[:-1]))
    ends = np.append(starts[1:], len(state) - 1)
    return [
        (
            round(float(sampled_s[begin]), 6),
            round(float(sampled_s[end]), 6),
            _STATES[int(state[begin])],
        )
        for begin, end in zip(starts, ends, strict=True)
        if int(state[begin]) in _STATES
    ]


def read_events(run: RunFiles, flow: FlowPlan) -> list[dict[str, Any]]:
    """Return a flow's events of scheme_events.parquet that are reactions to losses and marks.

    Times are in s since the traffic began; `cwnd` is the window before and after the event. Return
    [] if the scheme reports no events.
    """
    path = run.directory / "scheme_events.parquet"
    if not path.exists():
        return []
    table = read_parquet(path)
    is_event = (table["flow"] == flow.name) & ~table["event"].isin(["sample", "started"])
    flow_events = table[is_event].sort_values("t_s", kind="stable")
    event_s = run.samples_to_traffic_s(flow.sender, flow_events["t_s"])
    return [
        {
            "t_s": round(float(t_s), 6),
            "event": row["event"],
            "verdict": row["verdict"] if isinstance(row["verdict"], str) else None,
            "cwnd": [int(row["cwnd_before"]), int(row["cwnd"])],
        }
        for t_s, row in zip(event_s, flow_events.to_dict("records"), strict=True)
    ]
