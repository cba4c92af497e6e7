# SPDX-License-Identifier: Apache-2.0
"""What distributions of jitter have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict, is_false, is_zero
from nagi_contracts.impairments.planning import QuantileReader, plan_values
from nagi_contracts.units import Correlation, JitterWidth

DISTRIBUTION = "distribution of what is added to each packet's delay"


class JitterPlanBase(Contract):
    correlation: float = Field(
        0.0, exclude_if=is_zero, description="autocorrelation from one packet to the next"
    )
    redraw_negative: bool = Field(
        False, exclude_if=is_false, description="sums of delay and jitter below 0 are drawn anew"
    )


Planned = TypeVar("Planned", bound=JitterPlanBase)


class JitterSettings(Strict, ABC):
    correlation: Correlation = Field(
        Correlation(0), description="the probability that a packet has the jitter of the one before"
    )
    redraw_negative: Flag = Field(
        False,
        description="whether a sum of delay and jitter below 0 is drawn anew; it becomes 0 if not",
    )

    def plan_of_width(
        self, kind: type[Planned], width: JitterWidth, **further: list[float]
    ) -> Planned | None:
        """None: the width is 0."""
        values = plan_values(self, without=["file"])
        return kind(**values, **further) if width.value else None

    @abstractmethod
    def plan(self, read_quantiles: QuantileReader) -> JitterPlanBase | None:
        """None: the jitter is 0."""
