# SPDX-License-Identifier: Apache-2.0
"""Rates and delays that change during a run. Instants count from the start of the run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

from pydantic import Field

from nagi_contracts.base import Contract

Number = TypeVar("Number", int, float)


def spans(steps: Sequence[tuple[int, Number]], period_ns: int) -> list[tuple[int, int, Number]]:
    """Return (start in ns, end in ns, value) of each step of one period of a trace.

    Args:
        steps: (instant in ns, value from then on); the first instant is 0.
        period_ns: The length of the period, at which the last step ends.
    """
    ends = [start for start, _ in steps[1:]] + [period_ns]
    return [(start, end, value) for (start, value), end in zip(steps, ends, strict=True)]


class StepTrace(Contract):
    """A piecewise-constant value that repeats: a rate in bit/s (0: outage) or a delay in ns."""

    steps: list[tuple[int, int]] = Field(
        description="(instant in ns, value from then on); the first at 0, strictly increasing"
    )
    period_ns: int = Field(
        description="time after which the trace repeats; later than every instant"
    )

    @property
    def exact_mean(self) -> Fraction:
        """The mean of the value over time."""
        return Fraction(self._integrals[-1], self.period_ns)

    @property
    def mean(self) -> int:
        """The mean of the value over time, rounded."""
        return round(self.exact_mean)

    def bits(self, start_ns: int, end_ns: int) -> Fraction:
        """Return the number of bits that a trace of rates permits in [start_ns, end_ns)."""
        return Fraction(self._integrate(end_ns) - self._integrate(start_ns), 10**9)

    def iterate_pieces(self, end_ns: int) -> Iterator[tuple[int, int, int]]:
        """Yield (start_ns, end_ns, value) of each step from the start of the run to `end_ns`.

        The steps repeat with each period. The last one is cut off at `end_ns`.
        """
        steps = spans(self.steps, self.period_ns)
        for period_start in range(0, end_ns, self.period_ns):
            for start, end, value in steps:
                if period_start + start >= end_ns:
                    return
                yield period_start + start, min(period_start + end, end_ns), value

    def _integrate(self, until_ns: int) -> int:
        """Return the integral of the value from the run's start until an instant, in value x ns."""
        periods, within_ns = divmod(until_ns, self.period_ns)
        step = bisect_right(self.steps, within_ns, key=lambda step: step[0]) - 1
        start, value = self.steps[step]
        integrals = self._integrals
        return periods * integrals[-1] + integrals[step] + value * (within_ns - start)

    @cached_property
    def _integrals(self) -> list[int]:
        """The integrals from the period's start until each step, and until the period's end."""
        parts = (value * (end - start) for start, end, value in spans(self.steps, self.period_ns))
        return list(accumulate(parts, initial=0))


class OpportunityTrace(Contract):
    """A trace of a rate in mahimahi's format: a number of bytes may leave at each instant."""

    opportunities_ns: list[int] = Field(
        description="instants in ns, nondecreasing, from 0 to the period"
    )
    bytes: int = Field(description="bytes that may leave at each instant")
    period_ns: int = Field(description="time after which the trace repeats")

    @property
    def exact_mean(self) -> Fraction:
        """The mean of the rate over time, in bit/s."""
        bits = self.bytes * 8 * len(self.opportunities_ns)
        return Fraction(bits * 10**9, self.period_ns)

    @property
    def mean(self) -> int:
        """The mean of the rate over time, in bit/s, rounded."""
        return round(self.exact_mean)

    def bits(self, start_ns: int, end_ns: int) -> Fraction:
        """Return the number of bits that may be sent in [start_ns, end_ns)."""
        opportunities = self._count_until(end_ns) - self._count_until(start_ns)
        return Fraction(8 * self.bytes * opportunities)

    def _count_until(self, until_ns: int) -> int:
        """Return the number of opportunities before an instant.

        An opportunity at the end of a period and an opportunity at instant 0 of the next period
        count as two, although they coincide.
        """
        periods, within_ns = divmod(until_ns, self.period_ns)
        per_period = len(self.opportunities_ns)
        at_end = 0  # opportunities at the end of the previous period, which is `until_ns` itself
        if periods and within_ns == 0:
            at_end = per_period - bisect_left(self.opportunities_ns, self.period_ns)
        return periods * per_period - at_end + bisect_left(self.opportunities_ns, within_ns)
