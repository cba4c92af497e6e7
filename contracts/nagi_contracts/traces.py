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
    """Return (start, end, value) of each step within a period, in ns."""
    ends = [at for at, _ in steps[1:]] + [period_ns]
    return [(at, end, value) for (at, value), end in zip(steps, ends, strict=True)]


class StepTrace(Contract):
    """A piecewise-constant value: a rate in bit/s (0: an outage) or a delay in nanoseconds."""

    steps: list[tuple[int, int]] = Field(
        description="(instant in ns, value from then on); the first at 0, strictly increasing"
    )
    period_ns: int = Field(description="after which the trace repeats; later than every instant")

    @property
    def exact_mean(self) -> Fraction:
        """The value's mean over time."""
        return Fraction(self._until_step[-1], self.period_ns)

    @property
    def mean(self) -> int:
        """The same, rounded."""
        return round(self.exact_mean)

    def bits(self, start_ns: int, end_ns: int) -> Fraction:
        """Return how many bits a rate of this trace carries from one instant to another."""
        return Fraction(self._integral(end_ns) - self._integral(start_ns), 10**9)

    def pieces(self, end_ns: int) -> Iterator[tuple[int, int, int]]:
        """Yield (start, end, value) of each piece, in ns, from the run's start until `end_ns`."""
        within = spans(self.steps, self.period_ns)
        for begin in range(0, end_ns, self.period_ns):
            for at, end, value in within:
                if begin + at >= end_ns:
                    return
                yield begin + at, min(begin + end, end_ns), value

    def _integral(self, at_ns: int) -> int:
        """Return value x time since the start of the run."""
        periods, within = divmod(at_ns, self.period_ns)
        step = bisect_right(self.steps, within, key=lambda step: step[0]) - 1
        begin, value = self.steps[step]
        until = self._until_step
        return periods * until[-1] + until[step] + value * (within - begin)

    @cached_property
    def _until_step(self) -> list[int]:
        """Value x time from the period's start until each step, and until the period's end."""
        each = (value * (end - at) for at, end, value in spans(self.steps, self.period_ns))
        return list(accumulate(each, initial=0))


class OpportunityTrace(Contract):
    """mahimahi's trace of a rate: at each instant that many bytes may leave."""

    opportunities_ns: list[int] = Field(description="nondecreasing, from 0 to the period")
    bytes: int = Field(description="that may leave at each instant")
    period_ns: int = Field(description="after which the trace repeats")

    @property
    def exact_mean(self) -> Fraction:
        """The rate's mean over time in bit/s."""
        bits = self.bytes * 8 * len(self.opportunities_ns)
        return Fraction(bits * 10**9, self.period_ns)

    @property
    def mean(self) -> int:
        """The same, rounded."""
        return round(self.exact_mean)

    def bits(self, start_ns: int, end_ns: int) -> Fraction:
        """Return how many bits may leave from one instant on and before another."""
        return Fraction(8 * self.bytes * (self._before(end_ns) - self._before(start_ns)))

    def _before(self, at_ns: int) -> int:
        """Return how many opportunities there are before an instant. Those at the period's end
        and at 0 of the next one are two."""
        periods, within = divmod(at_ns, self.period_ns)
        each = len(self.opportunities_ns)
        at_end = 0  # of the period before, which are at this period's 0
        if periods and within == 0:
            at_end = each - bisect_left(self.opportunities_ns, self.period_ns)
        return periods * each - at_end + bisect_left(self.opportunities_ns, within)
