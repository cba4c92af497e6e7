# SPDX-License-Identifier: Apache-2.0
"""FQ-CoDel (RFC 8290): a queue a flow, each with CoDel."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Flag, Whole, is_true
from nagi_contracts.bounds import whole
from nagi_contracts.impairments.planning import Planning, full_size
from nagi_contracts.impairments.queues.base import DISCIPLINE, some_packets
from nagi_contracts.impairments.queues.codel import CoDelPlanBase, CoDelSettings
from nagi_contracts.units import PacketSize, QueueSize

_MIN_FLOWS, _MAX_FLOWS = whole("queue_flows")


class FqCoDelPlan(CoDelPlanBase):
    """Flows take turns; in each, packets that wait too long for too long are dropped or marked."""

    title = "FQ-CoDel"
    discipline: Literal["fq_codel"] = "fq_codel"
    ecn: bool = Field(True, exclude_if=is_true)
    quantum_bytes: int
    flows: int


class FqCoDel(CoDelSettings):
    """Flows take turns; in each, packets that wait too long for too long are dropped or marked."""

    plan_type = FqCoDelPlan
    discipline: Literal["fq_codel"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(some_packets(10240), description="how much may wait, of all flows")
    ecn: Flag = Field(True, description="mark packets that understand it, instead of dropping")
    quantum: PacketSize | None = Field(
        None, description="what a flow sends before the next one's turn; a full-size packet"
    )
    flows: Whole = Field(1024, ge=_MIN_FLOWS, le=_MAX_FLOWS, description="number of queues")

    def further(self, planning: Planning) -> dict[str, int]:
        values = super().further(planning)
        if self.quantum is None:
            values["quantum_bytes"] = full_size(planning)
        return values
