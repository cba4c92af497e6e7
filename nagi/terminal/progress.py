# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a campaign, and detects interrupts.

A terminal shows a bar with the time left. Other outputs get lines of text.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from nagi_contracts import noise
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Verdict
from nagi_contracts.units import format_count, format_time
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from nagi.campaign.estimate import estimate_seconds
from nagi.terminal.console import write_line

_LINE_EVERY_S = 15.0  # longest time without a line if the output is no terminal
_TICK_S = 0.5
_SHIPPING_S = 2.0  # time to send a batch to agents
# In virtual time, the initial estimate counts as one completed run of at most this duration.
_PRIOR_S = 20.0
_LATE = "longer than estimated"


@dataclass
class _Batch:
    """A group of runs in real time, whose results arrive when all of them have ended.

    Attributes:
        run_ids: The runs.
        began_s: The time at which the batch began, by the clock of the display.
        ends_s: The estimated ends of the runs, in seconds after `began_s`, in ascending order.
        estimated_s: The estimated duration of the batch.
        collected: The number of runs whose verdict is known.
    """

    run_ids: set[str]
    began_s: float
    ends_s: list[float]
    estimated_s: float
    collected: int = 0


class _Pace:
    """Measured and estimated durations of runs in virtual time, of which `jobs` run side by side.

    Times are by the clock of the display, in seconds.

    Attributes:
        took_s: The sum of the durations of the runs that have ended.
        estimated_s: The sum of the estimated durations of these runs.
    """

    def __init__(self, jobs: int, now_s: float) -> None:
        self._jobs = jobs
        # Each run begins when another ends; the first runs begin now.
        self._starts_s = [now_s] * jobs
        self.took_s = self.estimated_s = 0.0

    def add_run(self, estimated_s: float, now_s: float) -> None:
        """Add a run that has just ended, and whose duration was estimated as `estimated_s`."""
        self.took_s += now_s - self._starts_s[-self._jobs]
        self.estimated_s += estimated_s
        self._starts_s.append(now_s)

    def estimate_seconds_left(self, estimated_s: list[float], now_s: float) -> float:
        """Return the seconds until all unfinished runs will have ended.

        Args:
            estimated_s: The estimated duration of each unfinished run, in the order of their start;
                at least one.
            now_s: The current time.
        """
        running_since_s = self._starts_s[-min(self._jobs, len(estimated_s)) :]
        prior_s = min(_PRIOR_S, estimated_s[0])
        took_s, estimate_s = prior_s + self.took_s, prior_s + self.estimated_s
        # The pace if the oldest running run ended now.
        pace_of_oldest = (took_s + now_s - running_since_s[0]) / (estimate_s + estimated_s[0])
        pace = max(took_s / estimate_s, pace_of_oldest)
        elapsed_s = sum(now_s - start_s for start_s in running_since_s)
        return max(0.0, sum(estimated_s) * pace - elapsed_s) / len(running_since_s)


class Progress:
    """A display of a campaign's progress. It implements `Observer`, whose events it shows."""

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        at_least: bool = False,
        tries: int = 1,
        tried: Mapping[str, int] | None = None,
        jobs: int = 1,
        estimate: Callable[[RunPlan], float] = estimate_seconds,
        describe_workers: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a display. A `with` statement shows the display, and ends it with the block.

        Args:
            console: The console on which progress is shown.
            total: The number of runs.
            at_least: Whether runs may be added to `total`.
            tries: The maximum number of tries of a run.
            tried: Run id -> number of earlier tries; runs without tries may be missing.
            jobs: The number of runs that are executed side by side.
            estimate: A function that returns the estimated duration of a run, in seconds.
            describe_workers: A function that describes the workers of a cluster; None without one.
            clock: A function that returns a clock's time, in seconds.
        """
        self._console = console
        self._at_least = "at least " if at_least else ""
        self._total = total
        self._tries = tries
        self._tried = Counter(tried)
        self._jobs = jobs
        self._estimate = estimate
        self._estimates: dict[str, float] = {}  # run id -> estimated duration, in seconds
        self._describe_workers = describe_workers
        self._clock = clock
        self._activity = "starting"
        self._done = 0
        self._done_ids: set[str] = set()
        self._pending: dict[str, RunPlan] = {}  # runs of this round that have not ended
        self._retried: set[str] = set()  # runs of this round that were tried before
        self._batch: _Batch | None = None
        self._virtual_pace: _Pace | None = None
        self._estimated_s = self._measured_s = 0.0  # sums over the batches that have ended
        self._printed_at = clock()
        self._has_printed_late = False
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total, count="", left="")
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._ticker = threading.Thread(target=self._update_repeatedly, daemon=True)

    def compare_estimate(self) -> tuple[float, float]:
        """Return the sum of estimated and the sum of measured durations of runs, in seconds.

        Only runs in virtual time that have ended count. Without such runs, both sums are 0.
        """
        pace = self._virtual_pace
        return (0.0, 0.0) if pace is None else (pace.estimated_s, pace.took_s)

    def __enter__(self) -> Progress:
        self._bar.start()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the updates, and remove the bar."""
        self._stopped.set()
        self._ticker.join()
        self._bar.stop()

    def step(self, activity: str) -> None:
        """Count one more run as done, and show `activity`, such as "analysing"."""
        with self._lock:
            self._done += 1
            self._activity = activity

    def print_note(self, line: str) -> None:
        """Print a line that is not about a run, such as the loss of a worker."""
        with self._lock:
            self._print(line)

    def done_before(self, plans: list[RunPlan]) -> None:
        """Count runs that were done before this campaign and are not executed again."""
        with self._lock:
            self._count_as_done(plans)

    def runs_added(self, plans: list[RunPlan]) -> None:
        """Add runs to the total, and print how many and why."""
        with self._lock:
            self._total += len(plans)
            more = f"{len(plans)} more {'run' if len(plans) == 1 else 'runs'}"
            self._print(f"{more}, because confidence intervals are wider than requested")

    def round_starting(self, plans: list[RunPlan]) -> None:
        """Start a round, in which `plans` are executed. Print a line if some were tried before."""
        with self._lock:
            self._end_batch()
            self._pending = {plan.run_id: plan for plan in plans}
            retried = [plan for plan in plans if self._tried[plan.run_id]]
            self._retried = {plan.run_id for plan in retried}
            self._count_as_done(retried)
            if retried:
                self._activity = self._describe_retries()
                self._print(f"{self._describe_tried()}; {self._activity}{self._format_time_left()}")

    def lab_starting(self, lab: str, cells: int) -> None:
        """Show that a lab with `cells` cells is being set up. Show nothing with a cluster."""
        if self._describe_workers is not None:  # workers need no lab
            return
        parallelism = f"{cells} runs side by side" if cells > 1 else "one run at a time"
        with self._lock:
            self._activity = f"setting up the {lab} lab for {parallelism}"
            if not self._console.is_terminal:
                self._print(self._activity)

    def lab_failed(self, reason: str, excluded_cells: list[str]) -> None:
        """Show that a lab failed, and which cells are excluded from now on."""
        with self._lock:
            self._end_batch()
            without = f" without {', '.join(excluded_cells)}" if excluded_cells else ""
            self._print(f"the lab failed: {reason}; continuing{without}")

    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None:
        """Start a batch of runs.

        Args:
            plans: Cell -> runs that it executes one after another.
            lead_s: In real time, the seconds until the first runs begin; None in virtual time. In
                real time, the end of a run is known from its plan.
        """
        run_ids = {plan.run_id for runs in plans.values() for plan in runs}
        with self._lock:
            self._end_batch()
            self._activity = self._describe_retries() if run_ids <= self._retried else "running"
            if lead_s is None:
                self._virtual_pace = self._virtual_pace or _Pace(self._jobs, self._clock())
                return
            ends_of_cells = [
                list(accumulate(map(self._estimate_run, runs))) for runs in plans.values()
            ]
            ends_s = sorted(end_s for cell in ends_of_cells for end_s in cell)
            begin_s = lead_s + _SHIPPING_S
            self._batch = _Batch(
                run_ids,
                self._clock(),
                [begin_s + end_s for end_s in ends_s],
                estimated_s=ends_s[-1],
            )

    def run_over(self, plan: RunPlan, verdict: Verdict) -> None:
        """Count a run that has ended, and print its verdict."""
        with self._lock:
            self._tried[plan.run_id] += 1
            self._count_as_done([plan])
            self._pending.pop(plan.run_id, None)
            if self._batch is not None:
                self._batch.collected += 1
            if self._virtual_pace is not None:
                self._virtual_pace.add_run(self._estimate_run(plan), self._clock())
            point = ", ".join(plan.point.values())
            repeat = f", repeat {plan.repeat + 1}" if plan.repeat else ""
            attempt = self._tried[plan.run_id]
            attempt_text = f", attempt {attempt} of {self._tries}" if attempt > 1 else ""
            reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
            self._print(
                f"[{self._done}/{self._at_least}{self._total}] {point}{repeat}{attempt_text}: "
                f"{verdict.status}{reasons}"
            )
            for sentence in noise.describe_explanations(verdict):
                self._print(f"  {sentence}")

    def tick(self) -> None:
        """Update the bar of a terminal.

        If the output is no terminal, print a line when none was printed for _LINE_EVERY_S.
        """
        with self._lock:
            only_retries = bool(self._retried) and self._retried.issuperset(self._pending)
            total = len(self._retried) if only_retries else self._total
            done = total - len(self._pending) if only_retries else self._done
            uncollected = 0  # runs that must have ended, though their verdict is not known
            if self._batch is not None:
                elapsed_s = self._clock() - self._batch.began_s
                ended = sum(end_s <= elapsed_s for end_s in self._batch.ends_s)
                uncollected = max(0, ended - self._batch.collected)
                done = min(done + uncollected, total)
            left = self._describe_time_left()
            activity = (
                f"{self._activity} on {self._describe_workers()}"
                if self._describe_workers
                else self._activity
            )
            self._bar.update(
                self._task,
                description=activity,
                total=total,
                completed=done,
                count=f"{done}/{self._at_least if not only_retries else ''}{total}",
                left=left,
            )
            is_line_due = self._clock() - self._printed_at >= _LINE_EVERY_S
            if is_line_due and not self._console.is_terminal:
                at_least = "" if only_retries else self._at_least
                count = f"{done} of {at_least}{format_count(total, 'run')}"
                about = "about " if uncollected else ""
                self._print(f"{activity}: {about}{count} done{self._format_time_left()}")

    def _update_repeatedly(self) -> None:
        while not self._stopped.wait(_TICK_S):
            self.tick()

    def _count_as_done(self, plans: Iterable[RunPlan]) -> None:
        self._done_ids |= {plan.run_id for plan in plans}
        self._done = len(self._done_ids)

    def _describe_tried(self) -> str:
        untried = len(self._pending) - len(self._retried)
        if untried:
            return f"{self._done} of {self._at_least}{self._total} runs tried, {untried} not yet"
        return f"{self._done} of {self._at_least}{self._total} runs tried"

    def _describe_retries(self) -> str:
        pending_retries = [run_id for run_id in self._retried if run_id in self._pending]
        attempt = 1 + max((self._tried[run_id] for run_id in pending_retries), default=1)
        runs = format_count(len(self._retried), "run")
        return f"trying {runs} again (attempt {attempt} of {self._tries})"

    def _describe_time_left(self) -> str:
        """Return a text with the time left of this round; "" if no run of the round is pending."""
        if not self._pending:
            return ""
        left_s = self._estimate_seconds_left()
        return f"{format_time(left_s)} left" if left_s >= 0.5 else _LATE

    def _format_time_left(self) -> str:
        """Return a comma and the time left, or "" if no run of the round is pending.

        Only once per campaign, the text says that a round takes longer than estimated.
        """
        left = self._describe_time_left()
        if left == _LATE:
            left = "" if self._has_printed_late else left
            self._has_printed_late = True
        return f", {left}" if left else ""

    def _estimate_run(self, plan: RunPlan) -> float:
        """Return the estimated duration of a run, in seconds. It is computed once per run."""
        if plan.run_id not in self._estimates:
            self._estimates[plan.run_id] = self._estimate(plan)
        return self._estimates[plan.run_id]

    def _estimate_seconds_left(self) -> float:
        """Return the seconds until the runs of this round have ended."""
        if self._virtual_pace is not None:
            estimated = [self._estimate_run(plan) for plan in self._pending.values()]
            return self._virtual_pace.estimate_seconds_left(estimated, self._clock())
        running_ids = self._batch.run_ids if self._batch is not None else set()
        waiting_s = sum(
            # Further tries of a run do not run side by side with other runs.
            self._estimate_run(plan) / (1 if run_id in self._retried else self._jobs)
            for run_id, plan in self._pending.items()
            if run_id not in running_ids
        )
        pace = self._measured_s / self._estimated_s if self._estimated_s else 1.0
        batch_s = 0.0
        if self._batch is not None:
            batch_s = max(0.0, self._batch.ends_s[-1] - (self._clock() - self._batch.began_s))
        return batch_s + waiting_s * pace

    def _end_batch(self) -> None:
        """End the batch, if there is one.

        Work between batches, such as computing metrics, counts as part of the earlier batch.
        """
        if self._batch is not None:
            self._measured_s += self._clock() - self._batch.began_s
            self._estimated_s += self._batch.estimated_s
            self._batch = None

    def _print(self, line: str) -> None:
        self._printed_at = self._clock()
        write_line(line, self._console)


class InterruptFlag:
    """An object that handles signals. A call returns whether the user has asked to stop.

    The user asks by SIGINT, SIGTERM, or SIGHUP (a closed terminal). If SIGHUP is ignored already,
    because nohup(1) started the process, this class does not handle SIGHUP. The third signal ends
    the process at once, with status 130.
    """

    def __init__(self) -> None:
        """Install the handlers of the signals."""
        self._signals = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._count_signal)

    def _count_signal(self, number: int, frame: Any) -> None:
        self._signals += 1
        if self._signals > 2:
            os._exit(130)

    def __call__(self) -> bool:
        return self._signals > 0
