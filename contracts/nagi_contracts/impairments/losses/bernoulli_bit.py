# SPDX-License-Identifier: Apache-2.0
"""Bit errors: all bits have the same error probability, independently."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Share


class BernoulliBitLossPlan(LossPlanBase):
    """Independent bit errors with the same probability; one wrong bit loses the packet."""

    model: Literal["bernoulli_bit"] = "bernoulli_bit"
    bit_error_rate: float

    def loss_probability(self, size: int, overhead: int) -> float:
        return -math.expm1(8 * size * math.log1p(-self.bit_error_rate))

    def describe(self) -> str:
        return f"bit error rate {self.bit_error_rate:g}"


class BernoulliBitLoss(LossSettings):
    """Independent bit errors with the same probability; one wrong bit loses the packet."""

    model: Literal["bernoulli_bit"] = Field(description=MODEL)
    rate: Share = Field(description="the bit error rate, below 1")

    @model_validator(mode="after")
    def _check_rate(self) -> BernoulliBitLoss:
        if self.rate.value > get_number_range("bit_error_rate")[1]:
            raise BadValue(
                "a bit error rate of 1 loses every packet", "give less, like 1e-6", "rate"
            )
        return self

    def to_plan(self, planning: Planning) -> BernoulliBitLossPlan:
        return BernoulliBitLossPlan(bit_error_rate=self.rate.value, at=self.at)
