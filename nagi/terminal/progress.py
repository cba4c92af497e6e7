# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a campaign, and detects interrupts.

A terminal shows a bar with the time left. Elsewhere, lines are printed.
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

_LINE_EVERY_S = 15.0  # longest time without a line where there is no terminal
_TICK_S = 0.5
_SHIPPING_S = 2.0
# In virtual time, the estimate has the weight of one completed run, up to this duration.
_BELIEVED_S = 20.0
_LATE = "longer than estimated"


@dataclass
class _Batch:
    """Runs in real time that agents are executing. Their results arrive when all have ended.

    Attributes:
        plans: The runs.
        began: When the batch began.
        ends: When each run will end, in seconds after `began`, in order.
        lasts_s: Estimated duration of the batch.
        collected: Runs whose verdict is known.
    """

    plans: set[str]
    began: float
    ends: list[float]
    lasts_s: float
    collected: int = 0  # runs whose verdict is known


class _Pace:
    """The speed of runs in virtual time, compared with their estimate, with `jobs` side by side."""

    def __init__(self, jobs: int, now: float) -> None:
        self._jobs = jobs
        # Each run begins when another ends; the first ones begin now.
        self._starts = [now] * jobs
        self.took_s = self.estimated_s = 0.0

    def add_run(self, estimated_s: float, now: float) -> None:
        """Add a run that has ended."""
        self.took_s += now - self._starts[-self._jobs]
        self.estimated_s += estimated_s
        self._starts.append(now)

    def estimate_seconds_left(self, estimated_s: list[float], now: float) -> float:
        """Return the seconds until runs have ended, of which the first ones are already running.

        Args:
            estimated_s: Estimated duration of each run.
            now: The clock.
        """
        running_since = self._starts[-min(self._jobs, len(estimated_s)) :]
        believed_s = min(_BELIEVED_S, estimated_s[0])
        took_s, estimate_s = believed_s + self.took_s, believed_s + self.estimated_s
        # The pace if the run that began first ended now.
        pace_of_oldest = (took_s + now - running_since[0]) / (estimate_s + estimated_s[0])
        pace = max(took_s / estimate_s, pace_of_oldest)
        elapsed_s = sum(now - start for start in running_since)
        return max(0.0, sum(estimated_s) * pace - elapsed_s) / len(running_since)


class Progress:
    """A display of a campaign's progress; an Observer of the campaign."""

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
        describe_place: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a display, which starts on entry.

        Args:
            console: Where to show progress.
            total: Number of runs.
            at_least: Whether runs may be added to `total`.
            tries: How often a run is tried at most.
            tried: How often each run was tried before.
            jobs: How many runs are executed side by side.
            estimate: Return the estimated duration of a run, in seconds.
            describe_place: Return where runs are executed now.
            clock: Return the wall clock, in seconds.
        """
        self._console = console
        self._at_least = "at least " if at_least else ""
        self._total = total
        self._tries = tries
        self._tried = Counter(tried)
        self._jobs = jobs
        self._estimate = estimate
        self._estimates: dict[str, float] = {}  # by run
        self._describe_place = describe_place
        self._clock = clock
        self._activity = "starting"
        self._done = 0
        self._done_ids: set[str] = set()
        self._pending: dict[str, RunPlan] = {}  # of this round
        self._retried: set[str] = set()  # runs that were tried before this round
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
        """Return the estimated and the measured seconds of runs in virtual time.

        Both are 0 without such runs.
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
        """Remove the bar, and stop to update it."""
        self._stopped.set()
        self._ticker.join()
        self._bar.stop()

    def step(self, activity: str) -> None:
        """Count one more run as done, and show what is being done."""
        with self._lock:
            self._done += 1
            self._activity = activity

    def print_note(self, line: str) -> None:
        """Print a line about something other than a run."""
        with self._lock:
            self._print(line)

    def done_before(self, plans: list[RunPlan]) -> None:
        """Count runs that need not be executed."""
        with self._lock:
            self._count_as_done(plans)

    def runs_added(self, plans: list[RunPlan]) -> None:
        """Add runs to the total."""
        with self._lock:
            self._total += len(plans)
            more = f"{len(plans)} more {'run' if len(plans) == 1 else 'runs'}"
            self._print(f"{more}, because intervals are wider than requested")

    def round_starting(self, plans: list[RunPlan]) -> None:
        """Start a round of runs, some of which may have been tried before."""
        with self._lock:
            self._end_batch()
            self._pending = {plan.run_id: plan for plan in plans}
            again = [plan for plan in plans if self._tried[plan.run_id]]
            self._retried = {plan.run_id for plan in again}
            self._count_as_done(again)
            if again:
                self._activity = self._describe_retries()
                self._print(f"{self._describe_tried()}; {self._activity}{self._format_time_left()}")

    def lab_starting(self, lab: str, cells: int) -> None:
        """Show that a lab is being set up."""
        if self._describe_place is not None:  # workers need no lab
            return
        parallelism = f"{cells} runs side by side" if cells > 1 else "one run at a time"
        with self._lock:
            self._activity = f"setting up the {lab} lab for {parallelism}"
            if not self._console.is_terminal:
                self._print(self._activity)

    def lab_failed(self, reason: str, given_up: list[str]) -> None:
        """Show that a lab failed, and which schemes are left out from now on."""
        with self._lock:
            self._end_batch()
            without = f" without {', '.join(given_up)}" if given_up else ""
            self._print(f"the lab failed: {reason}; continuing{without}")

    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None:
        """Start a batch of runs.

        In real time, the plans determine when each run ends; the first ones begin after `lead_s`.
        In virtual time, `lead_s` is None, and the ends are estimated.
        """
        names = {plan.run_id for runs in plans.values() for plan in runs}
        with self._lock:
            self._end_batch()
            self._activity = self._describe_retries() if names <= self._retried else "running"
            if lead_s is None:
                self._virtual_pace = self._virtual_pace or _Pace(self._jobs, self._clock())
                return
            ends_of_cells = [
                list(accumulate(map(self._estimate_run, runs))) for runs in plans.values()
            ]
            ends = sorted(end_s for cell in ends_of_cells for end_s in cell)
            begin = lead_s + _SHIPPING_S
            self._batch = _Batch(
                names, self._clock(), [begin + end_s for end_s in ends], lasts_s=ends[-1]
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
            again = f", attempt {attempt} of {self._tries}" if attempt > 1 else ""
            reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
            self._print(
                f"[{self._done}/{self._at_least}{self._total}] {point}{repeat}{again}: "
                f"{verdict.status}{reasons}"
            )
            for sentence in noise.describe_explanations(verdict):
                self._print(f"  {sentence}")

    def tick(self) -> None:
        """Update the bar, or print a line if none was printed for some time."""
        with self._lock:
            again = bool(self._retried) and self._retried.issuperset(self._pending)
            total = len(self._retried) if again else self._total
            done = total - len(self._pending) if again else self._done
            uncollected = 0  # runs that must have ended, though their verdict is not known
            if self._batch is not None:
                elapsed = self._clock() - self._batch.began
                over = sum(end <= elapsed for end in self._batch.ends)
                uncollected = max(0, over - self._batch.collected)
                done = min(done + uncollected, total)
            left = self._describe_time_left()
            activity = (
                f"{self._activity} on {self._describe_place()}"
                if self._describe_place
                else self._activity
            )
            self._bar.update(
                self._task,
                description=activity,
                total=total,
                completed=done,
                count=f"{done}/{self._at_least if not again else ''}{total}",
                left=left,
            )
            is_line_due = self._clock() - self._printed_at >= _LINE_EVERY_S
            if is_line_due and not self._console.is_terminal:
                count = f"{done} of {'' if again else self._at_least}{format_count(total, 'run')}"
                about = "about " if uncollected else ""
                self._print(f"{activity}: {about}{count} done{self._format_time_left()}")

    def _update_repeatedly(self) -> None:
        while not self._stopped.wait(_TICK_S):
            self.tick()

    def _count_as_done(self, plans: Iterable[RunPlan]) -> None:
        self._done_ids |= {plan.run_id for plan in plans}
        self._done = len(self._done_ids)

    def _describe_tried(self) -> str:
        first = len(self._pending) - len(self._retried)
        if first:
            return f"{self._done} of {self._at_least}{self._total} runs tried, {first} not yet"
        return f"{self._done} of {self._at_least}{self._total} runs tried"

    def _describe_retries(self) -> str:
        waiting = [run_id for run_id in self._retried if run_id in self._pending]
        attempt = 1 + max((self._tried[run_id] for run_id in waiting), default=1)
        runs = format_count(len(self._retried), "run")
        return f"trying {runs} again (attempt {attempt} of {self._tries})"

    def _describe_time_left(self) -> str:
        """Return the time left of this round, or an empty text if it is not known."""
        if not self._pending:
            return ""
        left_s = self._estimate_seconds_left()
        return f"{format_time(left_s)} left" if left_s >= 0.5 else _LATE

    def _format_time_left(self) -> str:
        """Return a comma and the time left.

        Only the first line after a delay says that the run takes longer than estimated.
        """
        left = self._describe_time_left()
        if left == _LATE:
            left = "" if self._has_printed_late else left
            self._has_printed_late = True
        return f", {left}" if left else ""

    def _estimate_run(self, plan: RunPlan) -> float:
        if plan.run_id not in self._estimates:
            self._estimates[plan.run_id] = self._estimate(plan)
        return self._estimates[plan.run_id]

    def _estimate_seconds_left(self) -> float:
        """Return the seconds until the runs of this round have ended."""
        if self._virtual_pace is not None:
            estimated = [self._estimate_run(plan) for plan in self._pending.values()]
            return self._virtual_pace.estimate_seconds_left(estimated, self._clock())
        running_ids = self._batch.plans if self._batch is not None else set()
        waiting_s = sum(
            # A further try runs alone.
            self._estimate_run(plan) / (1 if run_id in self._retried else self._jobs)
            for run_id, plan in self._pending.items()
            if run_id not in running_ids
        )
        pace = self._measured_s / self._estimated_s if self._estimated_s else 1.0
        batch_s = 0.0
        if self._batch is not None:
            batch_s = max(0.0, self._batch.ends[-1] - (self._clock() - self._batch.began))
        return batch_s + waiting_s * pace

    def _end_batch(self) -> None:
        """End the batch.

        Work between batches, such as computing metrics, counts as part of the earlier batch.
        """
        if self._batch is not None:
            self._measured_s += self._clock() - self._batch.began
            self._estimated_s += self._batch.lasts_s
            self._batch = None

    def _print(self, line: str) -> None:
        self._printed_at = self._clock()
        write_line(line, self._console)


class InterruptFlag:
    """A flag that is true once the user has asked to stop.

    Signals are SIGINT, SIGTERM, and SIGHUP from a closed terminal. nohup(1) ignores SIGHUP, and so
    does the flag then. The third signal ends the process at once.
    """

    def __init__(self) -> None:
        self._times = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._count_signal)

    def _count_signal(self, number: int, frame: Any) -> None:
        self._times += 1
        if self._times > 2:
            os._exit(130)

    def __call__(self) -> bool:
        return self._times > 0
