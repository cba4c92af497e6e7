# SPDX-License-Identifier: Apache-2.0
"""DualPI2 (RFC 9332): a queue of low latency beside a classic one."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.bounds import real
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    AqmSettings,
    QueuePlanBase,
    some_packets,
)
from nagi_contracts.units import AqmTarget, AqmUpdate, Gain, QueueSize, Share

_MIN_COUPLING, _MAX_COUPLING = real("aqm_coupling")


class DualPi2Plan(QueuePlanBase):
    """ECT(1) packets wait in a queue of their own and are marked; classic ones are dropped or
    marked with the square of the probability."""

    discipline: Literal["dualpi2"] = "dualpi2"
    target_ns: int
    update_ns: int
    alpha_hz: float
    beta_hz: float
    coupling: float
    min_threshold_ns: int
    range_ns: int
    classic_weight: float
    full_packet_bytes: int

    def describe(self) -> str:
        return "DualPI2"


class DualPi2(AqmSettings):
    """ECT(1) packets wait in a queue of their own and are marked; classic ones are dropped or
    marked with the square of the probability."""

    plan_type = DualPi2Plan
    discipline: Literal["dualpi2"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(some_packets(10000), description="how much may wait, in both queues")
    target: AqmTarget = Field(AqmTarget(15 * 10**6), description="queueing delay to keep to")
    update: AqmUpdate = Field(
        AqmUpdate(16 * 10**6), description="between updates of the probability"
    )
    alpha: Gain = Field(Gain(0.16), description="gain of the deviation from the target, in Hz")
    beta: Gain = Field(Gain(3.2), description="gain of the change of the delay, in Hz")
    coupling: float = Field(
        2.0, ge=_MIN_COUPLING, le=_MAX_COUPLING, description="of the queues' probabilities: k"
    )
    min_threshold: AqmTarget = Field(
        AqmTarget(800_000), description="sojourn time above which ECT(1) packets are marked"
    )
    range: AqmTarget = Field(
        AqmTarget(400_000), description="so much above that all of them are marked"
    )
    classic_weight: Share = Field(
        Share(0.1), description="the classic queue's share while both wait"
    )

    @property
    def marks(self) -> bool:
        return True
