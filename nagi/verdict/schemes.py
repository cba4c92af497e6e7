# SPDX-License-Identifier: Apache-2.0
"""Count connections that ran as reno, because only one of their hosts ran their scheme."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi_contracts.plan import RunPlan

from nagi.verdict.values import Value


def count_scheme_fallbacks(plan: RunPlan, events_file: Path) -> list[Value] | None:
    """Count the connections that ran as reno because the other host does not run their scheme.

    Args:
        plan: The plan of the run.
        events_file: The events that schemes reported (contract SchemeEvent).

    Returns:
        One value per flow whose scheme both hosts have to run. None if there is no such flow, or if
        `events_file` does not exist.
    """
    flows = [flow.name for flow in plan.flows if flow.receiver_control == flow.congestion_control]
    if not flows or not events_file.exists():
        return None
    events = pd.read_parquet(events_file, columns=["flow", "connection", "event"])
    counts = events[events["event"] == "fallback"].groupby("flow")["connection"].nunique()
    return [(float(counts.get(flow, 0)), flow) for flow in flows]
