# SPDX-License-Identifier: Apache-2.0
"""How fast this machine does runs in virtual time, beside the estimate (estimate.py).

The estimate is of the processors it was measured with. Every campaign tells how long its runs took
beside it, less what other programs took of the processors meanwhile; what the last hour of runs of
each kind came to is kept in $XDG_CACHE_HOME/nagi/pace.json, and estimates are multiplied by it.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from typing import Literal

import psutil
from nagi_contracts.base import Contract
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from pydantic import Field

from nagi.scratch import user_cache

_REMEMBERED_S = 3600.0


class Pace(Contract):
    """What runs of a kind were estimated to take, without any pace, and what they took."""

    estimated_s: float = 0.0
    took_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How much longer runs take than estimated; 1: nothing is known."""
        return self.took_s / self.estimated_s if self.estimated_s > 0 and self.took_s > 0 else 1.0


class Paces(Contract):
    """pace.json: what is known of each kind (kind_of)."""

    schema_version: Literal[2] = 2
    kinds: dict[str, Pace] = Field({})

    def of(self, kind: str) -> Pace:
        """Of a kind that is not known, what all others together came to."""
        if kind in self.kinds:
            return self.kinds[kind]
        return Pace(
            estimated_s=sum(each.estimated_s for each in self.kinds.values()),
            took_s=sum(each.took_s for each in self.kinds.values()),
        )


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


def learn(kind: str, estimated_s: float, took_s: float) -> None:
    """Runs of a kind that were to take `estimated_s`, without any pace, took so long, or would have
    without other programs (Share). If it cannot be kept, it is not."""
    if estimated_s <= 0 or took_s <= 0:
        return
    paces = known()
    before = paces.kinds.get(kind, Pace())
    share = min(1.0, max(0.0, _REMEMBERED_S - estimated_s) / max(before.estimated_s, 1.0))
    made = Pace(
        estimated_s=before.estimated_s * share + estimated_s,
        took_s=before.took_s * share + took_s,
    )
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        Paces(kinds=paces.kinds | {kind: made}).write(_file())


def _file() -> Path:
    return user_cache("pace.json")
