# SPDX-License-Identifier: Apache-2.0
"""CoDel (RFC 8289): one queue, controlled by its sojourn time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Flag, is_false
from nagi_contracts.impairments.planning import Planning, full_size
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    QueuePlanBase,
    QueueSettings,
    some_packets,
)
from nagi_contracts.units import AqmInterval, AqmTarget, QueueSize


class CoDelPlan(QueuePlanBase):
    """Packets are dropped, or marked, once they have waited too long for too long."""

    discipline: Literal["codel"] = "codel"
    target_ns: int
    interval_ns: int
    ecn: bool = Field(False, exclude_if=is_false)
    full_packet_bytes: int

    def describe(self) -> str:
        return "CoDel"


class CoDel(QueueSettings):
    """Packets are dropped, or marked, once they have waited too long for too long."""

    discipline: Literal["codel"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(some_packets(1000), description="how much may wait")
    target: AqmTarget = Field(AqmTarget(5 * 10**6), description="acceptable sojourn time")
    interval: AqmInterval = Field(
        AqmInterval(100 * 10**6), description="about the round-trip time of the slowest flows"
    )
    ecn: Flag = Field(False, description="mark packets that understand it, instead of dropping")

    @property
    def marks(self) -> bool:
        return self.ecn

    def plan(self, planning: Planning) -> CoDelPlan:
        packets, size = planning.limit(self.limit)
        return CoDelPlan(
            packets=packets,
            bytes=size,
            target_ns=self.target.value,
            interval_ns=self.interval.value,
            ecn=self.ecn,
            full_packet_bytes=full_size(planning),
        )
