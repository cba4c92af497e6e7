# SPDX-License-Identifier: Apache-2.0
"""Compare the goodput of a flow with the capacity of its path."""

from __future__ import annotations

import numpy as np
from nagi_captures.flow_rows import matches_flow
from nagi_contracts.capacity import max_payload
from nagi_contracts.plan import FlowPlan, RunPlan

from nagi.verdict.captured import CapturedPackets


def measure_goodput_surplus(
    plan: RunPlan,
    flow: FlowPlan,
    captures: dict[tuple[str, str], CapturedPackets],
    late_ns: int,
) -> float | None:
    """Return the payload that a flow's receiver got in excess of the capacity of its path.

    Args:
        plan: The plan of the run.
        flow: The flow of the plan.
        captures: (node, link) -> the capture at this interface, with times of the emulator's clock.
        late_ns: The permitted lateness of packets in captures, see get_max_lateness_ns().

    Returns:
        Bytes in the measured interval; 0 if the payload does not exceed the capacity. None if the
        capacity is not known, because elements on the path hold packets back.
    """
    capture = captures[flow.receiver, flow.path[-1].link]
    start_ns, end_ns = round(plan.measure.start_s * 1e9), round(plan.measure.end_s * 1e9)
    is_new = np.isin(capture.row, np.flatnonzero(matches_flow(capture.flows, flow)))
    is_new &= (capture.time_ns >= start_ns) & (capture.time_ns < end_ns) & (capture.new_bytes > 0)
    if not is_new.any():
        return 0.0
    last_ns = int(capture.time_ns[is_new].max()) + 1
    capacity = max_payload(plan, flow, start_ns - late_ns, last_ns + late_ns)
    if capacity is None:
        return None
    return max(0.0, float(capture.new_bytes[is_new].sum() - capacity))
