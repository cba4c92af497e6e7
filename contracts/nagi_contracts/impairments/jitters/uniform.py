# SPDX-License-Identifier: Apache-2.0
"""Uniform jitter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class UniformJitterPlan(JitterPlanBase):
    """A uniform distribution around 0, as wide as twice the half width."""

    distribution: Literal["uniform"] = "uniform"
    half_width_ns: int


class UniformJitter(JitterSettings):
    """A uniform distribution around 0, as wide as twice the half width."""

    distribution: Literal["uniform"] = Field(description=DISTRIBUTION)
    half_width: JitterWidth = Field(description="largest deviation from the delay")

    def to_plan(self, read_quantiles: QuantileReader) -> UniformJitterPlan | None:
        return self.make_plan(UniformJitterPlan, self.half_width)
