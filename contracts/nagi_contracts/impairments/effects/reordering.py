# SPDX-License-Identifier: Apache-2.0
"""Reordering: a share of packets gets an extra delay, so that later packets overtake them."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.units import Delay, Duration, Share


class ReorderingPlan(Contract):
    """An extra delay of a share of packets, so that later packets overtake them."""

    probability: float
    delay_ns: int = Field(description="extra delay of these packets")

    def describe(self) -> str:
        return f"{self.probability * 100:g} % of packets held back by {Duration(self.delay_ns)}"


class Reordering(Strict):
    """An extra delay of a share of packets, so that later packets overtake them."""

    rate: Share = Field(description="the probability that a packet is held back")
    delay: Delay = Field(
        description="time for which the packet is held back, in addition to the link's delay"
    )

    def to_plan(self) -> ReorderingPlan | None:
        if not self.rate.value:
            return None
        return ReorderingPlan(probability=self.rate.value, delay_ns=self.delay.value)
