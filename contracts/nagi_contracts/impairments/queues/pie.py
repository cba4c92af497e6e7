# SPDX-License-Identifier: Apache-2.0
"""PIE (RFC 8033): a controller of the queueing delay drops or marks arriving packets."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import is_false
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    AqmPlanBase,
    EcnSettings,
    make_packet_limit,
)
from nagi_contracts.units import AqmInterval, AqmTarget, AqmUpdate, Gain, QueueSize


class PiePlan(AqmPlanBase):
    """A queue that drops or marks arriving packets with a probability that controls the delay."""

    title = "PIE"
    discipline: Literal["pie"] = "pie"
    target_ns: int
    update_ns: int
    max_burst_ns: int
    alpha_hz: float
    beta_hz: float
    ecn: bool = Field(False, exclude_if=is_false)


class Pie(EcnSettings):
    """A queue that drops or marks arriving packets with a probability that controls the delay."""

    plan_type = PiePlan
    discipline: Literal["pie"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(make_packet_limit(1000), description="size of the queue")
    target: AqmTarget = Field(AqmTarget(15 * 10**6), description="target queueing delay")
    update: AqmUpdate = Field(
        AqmUpdate(15 * 10**6), description="time between updates of the probability"
    )
    max_burst: AqmInterval = Field(
        AqmInterval(150 * 10**6), description="longest burst that is not dropped"
    )
    alpha: Gain = Field(Gain(0.125), description="gain of the deviation from the target, in Hz")
    beta: Gain = Field(Gain(1.25), description="gain of the change of the delay, in Hz")
