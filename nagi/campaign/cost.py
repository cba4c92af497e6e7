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

Expense = Literal["labs", "results"]


class Cost:
    """Sums of the wall time of a campaign, in seconds, by a monotonic clock.

    `labs` is the time to make labs, to ship batches, to wait for agents and to fetch records: for
    each batch, its duration minus the timelines of the busiest cell. `results` is the time for
    certificates and metrics. Runs in virtual time count with the wall time that they take.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.seconds: dict[Expense, float] = {"labs": 0.0, "results": 0.0}
        self._virtual_s = self._wall_s = 0.0

    @contextmanager
    def measure(self, expense: Expense) -> Iterator[None]:
        """Add the duration of the `with` block to an expense, `labs` or `results`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[expense] += time.monotonic() - started

    @contextmanager
    def measure_batch(
        self, plans: dict[str, list[RunPlan]], *, in_real_time: bool = True
    ) -> Iterator[None]:
        """Add the duration of the `with` block, which executes a batch, to the sums.

        Args:
            plans: The plans of the batch, by cell.
            in_real_time: Whether a run takes the time of its timeline.
        """
        timelines = [
            sum(plan.timeline.end_s + BETWEEN_RUNS_S for plan in cell_plans)
            for cell_plans in plans.values()
        ]
        started = time.monotonic()
        yield
        duration_s = time.monotonic() - started
        if in_real_time:
            self.seconds["labs"] += duration_s - max(timelines)
        else:
            self._virtual_s += sum(timelines)
            self._wall_s += duration_s
        self.runs += sum(map(len, plans.values()))

    def describe(self, elsewhere: str = "") -> str:
        """Return one line for the campaign's summary; empty if no run was executed.

        Args:
            elsewhere: A phrase for the machines that executed runs; empty for this machine.
        """
        if not self.runs:
            return ""
        labs, results = (self.seconds[expense] / self.runs for expense in ("labs", "results"))
        if elsewhere:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time on "
                f"{elsewhere}, certificates and metrics included"
            )
        if self._wall_s:
            return (
                f"{self._virtual_s:.0f} virtual seconds in {self._wall_s:.0f} s of wall time; "
                f"beyond that {results:.2f} s per run for certificates and metrics"
            )
        return (
            f"beyond the timelines of {format_count(self.runs, 'run')}: {labs:.2f} s per run for "
            f"orchestration, {results:.2f} s per run for certificates and metrics"
        )
