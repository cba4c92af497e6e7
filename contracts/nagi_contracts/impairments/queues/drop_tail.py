# SPDX-License-Identifier: Apache-2.0
"""Drop-tail: packets that arrive while the queue is full are dropped."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Flag, is_default, is_false
from nagi_contracts.impairments.queues.base import DISCIPLINE, QueuePlanBase, QueueSettings
from nagi_contracts.units import QueueSize


class DropTailPlan(QueuePlanBase):
    """A FIFO queue that drops packets that arrive while it is full."""

    discipline: Literal["drop_tail"] = Field("drop_tail", exclude_if=is_default("drop_tail"))
    counts_transmission: bool = Field(False, exclude_if=is_false)
    is_for_switches: ClassVar[bool] = True

    def describe(self) -> str:
        return "drop-tail"


class DropTail(QueueSettings):
    """A FIFO queue that drops packets that arrive while it is full."""

    plan_type = DropTailPlan
    discipline: Literal["drop_tail"] = Field("drop_tail", description=DISCIPLINE)
    limit: QueueSize = Field(description="size of the queue")
    counts_transmission: Flag = Field(
        False,
        description="whether the limit includes the packet in transmission, as in mahimahi",
    )
