# SPDX-License-Identifier: Apache-2.0
"""Measures the throughput by RFC 2544, 26.1, and the rate delivered under overload.

The throughput is the highest offered rate without loss.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from bench_lab import Lab, Trial, run_count_trial
from bench_subjects import Subject

MAX_TRIALS = 6  # per rate, if other programs disturb trials
BURST = 32  # frames that the source sends at once in throughput trials
INJECTOR_KEEPS_UP = (
    0.95  # lower than for a source, because the injector is often delayed at high rates
)


def print_progress(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Throughput:
    """One measurement of a subject, in packets/s and microseconds.

    Attributes:
        lossless: The highest offered rate without loss; 0 if all rates had losses.
        source_limited: True if the source was too slow to cause losses; `lossless` is then a lower
            bound.
        process_us: Processor time of the process per packet delivered under overload.
        core_us: Time of the measured processor per packet delivered under overload, including
            interrupts and other programs.
    """

    lossless: float
    source_limited: bool
    overload_offered: float
    overload_delivered: float
    process_us: float
    core_us: float
    trials: list[Trial]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "trials": [t.to_json() for t in self.trials]}


class SourceTooSlow(Exception):
    """A trial had no loss, but the source offered less than the requested rate."""


def find_throughput(lab: Lab, subject: Subject, seconds: float) -> Throughput:
    """Search for the highest rate that a subject forwards without loss.

    The search begins with overload. From the delivered rate it decreases the rate by steps of 10 %
    until no frame is lost, or increases it until a frame is lost. Then it tries the middle between
    the highest rate without loss and the lowest rate with losses. A trial with losses, or with a
    source that is too slow, is repeated once. A trial with losses during which other programs used
    the subject's processor is repeated as well, and does not count as such a repetition.

    Args:
        lab: The lab.
        subject: The running subject.
        seconds: Duration of a trial.
    """
    trials: list[Trial] = []
    best: Trial | None = None

    def offer(rate: float) -> Trial:
        burst = BURST if rate else 2 * BURST
        trial = run_count_trial(lab, subject.pid, rate, burst, seconds)
        trials.append(trial)
        label = f"{rate / 1e3:.0f} kpps" if rate else "overload"
        print_progress(
            f"throughput: {subject.name}: {label}: offered {trial.offered_rate / 1e3:.0f}, "
            f"delivered {trial.delivered_rate / 1e3:.0f} kpps, lost {trial.lost}"
            f"{', held up' if trial.held_up else ''}"
        )
        return trial

    def passes(rate: float) -> bool:
        """Return whether a rate has no losses, and update `best`. Raises SourceTooSlow."""
        nonlocal best
        attempts = 2
        for _ in range(MAX_TRIALS):
            trial = offer(rate)
            if trial.lost == 0 and (best is None or trial.offered_rate > best.offered_rate):
                best = trial
            if trial.lost == 0 and trial.offered_rate >= INJECTOR_KEEPS_UP * rate:
                return True
            if trial.lost == 0 or not trial.held_up:
                attempts -= 1
            if attempts == 0:
                break
        if trial.lost == 0:
            raise SourceTooSlow
        return False

    source_limited = False
    overload = offer(0)
    if overload.lost == 0:  # maybe the source was delayed
        overload = max(overload, offer(0), key=lambda trial: trial.offered_rate)
    if overload.lost == 0:
        best = overload
        source_limited = True
    else:
        too_high = overload.offered_rate
        rate = 0.95 * overload.delivered_rate
        try:
            if passes(rate):
                while (rate := rate * 1.1) < too_high:
                    if not passes(rate):
                        too_high = rate
            else:
                for _ in range(8):
                    too_high, rate = rate, rate * 0.9
                    if passes(rate):
                        break
            if best is not None:
                passes((best.offered_rate + too_high) / 2)
        except SourceTooSlow:
            source_limited = True
    packets = max(1, int(overload.sink["frames"]))
    return Throughput(
        lossless=best.offered_rate if best else 0.0,
        source_limited=source_limited,
        overload_offered=overload.offered_rate,
        overload_delivered=overload.delivered_rate,
        process_us=overload.cpu.process / packets * 1e6,
        core_us=overload.cpu.core / packets * 1e6,
        trials=trials,
    )
