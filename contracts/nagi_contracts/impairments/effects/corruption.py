# SPDX-License-Identifier: Apache-2.0
"""A share of packets arrives with bits changed; their checksums are wrong."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.units import Share


class CorruptionPlan(Contract):
    """A share of packets arrives with bits changed; their checksums are wrong."""

    probability: float

    def describe(self) -> str:
        return f"{self.probability * 100:g} % of packets corrupted"


class Corruption(Strict):
    """A share of packets arrives with bits changed; their checksums are wrong."""

    rate: Share = Field(description="the probability that a packet is corrupted")

    def plan(self) -> CorruptionPlan | None:
        return CorruptionPlan(probability=self.rate.value) if self.rate.value else None
