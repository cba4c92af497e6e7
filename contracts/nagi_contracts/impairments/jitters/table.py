# SPDX-License-Identifier: Apache-2.0
"""Jitter by a table of quantiles, in netem's format."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.jitters.base import DISTRIBUTION, JitterPlanBase, JitterSettings
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import JitterWidth


class TableJitterPlan(JitterPlanBase):
    """A distribution given by quantiles at equal steps of probability."""

    distribution: Literal["table"] = "table"
    deviation_ns: int
    quantiles: list[float] = Field(description="quantiles in standard deviations, nondecreasing")


class TableJitter(JitterSettings):
    """A distribution from a file in netem's format, such as pareto.dist of iproute2."""

    distribution: Literal["table"] = Field(description=DISTRIBUTION)
    file: str = Field(
        min_length=1,
        description="path of a table in netem's format, relative to the experiment file",
    )
    deviation: JitterWidth = Field(description="standard deviation")

    def to_plan(self, read_quantiles: QuantileReader) -> TableJitterPlan | None:
        quantiles = read_quantiles(self.file)
        return self.make_plan(TableJitterPlan, self.deviation, quantiles=quantiles)
