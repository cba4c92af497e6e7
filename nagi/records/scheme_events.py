# SPDX-License-Identifier: Apache-2.0
"""Reads the events that nagi's schemes reported during a run, from nagi-tcp's lines to a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.errors import refuse
from nagi_contracts.plan import FlowPlan, RunPlan
from nagi_contracts.records import SchemeEvent

SCHEME_EVENTS = "scheme_events.parquet"  # in a run directory
FILES = "events.*.jsonl"  # files of an agent, one per scheme


def read_events(plan: RunPlan, node: str, directory: Path, began_realtime_s: float) -> pd.DataFrame:
    """Read the events that a node's schemes reported. Leave out connections that belong to no flow.

    Args:
        plan: The plan of the run.
        node: The node whose agent wrote the files `events.*.jsonl`.
        directory: The directory with these files.
        began_realtime_s: When the run began, by the node's realtime clock.

    Returns:
        Rows of the contract SchemeEvent, in the order of files (by name) and lines. The table has
        no rows if the schemes of the node reported no events.

    Raises:
        InputError: A file is damaged. The message does not name the directory.
    """
    rows = [
        row
        for file in sorted(directory.glob(FILES))
        for row in _read_rows(plan, node, file, began_realtime_s)
    ]
    table = pd.DataFrame(rows, columns=list(SchemeEvent.model_fields))
    return table.astype({"ssthresh_before": "Int64", "ssthresh": "Int64"})


def _read_rows(
    plan: RunPlan, node: str, file: Path, began_realtime_s: float
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one file. Leave out events of connections that belong to no flow."""
    try:
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        opened, *events, closed = lines
        if (opened["event"], closed["event"]) != ("opened", "closed"):
            raise ValueError
    except (ValueError, KeyError):
        raise refuse(f"{node}: {file.name}: it is damaged", "run it again") from None
    # Events have times of the host's monotonic clock. The first line has times of both clocks.
    realtime_offset_ns = opened["realtime_ns"] - opened["t_ns"]
    connections: dict[tuple[str, int, int], int] = {}  # (flow, ports) -> number within the flow
    for event in events:
        ports = event.get("local_port"), event.get("remote_port")
        flow = _find_flow(plan, node, *ports)
        if flow is None:  # `lost` events, which the agent reports, and others
            continue
        flow_connections = [key for key in connections if key[0] == flow.name]
        connection = connections.setdefault((flow.name, *ports), len(flow_connections))
        row = {name: event[name] for name in _COPIED}
        row["t_s"] = round((event["t_ns"] + realtime_offset_ns) / 1e9 - began_realtime_s, 6)
        yield {**row, "flow": flow.name, "connection": connection}


_COPIED = [name for name in SchemeEvent.model_fields if name not in ("t_s", "flow", "connection")]


def _find_flow(plan: RunPlan, node: str, local: int | None, remote: int | None) -> FlowPlan | None:
    """Return the flow whose data a connection of `node` with these ports sends, or None."""
    for flow in plan.flows:
        sends = node == flow.sender or (flow.command is not None and node == flow.receiver)
        if sends and flow.port == (local if flow.listener == node else remote):
            return flow
    return None
