# SPDX-License-Identifier: Apache-2.0
"""Measures the time that a campaign takes in addition to the timelines of its runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from nagi_contracts.plan import RunPlan
from nagi_contracts.units import format_count

from nagi.labs.lab import BETWEEN_RUNS_S

Expense = Literal["overhead", "results"]


class Cost:
    """Sums of the wall time of a campaign, in seconds, by a monotonic clock.

    `overhead` is the time to make labs, to ship batches, to wait for agents and to fetch records.
    A batch in real time adds to `overhead` its duration minus the timelines of the busiest cell.
    `results` is the time for certificates and metrics. Batches in virtual time have their own sums.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.seconds: dict[Expense, float] = {"overhead": 0.0, "results": 0.0}
        self._virtual_s = self._wall_s = 0.0

    @contextmanager
    def measure(self, expense: Expense) -> Iterator[None]:
        """Add the duration of the `with` block to an expense, `overhead` or `results`.

        The duration is also added if the block raises an error.
        """
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[expense] += time.monotonic() - started

    @contextmanager
    def measure_batch(
        self, plans: dict[str, list[RunPlan]], *, in_real_time: bool = True
    ) -> Iterator[None]:
        """Add the cost and the runs of a batch, which the `with` block executes.

        In real time, add to `overhead` the duration of the block minus the timelines of the busiest
        cell. In virtual time, add the timelines of all runs and the wall time of the block. Add
        nothing if the block raises an error.

        Args:
            plans: The plans of the batch, by cell.
            in_real_time: Whether runs are executed in real time, not in virtual time.
        """
        timelines = [
            sum(plan.timeline.end_s + BETWEEN_RUNS_S for plan in cell_plans)
            for cell_plans in plans.values()
        ]
        started = time.monotonic()
        yield
        duration_s = time.monotonic() - started
        if in_real_time:
            self.seconds["overhead"] += duration_s - max(timelines)
        else:
            self._virtual_s += sum(timelines)
            self._wall_s += duration_s
        self.runs += sum(map(len, plans.values()))

    def describe(self, elsewhere: str = "") -> str:
        """Return these times in one line, for the campaign's summary; empty if no run was executed.

        Args:
            elsewhere: A phrase for the other machines that executed runs; empty if this machine
                executed them.
        """
        if not self.runs:
            return ""
        overhead_s, results_s = (
            self.seconds[expense] / self.runs for expense in ("overhead", "results")
        )
        if elsewhere:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time on "
                f"{elsewhere}, certificates and metrics included"
            )
        if self._wall_s:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time; "
                f"in addition {results_s:.2f} s per run for certificates and metrics"
            )
        return (
            f"in addition to the timelines of {format_count(self.runs, 'run')}: "
            f"{overhead_s:.2f} s per run for orchestration, {results_s:.2f} s per run for "
            "certificates and metrics"
        )
