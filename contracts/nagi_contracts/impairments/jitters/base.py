# SPDX-License-Identifier: Apache-2.0
"""The base classes of all distributions of jitter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict, is_false, is_zero
from nagi_contracts.impairments.planning import QuantileReader, plan_values
from nagi_contracts.units import Correlation, JitterWidth

DISTRIBUTION = "distribution of the time added to each packet's delay"


class JitterPlanBase(Contract):
    """A distribution of jitter in a plan."""

    correlation: float = Field(
        0.0, exclude_if=is_zero, description="autocorrelation from one packet to the next"
    )
    redraw_negative: bool = Field(
        False,
        exclude_if=is_false,
        description="whether to draw again if the sum of delay and jitter is below 0",
    )


Planned = TypeVar("Planned", bound=JitterPlanBase)


class JitterSettings(Strict, ABC):
    """A distribution of jitter in an experiment file."""

    correlation: Correlation = Field(
        Correlation(0),
        description="the probability that a packet has the jitter of the packet before it",
    )
    redraw_negative: Flag = Field(
        False,
        description="whether to draw again if the sum of delay and jitter is below 0; otherwise "
        "the sum becomes 0",
    )

    def make_plan(
        self, kind: type[Planned], width: JitterWidth, **extra: list[float]
    ) -> Planned | None:
        """Return a plan of type `kind` with these settings, or None if the jitter is always 0.

        Args:
            kind: The class of the plan.
            width: The setting that is 0 if the jitter is always 0.
            extra: Further values of the plan.
        """
        values = plan_values(self, without=["file"])
        return kind(**values, **extra) if width.value else None

    @abstractmethod
    def to_plan(self, read_quantiles: QuantileReader) -> JitterPlanBase | None:
        """Return the plan, or None if the jitter is always 0.

        Args:
            read_quantiles: A function that reads a distribution table, given its path.
        """
