# SPDX-License-Identifier: Apache-2.0
"""What distributions of jitter have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict, is_false, is_zero
from nagi_contracts.impairments.planning import QuantileReader
from nagi_contracts.units import Correlation

DISTRIBUTION = "distribution of what is added to each packet's delay"


class JitterSettings(Strict, ABC):
    correlation: Correlation = Field(
        Correlation(0), description="the probability that a packet has the jitter of the one before"
    )
    redraw_negative: Flag = Field(
        False,
        description="whether a sum of delay and jitter below 0 is drawn anew; it becomes 0 if not",
    )

    @abstractmethod
    def plan(self, read_quantiles: QuantileReader) -> JitterPlanBase | None:
        """None: the jitter is 0."""


class JitterPlanBase(Contract):
    correlation: float = Field(
        0.0, exclude_if=is_zero, description="autocorrelation from one packet to the next"
    )
    redraw_negative: bool = Field(
        False, exclude_if=is_false, description="sums of delay and jitter below 0 are drawn anew"
    )
