# SPDX-License-Identifier: Apache-2.0
"""Marking while the average queue length is above a threshold (ECN, RFC 3168)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.base import Contract, Strict, is_default
from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.planning import Planning, get_full_size
from nagi_contracts.units import Share, Threshold


class ThresholdMarkingPlan(Contract):
    """A rule that marks packets CE while the average queue length is above a threshold.

    The average is a moving average. The threshold is either in packets or in bytes.
    """

    rule: Literal["threshold"] = Field("threshold", exclude_if=is_default("threshold"))
    threshold_packets: int | None = None
    threshold_bytes: int | None = None
    weight: float = Field(
        description="weight of a new value in the moving average; 1: no averaging"
    )
    packet_bytes: int = Field(
        1500,
        description="IP bytes of a typical packet; while the queue is empty, the average decreases "
        "as if such packets were sent",
    )


class ThresholdMarking(Strict):
    """A rule that marks packets CE while the average queue length is above a threshold."""

    rule: Literal["threshold"] = Field("threshold", description="rule that marks packets")
    threshold: Threshold = Field(description="average queue length above which packets are marked")
    weight: Share = Field(
        Share(0.002), description="weight of a new value in the average, above 0; 1: no averaging"
    )

    @model_validator(mode="after")
    def _check_weight(self) -> ThresholdMarking:
        if self.weight.value < get_number_range("mark_weight")[0]:
            raise BadValue(
                f"a weight of {self.weight.value:g} ignores the queue",
                "give more, like 0.002",
                "weight",
            )
        return self

    def to_plan(self, planning: Planning) -> ThresholdMarkingPlan:
        packets, size = planning.resolve_size(self.threshold)
        return ThresholdMarkingPlan(
            threshold_packets=packets,
            threshold_bytes=size,
            weight=self.weight.value,
            packet_bytes=get_full_size(planning),
        )
