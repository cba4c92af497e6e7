# SPDX-License-Identifier: Apache-2.0
"""Corrects estimates of time and disk by the actual values of earlier campaigns.

A "pace" has the estimated and the actual time and disk of earlier runs. The estimates of
estimate.py are multiplied by the ratio of actual to estimated values; the estimate of time only for
runs in virtual time. There is a pace per experiment, and per class of runs. After a campaign, its
values are added to both paces. Its duration is reduced by the share of processor time that other
programs used. A pace covers about the last hour of runs. Paces are stored in
$XDG_CACHE_HOME/nagi/pace.json.
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
    """Sums, over runs, of estimated and actual time and disk. The estimates are uncorrected."""

    estimated_s: float = 0.0
    took_s: float = 0.0
    estimated_bytes: float = 0.0
    kept_bytes: float = 0.0

    def merge(self, campaign_pace: Pace) -> Pace:
        """Return the sum of the paces of earlier runs (`self`) and of a new campaign.

        Earlier runs get a weight of at most 1, so that the sum covers about _REMEMBERED_S.
        """
        weight = min(
            1.0, max(0.0, _REMEMBERED_S - campaign_pace.estimated_s) / max(self.estimated_s, 1.0)
        )
        if not campaign_pace.estimated_s:  # runs in real time, whose duration needs no estimate
            weight = 0.5
        return Pace(
            estimated_s=self.estimated_s * weight + campaign_pace.estimated_s,
            took_s=self.took_s * weight + campaign_pace.took_s,
            estimated_bytes=self.estimated_bytes * weight + campaign_pace.estimated_bytes,
            kept_bytes=self.kept_bytes * weight + campaign_pace.kept_bytes,
        )


class Paces(Contract):
    """The content of pace.json: a pace for each experiment and for each class of runs."""

    schema_version: Literal[3] = 3
    experiments: dict[str, Pace] = Field({})
    kinds: dict[str, Pace] = Field({})

    def find_time_ratio(self, plan: RunPlan) -> float:
        """Return the ratio of actual to estimated time of earlier runs; 1 without earlier runs.

        The ratio is that of the run's experiment. If the experiment has no earlier runs, it is that
        of the run's class, and without these, that of all classes.
        """
        return _find_ratio((pace.took_s, pace.estimated_s) for pace in self._list_nearest(plan))

    def find_disk_ratio(self, plan: RunPlan) -> float:
        """Return the ratio of actual to estimated disk of earlier runs. See find_time_ratio()."""
        return _find_ratio(
            (pace.kept_bytes, pace.estimated_bytes) for pace in self._list_nearest(plan)
        )

    def _list_nearest(self, plan: RunPlan) -> Iterator[Pace]:
        """Yield the paces of the run's experiment, of its class, and of all classes together.

        A pace without earlier runs is Pace().
        """
        yield self.experiments.get(_name_experiment(plan), Pace())
        yield self.kinds.get(classify_run(plan), Pace())
        yield Pace(
            **{
                key: sum(getattr(pace, key) for pace in self.kinds.values())
                for key in Pace.model_fields
            }
        )


def _find_ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the ratio of the first (actual, estimated) pair without a 0; 1 if there is none."""
    return next((actual / estimated for actual, estimated in pairs if actual > 0 < estimated), 1.0)


def _name_experiment(plan: RunPlan) -> str:
    """Return NAME of a run's experiment, or NAME:VARIANT, because variants differ in duration."""
    name, variant = plan.experiment.name, plan.experiment.variant
    return name if variant is None else f"{name}:{variant}"


def classify_run(plan: RunPlan) -> str:
    """Return the class of a run: the names of the components that it uses, such as `hosts radios`.

    Estimates for runs of the same class have similar errors.
    """
    words = [needs.classify_run(plan) for needs in load_needs().values()]
    if any(flow.application is not None for flow in plan.flows):
        words.append("applications")
    return " ".join(["hosts", *filter(None, words)])


class ProcessorShare:
    """The share of this machine's processors that this process and its children could use.

    The measurement begins when the object is made.
    """

    def __init__(self) -> None:
        self._begin = _read_processor_seconds()

    def measure(self) -> float:
        """Return the share since the object was made, in (0, 1].

        1 means that other programs used no processor time.
        """
        busy_s, idle_s, own_s = (
            end - begin for end, begin in zip(_read_processor_seconds(), self._begin, strict=True)
        )
        own_s = min(own_s, busy_s)
        return (own_s + idle_s) / (busy_s + idle_s) if own_s + idle_s > 0 else 1.0


def _read_processor_seconds() -> tuple[float, float, float]:
    """Return processor time since boot, in seconds: busy, idle, and used by this process.

    Busy includes the time that the hypervisor took. The time of this process includes its children
    that have ended.
    """
    machine = psutil.cpu_times()
    idle = machine.idle + machine.iowait
    busy = machine.user + machine.nice + machine.system + machine.irq + machine.softirq
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy + machine.steal, idle, sum(usage.ru_utime + usage.ru_stime for usage in usages)


def read_paces() -> Paces:
    """Return the stored paces; empty paces if the file is missing or damaged."""
    try:
        return Paces.read(_find_pace_file())
    except InputError:
        return Paces()


def record_pace(plan: RunPlan, campaign_pace: Pace) -> None:
    """Add the pace of a campaign to the stored paces of its experiment and of its class of runs.

    If pace.json cannot be written, it is left unchanged.

    Args:
        plan: One of the plans of the campaign.
        campaign_pace: Uncorrected estimates, and actual values. Nothing is added if it is Pace().
    """
    paces, name, kind = read_paces(), _name_experiment(plan), classify_run(plan)
    if campaign_pace == Pace():
        return
    # The experiment of this campaign becomes the last entry. The first entries, which were used
    # least recently, are removed.
    others = [(key, pace) for key, pace in paces.experiments.items() if key != name]
    experiments = dict(others[1 - _MAX_EXPERIMENTS :])
    experiments[name] = paces.experiments.get(name, Pace()).merge(campaign_pace)
    kinds = paces.kinds | {kind: paces.kinds.get(kind, Pace()).merge(campaign_pace)}
    with suppress(OSError):
        _find_pace_file().parent.mkdir(parents=True, exist_ok=True)
        Paces(experiments=experiments, kinds=kinds).write(_find_pace_file())


def _find_pace_file() -> Path:
    return get_user_cache("pace.json")
