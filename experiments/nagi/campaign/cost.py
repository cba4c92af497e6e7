# SPDX-License-Identifier: Apache-2.0
"""What a campaign costs beyond the runs' own timelines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from nagi_contracts.plan import RunPlan
from nagi_contracts.units import count_of

from nagi.labs.lab import BETWEEN_RUNS_S

Expense = Literal["labs", "results"]


class Cost:
    """Adds up, by a monotonic clock, where the time of a campaign goes, in seconds.

    `labs`: making labs, shipping batches, waiting for agents and bringing records; of a batch, what
    it takes longer than the runs of the cell that has most. `results`: certificates and metrics.
    Runs that do not take place in real time count with what they take.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.seconds: dict[Expense, float] = {"labs": 0.0, "results": 0.0}
        self._virtual_s = self._wall_s = 0.0

    @contextmanager
    def measure(self, what: Expense) -> Iterator[None]:
        """What is done meanwhile is not part of any run."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] += time.monotonic() - started

    @contextmanager
    def measure_batch(
        self, plans: dict[str, list[RunPlan]], *, in_real_time: bool = True
    ) -> Iterator[None]:
        """A batch goes on meanwhile."""
        timelines = [
            sum(plan.timeline.end_s + BETWEEN_RUNS_S for plan in dealt) for dealt in plans.values()
        ]
        started = time.monotonic()
        yield
        took = time.monotonic() - started
        if in_real_time:
            self.seconds["labs"] += took - max(timelines)
        else:
            self._virtual_s += sum(timelines)
            self._wall_s += took
        self.runs += sum(map(len, plans.values()))

    def describe(self, elsewhere: str = "") -> str:
        """One line for the campaign's summary; empty if nothing was run. `elsewhere`: on what runs
        were done, with certificates and metrics, if not here."""
        if not self.runs:
            return ""
        labs, results = (self.seconds[what] / self.runs for what in ("labs", "results"))
        if elsewhere:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time on "
                f"{elsewhere}, certificates and metrics included"
            )
        if self._wall_s:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time; "
                f"beyond that {results:.2f} s a run for certificates and metrics"
            )
        return (
            f"beyond the timelines of {count_of(self.runs, 'run')}: {labs:.2f} s a run for "
            f"orchestration, {results:.2f} s a run for certificates and metrics"
        )
