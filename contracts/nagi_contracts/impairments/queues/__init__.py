# SPDX-License-Identifier: Apache-2.0
"""All queue disciplines. One in a module of its own is added to both unions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Field, Tag

from nagi_contracts.impairments.queues.codel import CoDel, CoDelPlan
from nagi_contracts.impairments.queues.drop_tail import DropTail, DropTailPlan
from nagi_contracts.impairments.queues.dual_pi2 import DualPi2, DualPi2Plan
from nagi_contracts.impairments.queues.fq_codel import FqCoDel, FqCoDelPlan
from nagi_contracts.impairments.queues.pie import Pie, PiePlan
from nagi_contracts.units import QueueSize

_Disciplines = Annotated[
    DropTail | CoDel | FqCoDel | Pie | DualPi2, Field(discriminator="discipline")
]


def _queue(value: object) -> object:
    """A size alone is a drop-tail queue's."""
    if isinstance(value, dict | DropTail | CoDel | FqCoDel | Pie | DualPi2):
        return value
    size = value if isinstance(value, QueueSize) else QueueSize.parse(value)
    return {"discipline": "drop_tail", "limit": size}


Queue = Annotated[
    _Disciplines, BeforeValidator(_queue, json_schema_input_type=QueueSize | _Disciplines)
]


def _discipline(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("discipline", "drop_tail"))
    return str(value.discipline)


QueuePlan = Annotated[
    Annotated[DropTailPlan, Tag("drop_tail")]
    | Annotated[CoDelPlan, Tag("codel")]
    | Annotated[FqCoDelPlan, Tag("fq_codel")]
    | Annotated[PiePlan, Tag("pie")]
    | Annotated[DualPi2Plan, Tag("dualpi2")],
    Discriminator(_discipline),
]


def name_disciplines(queues: Iterable[QueuePlan | None]) -> str:
    """For reports, to be put behind a size; "": all are drop-tail queues."""
    found = dict.fromkeys(queue.describe() for queue in queues if queue is not None)
    return "" if set(found) <= {"drop-tail"} else ", " + " or ".join(found)
