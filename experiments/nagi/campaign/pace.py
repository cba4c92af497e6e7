# SPDX-License-Identifier: Apache-2.0
"""What runs took of time and disk beside the estimate (estimate.py).

Estimates of time are of runs in virtual time, on the processors they were measured with. Every
campaign tells how long its runs took, less what other programs took of the processors meanwhile,
and how many bytes are kept of them. What the last hour of runs of each experiment and of each kind
came to is kept in $XDG_CACHE_HOME/nagi/pace.json, and estimates are multiplied by it.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import psutil
from nagi_contracts.base import Contract
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from pydantic import Field

from nagi.scratch import get_user_cache

_REMEMBERED_S = 3600.0
_EXPERIMENTS = 100  # that are remembered


class Pace(Contract):
    """Sums of what runs were estimated to take, by the formula alone, and of what they took."""

    estimated_s: float = 0.0
    took_s: float = 0.0
    estimated_bytes: float = 0.0
    kept_bytes: float = 0.0

    def merged(self, lesson: Pace) -> Pace:
        """Return this pace with the lesson of a campaign, which makes it forget what is old."""
        share = min(1.0, max(0.0, _REMEMBERED_S - lesson.estimated_s) / max(self.estimated_s, 1.0))
        if not lesson.estimated_s:  # of real time, which is known beforehand
            share = 0.5
        return Pace(
            estimated_s=self.estimated_s * share + lesson.estimated_s,
            took_s=self.took_s * share + lesson.took_s,
            estimated_bytes=self.estimated_bytes * share + lesson.estimated_bytes,
            kept_bytes=self.kept_bytes * share + lesson.kept_bytes,
        )


class Paces(Contract):
    """The content of pace.json: a pace for each experiment and each kind of runs (kind_of)."""

    schema_version: Literal[3] = 3
    experiments: dict[str, Pace] = Field({})
    kinds: dict[str, Pace] = Field({})

    def time_ratio(self, plan: RunPlan) -> float:
        """Return how much longer a run takes than estimated; it is 1 if nothing is known."""
        return _ratio((each.took_s, each.estimated_s) for each in self._nearest(plan))

    def disk_ratio(self, plan: RunPlan) -> float:
        """Return how much more is kept of a run than estimated; it is 1 if nothing is known."""
        return _ratio((each.kept_bytes, each.estimated_bytes) for each in self._nearest(plan))

    def _nearest(self, plan: RunPlan) -> Iterator[Pace]:
        """Yield the paces of the run's experiment, of its kind, and of all kinds."""
        yield self.experiments.get(_experiment_of(plan), Pace())
        yield self.kinds.get(kind_of(plan), Pace())
        yield Pace(
            **{
                key: sum(getattr(each, key) for each in self.kinds.values())
                for key in Pace.model_fields
            }
        )


def _ratio(known: Iterable[tuple[float, float]]) -> float:
    """Return the ratio of the first pair that has one."""
    return next((took / estimated for took, estimated in known if took > 0 < estimated), 1.0)


def _experiment_of(plan: RunPlan) -> str:
    """Return the name of the run's experiment with its variant, whose runs last otherwise."""
    name, variant = plan.experiment.name, plan.experiment.variant
    return name if variant is None else f"{name}:{variant}"


def kind_of(plan: RunPlan) -> str:
    """Runs of a kind have the same parts, so that the estimate errs alike for them."""
    parts = {
        "switches": plan.switches(),
        "radios": plan.radios(),
        "fpgas": any(link.fpga is not None for link in plan.links),
        "media": plan.media,
        "applications": any(flow.application is not None for flow in plan.flows),
    }
    return " ".join(["hosts", *(name for name, has in parts.items() if has)])


class Share:
    """How much of this machine's processors was there for this process and those it waited for,
    since this was made."""

    def __init__(self) -> None:
        self._begin = _processor_seconds()

    def value(self) -> float:
        """In (0, 1]; 1: others took nothing."""
        busy, idle, own = (
            end - begin for end, begin in zip(_processor_seconds(), self._begin, strict=True)
        )
        own = min(own, busy)
        return (own + idle) / (busy + idle) if own + idle > 0 else 1.0


def _processor_seconds() -> tuple[float, float, float]:
    """All processors' since boot, busy (stolen included) and idle, and this process's own, with
    those of processes that it has waited for."""
    machine = psutil.cpu_times()
    idle = machine.idle + machine.iowait
    busy = machine.user + machine.nice + machine.system + machine.irq + machine.softirq
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy + machine.steal, idle, sum(each.ru_utime + each.ru_stime for each in own)


def known() -> Paces:
    """What earlier campaigns have taught; of a file that is damaged, nothing."""
    try:
        return Paces.read(_file())
    except InputError:
        return Paces()


def learn(plan: RunPlan, lesson: Pace) -> None:
    """Write what runs like `plan` took, without the share of other programs (Share), and what the
    formula alone had said. A file that cannot be written is left as it is."""
    paces, name, kind = known(), _experiment_of(plan), kind_of(plan)
    if lesson == Pace():
        return
    # The one that has just been run is the last, and the oldest are forgotten.
    others = [(key, each) for key, each in paces.experiments.items() if key != name]
    experiments = dict(others[1 - _EXPERIMENTS :])
    experiments[name] = paces.experiments.get(name, Pace()).merged(lesson)
    kinds = paces.kinds | {kind: paces.kinds.get(kind, Pace()).merged(lesson)}
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        Paces(experiments=experiments, kinds=kinds).write(_file())


def _file() -> Path:
    return get_user_cache("pace.json")
