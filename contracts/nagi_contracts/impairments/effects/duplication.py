# SPDX-License-Identifier: Apache-2.0
"""Duplication: a share of packets arrives twice."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.units import Share


class DuplicationPlan(Contract):
    """A second copy of a share of packets."""

    probability: float

    def describe(self) -> str:
        return f"{self.probability * 100:g} % of packets duplicated"


class Duplication(Strict):
    """A second copy of a share of packets."""

    rate: Share = Field(description="the probability that a packet is duplicated")

    def to_plan(self) -> DuplicationPlan | None:
        return DuplicationPlan(probability=self.rate.value) if self.rate.value else None
