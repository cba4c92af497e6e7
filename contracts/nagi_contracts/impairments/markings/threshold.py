# SPDX-License-Identifier: Apache-2.0
"""Marking over a threshold of the averaged queue (ECN, RFC 3168)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract, Strict, is_default
from nagi_contracts.bounds import real
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.planning import Planning, full_size
from nagi_contracts.units import Share, Threshold


class ThresholdMarkingPlan(Contract):
    """Packets are marked CE while the queue's moving average is over the threshold, which is one of
    the two."""

    rule: Literal["threshold"] = Field("threshold", exclude_if=is_default("threshold"))
    threshold_packets: int | None = None
    threshold_bytes: int | None = None
    weight: float = Field(description="of a new value in the moving average; 1: the queue itself")
    packet_bytes: int = Field(
        1500, description="IP bytes of a typical packet, as many as could be sent while it is idle"
    )


class ThresholdMarking(Strict):
    """Packets are marked CE while the queue's moving average is over the threshold."""

    rule: Literal["threshold"] = Field("threshold", description="by what packets are marked")
    threshold: Threshold = Field(description="queue above which packets are marked")
    weight: Share = Field(
        Share(0.002), description="of a new value in the average, above 0; 1: the queue itself"
    )

    @model_validator(mode="after")
    def _possible(self) -> ThresholdMarking:
        if self.weight.value < real("mark_weight")[0]:
            raise BadValue(
                f"a weight of {self.weight.value:g} ignores the queue",
                "give more, like 0.002",
                "weight",
            )
        return self

    def plan(self, planning: Planning) -> ThresholdMarkingPlan:
        packets, size = planning.limit(self.threshold)
        return ThresholdMarkingPlan(
            threshold_packets=packets,
            threshold_bytes=size,
            weight=self.weight.value,
            packet_bytes=full_size(planning),
        )
