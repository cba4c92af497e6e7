# SPDX-License-Identifier: Apache-2.0
"""Corrects estimates of time and disk by what earlier campaigns took.

The estimates of estimate.py are multiplied by a "pace": the ratio of actual to estimated time or
disk. Estimates of time concern runs in virtual time. After each campaign, its duration, without the
share of processors that other programs used, and the bytes that are kept are added to the pace of
its experiment and of its class of runs. A pace covers about the last hour of runs. Paces are stored
in $XDG_CACHE_HOME/nagi/pace.json.
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

from nagi.backends.registry import load_needs
from nagi.scratch import get_user_cache

_REMEMBERED_S = 3600.0
_MAX_EXPERIMENTS = 100


class Pace(Contract):
    """Sums of the estimates, by the formula alone, and of the actual time and disk of runs."""

    estimated_s: float = 0.0
    took_s: float = 0.0
    estimated_bytes: float = 0.0
    kept_bytes: float = 0.0

    def merge(self, campaign: Pace) -> Pace:
        """Return the sum of this pace and that of a new campaign; old runs lose weight."""
        share = min(
            1.0, max(0.0, _REMEMBERED_S - campaign.estimated_s) / max(self.estimated_s, 1.0)
        )
        if not campaign.estimated_s:  # runs in real time, whose duration needs no estimate
            share = 0.5
        return Pace(
            estimated_s=self.estimated_s * share + campaign.estimated_s,
            took_s=self.took_s * share + campaign.took_s,
            estimated_bytes=self.estimated_bytes * share + campaign.estimated_bytes,
            kept_bytes=self.kept_bytes * share + campaign.kept_bytes,
        )


class Paces(Contract):
    """The content of pace.json: a pace for each experiment and for each class of runs."""

    schema_version: Literal[3] = 3
    experiments: dict[str, Pace] = Field({})
    kinds: dict[str, Pace] = Field({})

    def find_time_ratio(self, plan: RunPlan) -> float:
        """Return the ratio of actual to estimated time of a run; 1 without earlier runs."""
        return _find_ratio((pace.took_s, pace.estimated_s) for pace in self._list_nearest(plan))

    def find_disk_ratio(self, plan: RunPlan) -> float:
        """Return the ratio of actual to estimated disk of a run; 1 without earlier runs."""
        return _find_ratio(
            (pace.kept_bytes, pace.estimated_bytes) for pace in self._list_nearest(plan)
        )

    def _list_nearest(self, plan: RunPlan) -> Iterator[Pace]:
        """Yield the paces of the run's experiment, of its class, and of all classes together."""
        yield self.experiments.get(_name_experiment(plan), Pace())
        yield self.kinds.get(classify_run(plan), Pace())
        yield Pace(
            **{
                key: sum(getattr(pace, key) for pace in self.kinds.values())
                for key in Pace.model_fields
            }
        )


def _find_ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the first ratio of actual to estimated that is defined, or 1."""
    return next((actual / estimated for actual, estimated in pairs if actual > 0 < estimated), 1.0)


def _name_experiment(plan: RunPlan) -> str:
    """Return the name of a run's experiment with its variant, whose runs can differ in duration."""
    name, variant = plan.experiment.name, plan.experiment.variant
    return name if variant is None else f"{name}:{variant}"


def classify_run(plan: RunPlan) -> str:
    """Return the class of a run: the components that it uses.

    The errors of the estimate are similar for the runs of a class.
    """
    words = [needs.classify_run(plan) for needs in load_needs().values()]
    if any(flow.application is not None for flow in plan.flows):
        words.append("applications")
    return " ".join(["hosts", *filter(None, words)])


class ProcessorShare:
    """Measures the share of this machine's processors that this process and its children could use.

    The measurement begins when the object is made.
    """

    def __init__(self) -> None:
        self._begin = _read_processor_seconds()

    def measure(self) -> float:
        """Return the share in (0, 1]; 1 means that other programs used no processor time."""
        busy, idle, own = (
            end - begin for end, begin in zip(_read_processor_seconds(), self._begin, strict=True)
        )
        own = min(own, busy)
        return (own + idle) / (busy + idle) if own + idle > 0 else 1.0


def _read_processor_seconds() -> tuple[float, float, float]:
    """Return processor time since boot, in seconds: busy, idle, and used by this process.

    Busy includes the time that the hypervisor took. The time of this process includes its children
    that have ended.
    """
    machine = psutil.cpu_times()
    idle = machine.idle + machine.iowait
    busy = machine.user + machine.nice + machine.system + machine.irq + machine.softirq
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy + machine.steal, idle, sum(usage.ru_utime + usage.ru_stime for usage in own)


def read_paces() -> Paces:
    """Return the stored paces; empty paces if the file is missing or damaged."""
    try:
        return Paces.read(_find_pace_file())
    except InputError:
        return Paces()


def record_pace(plan: RunPlan, campaign: Pace) -> None:
    """Store the pace of a campaign.

    A file that cannot be written is left unchanged.

    Args:
        plan: one of the plans of the campaign
        campaign: estimates by the formula alone, and the actual values without the share of other
            programs
    """
    paces, name, kind = read_paces(), _name_experiment(plan), classify_run(plan)
    if campaign == Pace():
        return
    # The experiment of this campaign becomes the last; the oldest ones are removed.
    others = [(key, pace) for key, pace in paces.experiments.items() if key != name]
    experiments = dict(others[1 - _MAX_EXPERIMENTS :])
    experiments[name] = paces.experiments.get(name, Pace()).merge(campaign)
    kinds = paces.kinds | {kind: paces.kinds.get(kind, Pace()).merge(campaign)}
    with suppress(OSError):
        _find_pace_file().parent.mkdir(parents=True, exist_ok=True)
        Paces(experiments=experiments, kinds=kinds).write(_find_pace_file())


def _find_pace_file() -> Path:
    return get_user_cache("pace.json")
