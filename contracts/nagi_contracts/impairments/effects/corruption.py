# SPDX-License-Identifier: Apache-2.0
"""Corruption: a share of packets arrives with changed bits and wrong checksums."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.units import Share


class CorruptionPlan(Contract):
    """Changed bits, and therefore wrong checksums, in a share of packets."""

    probability: float

    def describe(self) -> str:
        return f"{self.probability * 100:g} % of packets corrupted"


class Corruption(Strict):
    """Changed bits, and therefore wrong checksums, in a share of packets."""

    rate: Share = Field(description="the probability that a packet is corrupted")

    def to_plan(self) -> CorruptionPlan | None:
        return CorruptionPlan(probability=self.rate.value) if self.rate.value else None
