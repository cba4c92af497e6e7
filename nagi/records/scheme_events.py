# SPDX-License-Identifier: Apache-2.0
"""What schemes of ours told while they ran: from nagi-tcp's lines to a table of the run."""

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
FILES = "events.*.jsonl"  # as agents leave them, one a scheme


def read_events(plan: RunPlan, node: str, directory: Path, began_realtime_s: float) -> pd.DataFrame:
    """The rows (contract SchemeEvent) of what `node` has left in `directory`, by time. Raises
    InputError, without the directory's name, if a file is not whole."""
    rows = [
        row
        for file in sorted(directory.glob(FILES))
        for row in _rows(plan, node, file, began_realtime_s)
    ]
    table = pd.DataFrame(rows, columns=list(SchemeEvent.model_fields))
    return table.astype({"ssthresh_before": "Int64", "ssthresh": "Int64"})


def _rows(
    plan: RunPlan, node: str, file: Path, began_realtime_s: float
) -> Iterator[dict[str, Any]]:
    try:
        lines = [json.loads(line) for line in file.read_bytes().splitlines()]
        opened, *events, closed = lines
        if (opened["event"], closed["event"]) != ("opened", "closed"):
            raise ValueError
    except (ValueError, KeyError):
        raise refuse(f"{node}: {file.name}: it is damaged", "run it again") from None
    # Instants are by the host's monotonic clock; the first line has both clocks.
    ahead_ns = opened["realtime_ns"] - opened["t_ns"]
    connections: dict[tuple[str, int, int], int] = {}
    for event in events:
        ends = event.get("local_port"), event.get("remote_port")
        flow = _flow(plan, node, *ends)
        if flow is None:  # `lost`, which the agent has complained of, or no flow's connection
            continue
        mine = [key for key in connections if key[0] == flow.name]
        number = connections.setdefault((flow.name, *ends), len(mine))
        row = {name: event[name] for name in _COPIED}
        row["t_s"] = round((event["t_ns"] + ahead_ns) / 1e9 - began_realtime_s, 6)
        yield {**row, "flow": flow.name, "connection": number}


_COPIED = [name for name in SchemeEvent.model_fields if name not in ("t_s", "flow", "connection")]


def _flow(plan: RunPlan, node: str, local: int | None, remote: int | None) -> FlowPlan | None:
    """The flow whose data a connection of `node` sends."""
    for flow in plan.flows:
        sends = node == flow.sender or (flow.command is not None and node == flow.receiver)
        if sends and flow.port == (local if flow.listener == node else remote):
            return flow
    return None
