# SPDX-License-Identifier: Apache-2.0
"""Uniform jitter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class UniformJitterPlan(JitterPlanBase):
    """As much earlier as later, at most by the half width."""

    distribution: Literal["uniform"] = "uniform"
    half_width_ns: int


class UniformJitter(JitterSettings):
    """As much earlier as later, at most by the half width."""

    distribution: Literal["uniform"] = Field(description=DISTRIBUTION)
    half_width: JitterWidth = Field(description="largest deviation from the delay")

    def plan(self, read_quantiles: QuantileReader) -> UniformJitterPlan | None:
        if not self.half_width.value:
            return None
        return UniformJitterPlan(
            half_width_ns=self.half_width.value,
            correlation=self.correlation.value,
            redraw_negative=self.redraw_negative,
        )
