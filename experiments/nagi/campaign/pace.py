# SPDX-License-Identifier: Apache-2.0
"""How fast this machine does runs in virtual time, beside the estimate (estimate.py).

The estimate is of the processors it was measured with. Every campaign tells how long its runs took
beside it, less what other programs took of the processors meanwhile; what the last hour of runs
came to is kept in $XDG_CACHE_HOME/nagi/pace.json, and estimates are multiplied by it.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path
from typing import Literal

import psutil
from nagi_contracts.base import Contract
from nagi_contracts.errors import InputError

from nagi.scratch import user_cache

_REMEMBERED_S = 3600.0


class Pace(Contract):
    """pace.json: what runs were estimated to take, without any pace, and what they took."""

    schema_version: Literal[1] = 1
    estimated_s: float = 0.0
    took_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How much longer runs take than estimated; 1: nothing is known."""
        return self.took_s / self.estimated_s if self.estimated_s > 0 and self.took_s > 0 else 1.0


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


def known() -> Pace:
    """What earlier campaigns have taught; of a file that is damaged, nothing."""
    try:
        return Pace.read(_file())
    except InputError:
        return Pace()


def learn(estimated_s: float, took_s: float) -> None:
    """Runs that were to take `estimated_s`, multiplied by the pace known so far, took so long, or
    would have without other programs (Share). If it cannot be kept, it is not."""
    if estimated_s <= 0 or took_s <= 0:
        return
    before = known()
    estimated_s /= before.ratio
    share = min(1.0, max(0.0, _REMEMBERED_S - estimated_s) / max(before.estimated_s, 1.0))
    made = Pace(
        estimated_s=before.estimated_s * share + estimated_s,
        took_s=before.took_s * share + took_s,
    )
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        made.write(_file())


def _file() -> Path:
    return user_cache("pace.json")
