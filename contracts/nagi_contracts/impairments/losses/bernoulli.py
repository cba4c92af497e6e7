# SPDX-License-Identifier: Apache-2.0
"""Bernoulli losses: all packets have the same loss probability, independently."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings, format_percent
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Share


class BernoulliLossPlan(LossPlanBase):
    """Independent losses with the same probability for all packets."""

    model: Literal["bernoulli"] = "bernoulli"
    probability: float
    is_for_switches: ClassVar[bool] = True

    def loss_probability(self, size: int, overhead: int) -> float:
        return self.probability

    def describe(self) -> str:
        return f"{format_percent(self.probability)} of packets, independently"


class BernoulliLoss(LossSettings):
    """Independent losses with the same probability for all packets."""

    model: Literal["bernoulli"] = Field(description=MODEL)
    rate: Share = Field(description="the probability of losing a packet")

    def to_plan(self, planning: Planning) -> BernoulliLossPlan:
        return BernoulliLossPlan(probability=self.rate.value, at=self.at)
