# SPDX-License-Identifier: Apache-2.0
"""FQ-CoDel (RFC 8290): one queue per flow, each with CoDel."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Flag, Whole, is_true
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.impairments.planning import Planning, get_full_size
from nagi_contracts.impairments.queues.base import DISCIPLINE, make_packet_limit
from nagi_contracts.impairments.queues.codel import CoDelPlanBase, CoDelSettings
from nagi_contracts.units import PacketSize, QueueSize

_MIN_FLOWS, _MAX_FLOWS = get_integer_range("queue_flows")


class FqCoDelPlan(CoDelPlanBase):
    """One queue per flow; flows take turns, and CoDel controls each queue."""

    title = "FQ-CoDel"
    discipline: Literal["fq_codel"] = "fq_codel"
    ecn: bool = Field(True, exclude_if=is_true)
    quantum_bytes: int
    flows: int


class FqCoDel(CoDelSettings):
    """One queue per flow; flows take turns, and CoDel controls each queue."""

    plan_type = FqCoDelPlan
    discipline: Literal["fq_codel"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(
        make_packet_limit(10240), description="size of the queues of all flows together"
    )
    ecn: Flag = Field(True, description="whether ECN-capable packets are marked instead of dropped")
    quantum: PacketSize | None = Field(
        None,
        description="bytes that a flow sends in its turn; default: a full-size packet",
    )
    flows: Whole = Field(1024, ge=_MIN_FLOWS, le=_MAX_FLOWS, description="number of queues")

    def get_extra_values(self, planning: Planning) -> dict[str, int]:
        values = super().get_extra_values(planning)
        if self.quantum is None:
            values["quantum_bytes"] = get_full_size(planning)
        return values
