# SPDX-License-Identifier: Apache-2.0
"""All queue disciplines.

Each discipline is a module. To add one, add it to both unions here.
"""

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


def _complete_queue(value: object) -> object:
    """Return settings unchanged, and for a single size those of a drop-tail queue of this size."""
    if isinstance(value, dict | DropTail | CoDel | FqCoDel | Pie | DualPi2):
        return value
    size = value if isinstance(value, QueueSize) else QueueSize.parse(value)
    return {"discipline": "drop_tail", "limit": size}


Queue = Annotated[
    _Disciplines, BeforeValidator(_complete_queue, json_schema_input_type=QueueSize | _Disciplines)
]


def _find_discipline(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("discipline", "drop_tail"))
    return str(value.discipline)


QueuePlan = Annotated[
    Annotated[DropTailPlan, Tag("drop_tail")]
    | Annotated[CoDelPlan, Tag("codel")]
    | Annotated[FqCoDelPlan, Tag("fq_codel")]
    | Annotated[PiePlan, Tag("pie")]
    | Annotated[DualPi2Plan, Tag("dualpi2")],
    Discriminator(_find_discipline),
]


def name_disciplines(queues: Iterable[QueuePlan | None]) -> str:
    """Return the words that follow a queue's size in reports, such as ", CoDel or PIE".

    Each discipline is named once, in the order of `queues`. None stands for no queue, and is left
    out. Return "" if all queues are drop-tail queues.
    """
    names = dict.fromkeys(queue.describe() for queue in queues if queue is not None)
    return "" if set(names) <= {"drop-tail"} else ", " + " or ".join(names)
