# SPDX-License-Identifier: Apache-2.0
"""Telling how a campaign goes on: a bar with the time left on a terminal, lines elsewhere. And
hearing that it is to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from nagi import noise
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Verdict
from nagi.labs.lab import BETWEEN_RUNS

_LINE_EVERY_S = 15.0  # how often a campaign that is not on a terminal says it is alive


class Progress:
    """Shows a campaign's progress on `console`; an Observer of the campaign."""

    def __init__(self, console: Console, total: int, *, at_least: bool = False) -> None:
        """`at_least`: runs may be added to the `total`."""
        self._console = console
        self._at_least = "at least " if at_least else ""
        self._total = total
        self._done = 0
        self._over: set[str] = set()
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/" + self._at_least + "{task.total:.0f}"),
            TextColumn("time left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=total)
        self._quiet = threading.Event()
        self._clock: threading.Thread | None = None

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._end_clock()
        self._bar.stop()

    def step(self, what: str) -> None:
        """One more of the total is done."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, description=what)

    def done_before(self, plans: list[RunPlan]) -> None:
        """These runs need not be run."""
        self._over |= {plan.run_id for plan in plans}
        self._done = len(self._over)
        self._bar.update(self._task, completed=self._done)

    def runs_added(self, plans: list[RunPlan]) -> None:
        """These runs are to be run, too."""
        self._total += len(plans)
        self._bar.update(self._task, total=self._total)
        runs = "run" if len(plans) == 1 else "runs"
        self._say(f"{len(plans)} more {runs}, as intervals are wider than asked for")

    def lab_starting(self, lab: str, cells: int) -> None:
        many = f"{cells} runs side by side" if cells > 1 else "one run at a time"
        self._say(f"setting up the {lab} lab for {many}")

    def lab_failed(self, why: str, given_up: list[str]) -> None:
        self._end_clock()
        without = f" without {', '.join(given_up)}" if given_up else ""
        self._console.print(f"the lab failed: {why}; going on{without}", markup=False)

    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None:
        """From the plans' timelines it is known when which run will be over, in real time
        (`lead_s` before they begin)."""
        self._end_clock()
        if lead_s is None:
            return
        ends = sorted(end for runs in plans.values() for end in _ends(runs, lead_s + _SHIPPING_S))
        self._quiet.clear()
        self._clock = threading.Thread(target=self._follow, args=(ends,), daemon=True)
        self._clock.start()

    def run_over(self, plan: RunPlan, verdict: Verdict) -> None:
        self._end_clock()
        if plan.run_id not in self._over:  # not for another try
            self._over.add(plan.run_id)
            self._done += 1
        self._bar.update(self._task, completed=self._done)
        point = ", ".join(plan.point.values())
        repeat = f", repeat {plan.repeat + 1}" if plan.repeat else ""
        reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
        self._console.print(
            f"[{self._done}/{self._at_least}{self._total}] {point}{repeat}: "
            f"{verdict.status}{reasons}",
            markup=False,
        )
        for sentence in noise.in_words(verdict):
            self._console.print(f"  {sentence}", markup=False)

    def _follow(self, ends: list[float]) -> None:
        """While a batch runs, nothing is heard from it; the plans say how far it must be."""
        begun = time.monotonic()
        said = begun
        over = 0
        while not self._quiet.wait(0.5):
            now = time.monotonic()
            over = sum(end <= now - begun for end in ends)
            shown = min(self._done + over, self._total)
            self._bar.update(self._task, completed=shown, description="running")
            if not self._console.is_terminal and now - said >= _LINE_EVERY_S:
                said = now
                left = max(0.0, ends[-1] - (now - begun)) if ends else 0.0
                self._console.print(
                    f"running: about {shown} of {self._at_least}{self._total} runs done, "
                    f"this batch takes {left:.0f} s more"
                )

    def _end_clock(self) -> None:
        if self._clock is not None:
            self._quiet.set()
            self._clock.join()
            self._clock = None

    def _say(self, what: str) -> None:
        if self._console.is_terminal:
            self._bar.update(self._task, description=what)
        else:
            self._console.print(what)


_SHIPPING_S = 2.0


def _ends(plans: list[RunPlan], lead_s: float) -> list[float]:
    ends, at = [], lead_s
    for plan in plans:
        at += plan.timeline.end_s + BETWEEN_RUNS
        ends.append(at)
    return ends


class InterruptFlag:
    """True once the user has asked to stop (SIGINT or SIGTERM). A third time ends at once."""

    def __init__(self) -> None:
        self._times = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: Any) -> None:
        self._times += 1
        if self._times > 2:
            os._exit(130)

    def __call__(self) -> bool:
        return self._times > 0
