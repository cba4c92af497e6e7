# SPDX-License-Identifier: Apache-2.0
"""Telling how a campaign goes on: a bar with the time left on a terminal, lines elsewhere. And
hearing that it is to stop."""

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
from nagi_contracts.units import count_of, in_time
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from nagi.campaign.estimate import seconds_of
from nagi.terminal.console import write_line

_LINE_EVERY_S = 15.0  # how often a campaign that is not on a terminal says it is alive
_TICK_S = 0.5
_SHIPPING_S = 2.0
# In virtual time the estimate weighs like a run that is over, or like so many seconds of runs.
_BELIEVED_S = 20.0
_LATE = "longer than estimated"


@dataclass
class _Batch:
    """Runs that go on now, in real time. Nothing is heard of them until all are over. `ends`:
    seconds since `begun` at which each will be, in order. `lasts_s`: what all take by the
    estimate."""

    plans: set[str]
    begun: float
    ends: list[float]
    lasts_s: float
    collected: int = 0  # runs whose verdict is known


class _Pace:
    """How fast runs in virtual time are over, `jobs` side by side, beside the estimate."""

    def __init__(self, jobs: int, now: float) -> None:
        self._jobs = jobs
        # Each run begins when another is over, the first ones now.
        self._starts = [now] * jobs
        self.took_s = self.estimated_s = 0.0

    def run_over(self, estimated_s: float, now: float) -> None:
        self.took_s += now - self._starts[-self._jobs]
        self.estimated_s += estimated_s
        self._starts.append(now)

    def seconds_left(self, estimated_s: list[float], now: float) -> float:
        """Until runs are over that take so long by the estimate; the first of them are under
        way."""
        underway = self._starts[-min(self._jobs, len(estimated_s)) :]
        believed_s = min(_BELIEVED_S, estimated_s[0])
        took_s, ran_s = believed_s + self.took_s, believed_s + self.estimated_s
        late = (took_s + now - underway[0]) / (ran_s + estimated_s[0])  # as that one is by now
        pace = max(took_s / ran_s, late)
        elapsed_s = sum(now - start for start in underway)
        return max(0.0, sum(estimated_s) * pace - elapsed_s) / len(underway)


class Progress:
    """Shows a campaign's progress on `console`; an Observer of the campaign."""

    def __init__(
        self,
        console: Console,
        total: int,
        *,
        at_least: bool = False,
        tries: int = 1,
        tried: Mapping[str, int] | None = None,
        jobs: int = 1,
        lasts: Callable[[RunPlan], float] = seconds_of,
        place: Callable[[], str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`at_least`: runs may be added to the `total`. A run is tried up to `tries` times, and has
        been `tried` so often before. `lasts`: how long a run takes, in seconds, `jobs` side by
        side. `place`: where runs are now, in words. `clock`: seconds on the wall."""
        self._console = console
        self._at_least = "at least " if at_least else ""
        self._total = total
        self._tries = tries
        self._tried = Counter(tried)
        self._jobs = jobs
        self._lasts = lasts
        self._lasting: dict[str, float] = {}  # what `lasts` said, by run
        self._place = place
        self._clock = clock
        self._what = "starting"
        self._done = 0
        self._over: set[str] = set()
        self._waiting: dict[str, RunPlan] = {}  # of this round
        self._again: set[str] = set()  # those that had been tried before this round
        self._batch: _Batch | None = None
        self._virtual_pace: _Pace | None = None
        self._lasted_s = self._took_s = 0.0  # of batches that are over: estimated, and by the clock
        self._said_at = clock()
        self._late_said = False
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
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def beside_estimate(self) -> tuple[float, float]:
        """What runs in virtual time were estimated to take, and took, in seconds; 0: none did."""
        pace = self._virtual_pace
        return (0.0, 0.0) if pace is None else (pace.estimated_s, pace.took_s)

    def __enter__(self) -> Progress:
        self._bar.start()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped.set()
        self._ticker.join()
        self._bar.stop()

    def step(self, what: str) -> None:
        """One more of the total is done."""
        with self._lock:
            self._done += 1
            self._what = what

    def note(self, line: str) -> None:
        """Something that happens beside the runs."""
        with self._lock:
            self._print(line)

    def done_before(self, plans: list[RunPlan]) -> None:
        """These runs need not be run."""
        with self._lock:
            self._count_as_over(plans)

    def runs_added(self, plans: list[RunPlan]) -> None:
        """These runs are to be run, too."""
        with self._lock:
            self._total += len(plans)
            more = f"{len(plans)} more {'run' if len(plans) == 1 else 'runs'}"
            self._print(f"{more}, as intervals are wider than asked for")

    def round_starting(self, plans: list[RunPlan]) -> None:
        """All these runs are to be run; some may have been tried before."""
        with self._lock:
            self._end_batch()
            self._waiting = {plan.run_id: plan for plan in plans}
            again = [plan for plan in plans if self._tried[plan.run_id]]
            self._again = {plan.run_id for plan in again}
            self._count_as_over(again)
            if again:
                self._what = self._trying_again()
                self._print(f"{self._tried_in_words()}; {self._what}{self._left_in_a_line()}")

    def lab_starting(self, lab: str, cells: int) -> None:
        if self._place is not None:  # it is there already
            return
        many = f"{cells} runs side by side" if cells > 1 else "one run at a time"
        with self._lock:
            self._what = f"setting up the {lab} lab for {many}"
            if not self._console.is_terminal:
                self._print(self._what)

    def lab_failed(self, why: str, given_up: list[str]) -> None:
        with self._lock:
            self._end_batch()
            without = f" without {', '.join(given_up)}" if given_up else ""
            self._print(f"the lab failed: {why}; going on{without}")

    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None:
        """In real time the plans say when which run will be over: they begin after `lead_s`. In
        virtual time (None) that is estimated."""
        names = {plan.run_id for runs in plans.values() for plan in runs}
        with self._lock:
            self._end_batch()
            self._what = self._trying_again() if names <= self._again else "running"
            if lead_s is None:
                self._virtual_pace = self._virtual_pace or _Pace(self._jobs, self._clock())
                return
            lasts = [list(accumulate(map(self._seconds_of, runs))) for runs in plans.values()]
            ends = sorted(each for cell in lasts for each in cell)
            begin = lead_s + _SHIPPING_S
            self._batch = _Batch(
                names, self._clock(), [begin + each for each in ends], lasts_s=ends[-1]
            )

    def run_over(self, plan: RunPlan, verdict: Verdict) -> None:
        with self._lock:
            self._tried[plan.run_id] += 1
            self._count_as_over([plan])
            self._waiting.pop(plan.run_id, None)
            if self._batch is not None:
                self._batch.collected += 1
            if self._virtual_pace is not None:
                self._virtual_pace.run_over(self._seconds_of(plan), self._clock())
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
        """Shows how far it is now."""
        with self._lock:
            again = bool(self._again) and self._again.issuperset(self._waiting)
            total = len(self._again) if again else self._total
            done = total - len(self._waiting) if again else self._done
            unheard = 0  # runs that must be over
            if self._batch is not None:
                elapsed = self._clock() - self._batch.begun
                over = sum(end <= elapsed for end in self._batch.ends)
                unheard = max(0, over - self._batch.collected)
                done = min(done + unheard, total)
            left = self._left_in_words()
            what = f"{self._what} on {self._place()}" if self._place else self._what
            self._bar.update(
                self._task,
                description=what,
                total=total,
                completed=done,
                count=f"{done}/{self._at_least if not again else ''}{total}",
                left=left,
            )
            late = self._clock() - self._said_at >= _LINE_EVERY_S
            if late and not self._console.is_terminal:
                count = f"{done} of {'' if again else self._at_least}{count_of(total, 'run')}"
                about = "about " if unheard else ""
                self._print(f"{what}: {about}{count} done{self._left_in_a_line()}")

    def _tick(self) -> None:
        while not self._stopped.wait(_TICK_S):
            self.tick()

    def _count_as_over(self, plans: Iterable[RunPlan]) -> None:
        self._over |= {plan.run_id for plan in plans}
        self._done = len(self._over)

    def _tried_in_words(self) -> str:
        first = len(self._waiting) - len(self._again)
        if first:
            return f"{self._done} of {self._at_least}{self._total} runs tried, {first} not yet"
        return f"{self._done} of {self._at_least}{self._total} runs tried"

    def _trying_again(self) -> str:
        waiting = [run_id for run_id in self._again if run_id in self._waiting]
        attempt = 1 + max((self._tried[run_id] for run_id in waiting), default=1)
        runs = count_of(len(self._again), "run")
        return f"trying {runs} again (attempt {attempt} of {self._tries})"

    def _left_in_words(self) -> str:
        """Return the time that is left of this round; it is empty if nothing is known of it."""
        if not self._waiting:
            return ""
        left_s = self._seconds_left()
        return f"{in_time(left_s)} left" if left_s >= 0.5 else _LATE

    def _left_in_a_line(self) -> str:
        """Return a comma and the time that is left; of lines, only the first says it is late."""
        left = self._left_in_words()
        if left == _LATE:
            left = "" if self._late_said else left
            self._late_said = True
        return f", {left}" if left else ""

    def _seconds_of(self, plan: RunPlan) -> float:
        if plan.run_id not in self._lasting:
            self._lasting[plan.run_id] = self._lasts(plan)
        return self._lasting[plan.run_id]

    def _seconds_left(self) -> float:
        if self._virtual_pace is not None:
            estimated = [self._seconds_of(plan) for plan in self._waiting.values()]
            return self._virtual_pace.seconds_left(estimated, self._clock())
        underway = self._batch.plans if self._batch is not None else set()
        further_s = sum(
            # Another try has the lab alone.
            self._seconds_of(plan) / (1 if run_id in self._again else self._jobs)
            for run_id, plan in self._waiting.items()
            if run_id not in underway
        )
        pace = self._took_s / self._lasted_s if self._lasted_s else 1.0
        batch_s = 0.0
        if self._batch is not None:
            batch_s = max(0.0, self._batch.ends[-1] - (self._clock() - self._batch.begun))
        return batch_s + further_s * pace

    def _end_batch(self) -> None:
        """What follows a batch before the next, such as computing metrics, is of its time."""
        if self._batch is not None:
            self._took_s += self._clock() - self._batch.begun
            self._lasted_s += self._batch.lasts_s
            self._batch = None

    def _print(self, line: str) -> None:
        self._said_at = self._clock()
        write_line(line, self._console)


class InterruptFlag:
    """True once the user has asked to stop (SIGINT or SIGTERM), or his terminal or connection is
    closed (SIGHUP; nohup(1) has it ignored, which it stays). A third time ends at once."""

    def __init__(self) -> None:
        self._times = 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self._times += 1
        if self._times > 2:
            os._exit(130)

    def __call__(self) -> bool:
        return self._times > 0
