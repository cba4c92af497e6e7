# SPDX-License-Identifier: Apache-2.0
"""Jitter by a table of quantiles, as netem's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class TableJitterPlan(JitterPlanBase):
    """Quantiles, each as likely as any other."""

    distribution: Literal["table"] = "table"
    deviation_ns: int
    quantiles: list[float] = Field(description="in deviations, nondecreasing")


class TableJitter(JitterSettings):
    """A distribution that a file says, as netem has it, such as pareto.dist of iproute2."""

    distribution: Literal["table"] = Field(description=DISTRIBUTION)
    file: str = Field(min_length=1, description="table of netem's format; relative to this file")
    deviation: JitterWidth = Field(description="standard deviation")

    def plan(self, read_quantiles: QuantileReader) -> TableJitterPlan | None:
        quantiles = read_quantiles(self.file)
        return self.plan_of_width(TableJitterPlan, self.deviation, quantiles=quantiles)
