# SPDX-License-Identifier: Apache-2.0
"""CoDel (RFC 8289): one queue, controlled by the sojourn time of its packets."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import is_false
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    AqmPlanBase,
    EcnSettings,
    make_packet_limit,
)
from nagi_contracts.units import AqmInterval, AqmTarget, QueueSize


class CoDelPlanBase(AqmPlanBase):
    """Parameters that all disciplines with CoDel share (RFC 8289)."""

    target_ns: int
    interval_ns: int


class CoDelPlan(CoDelPlanBase):
    """A queue that drops or marks packets after sojourn times over the target for an interval."""

    title = "CoDel"
    discipline: Literal["codel"] = "codel"
    ecn: bool = Field(False, exclude_if=is_false)


class CoDelSettings(EcnSettings):
    """Settings of all disciplines with CoDel."""

    target: AqmTarget = Field(AqmTarget(5 * 10**6), description="acceptable sojourn time")
    interval: AqmInterval = Field(
        AqmInterval(100 * 10**6), description="about the largest round-trip time of the flows"
    )

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.target.value > self.interval.value:
            raise BadValue(
                f"`target: {self.target}` above `interval: {self.interval}`",
                "write a target of 5 to 10 % of the interval (RFC 8289, section 4.3)",
                "target",
            )
        return self


class CoDel(CoDelSettings):
    """A queue that drops or marks packets after sojourn times over the target for an interval."""

    plan_type = CoDelPlan
    discipline: Literal["codel"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(make_packet_limit(1000), description="size of the queue")
