# SPDX-License-Identifier: Apache-2.0
"""Throughput as RFC 2544 (26.1) has it: the highest rate offered of which nothing is lost, and the
rate that is delivered under overload."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from bench_lab import Lab, Trial, count_trial
from bench_subjects import Subject

MAX_TRIALS = 6  # at one rate, if the machine holds them up
BURST = 32  # frames the source sends together in throughput trials
INJECTOR_KEEPS_UP = 0.95  # at several hundred thousand frames a second it is often held up


def progress(said: str) -> None:
    print(f"bench: {said}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Throughput:
    """Of one subject, once. Packets/s, microseconds."""

    lossless: float  # the highest rate offered without loss; 0: every rate tried lost something
    source_limited: bool  # nothing was lost at the highest rate that the source could do then
    overload_offered: float
    overload_delivered: float
    process_us: float  # processor time a packet delivered under overload: of the process
    core_us: float  # and of the core, with interrupts and whoever else was there
    trials: list[Trial]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "trials": [t.to_json() for t in self.trials]}


class SourceIsTheLimit(Exception):
    """Nothing was lost, but less was offered than asked for: nobody can tell."""


def find_throughput(lab: Lab, subject: Subject, seconds: float) -> Throughput:
    """Overload first; then down by steps of 10 % from what was delivered until nothing is lost, or
    up until something is; then once more halfway. A trial, of some seconds, that loses, or whose
    source is too slow, is tried once more. One that loses while the machine gave the processor to
    others says nothing of the subject: it is tried again."""
    trials: list[Trial] = []
    best: Trial | None = None

    def offer(rate: float) -> Trial:
        burst = BURST if rate else 2 * BURST
        done = count_trial(lab, subject.pid, rate, burst, seconds)
        trials.append(done)
        asked = f"{rate / 1e3:.0f} kpps" if rate else "overload"
        progress(
            f"throughput: {subject.name}: {asked}: offered {done.offered_rate / 1e3:.0f}, "
            f"delivered {done.delivered_rate / 1e3:.0f} kpps, lost {done.lost}"
            f"{', held up' if done.held_up else ''}"
        )
        return done

    def passes(rate: float) -> bool:
        """Remembers the best trial. Raises SourceIsTheLimit."""
        nonlocal best
        attempts = 2
        for _ in range(MAX_TRIALS):
            done = offer(rate)
            if done.lost == 0 and (best is None or done.offered_rate > best.offered_rate):
                best = done
            if done.lost == 0 and done.offered_rate >= INJECTOR_KEEPS_UP * rate:
                return True
            if done.lost == 0 or not done.held_up:
                attempts -= 1
            if attempts == 0:
                break
        if done.lost == 0:
            raise SourceIsTheLimit
        return False

    source_limited = False
    overload = offer(0)
    if overload.lost == 0:  # perhaps the source was held up
        overload = max(overload, offer(0), key=lambda done: done.offered_rate)
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
        except SourceIsTheLimit:
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
