# SPDX-License-Identifier: Apache-2.0
"""Normal jitter."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class NormalJitterPlan(JitterPlanBase):
    """A normal distribution around 0."""

    distribution: Literal["normal"] = "normal"
    deviation_ns: int


class NormalJitter(JitterSettings):
    """A normal distribution around 0."""

    distribution: Literal["normal"] = Field(description=DISTRIBUTION)
    deviation: JitterWidth = Field(description="standard deviation")

    def to_plan(self, read_quantiles: QuantileReader) -> NormalJitterPlan | None:
        return self.make_plan(NormalJitterPlan, self.deviation)
