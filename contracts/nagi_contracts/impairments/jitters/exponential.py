# SPDX-License-Identifier: Apache-2.0
"""Exponential jitter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class ExponentialJitterPlan(JitterPlanBase):
    """An exponential distribution: every packet has at least the link's delay."""

    distribution: Literal["exponential"] = "exponential"
    mean_ns: int


class ExponentialJitter(JitterSettings):
    """An exponential distribution: every packet has at least the link's delay."""

    distribution: Literal["exponential"] = Field(description=DISTRIBUTION)
    mean: JitterWidth = Field(description="mean of the time added to the delay")

    def to_plan(self, read_quantiles: QuantileReader) -> ExponentialJitterPlan | None:
        return self.make_plan(ExponentialJitterPlan, self.mean)
