# SPDX-License-Identifier: Apache-2.0
"""DualPI2 (RFC 9332): a queue of low latency beside a classic one."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import is_none
from nagi_contracts.bounds import real
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    AqmPlanBase,
    AqmSettings,
    Style,
    some_packets,
)
from nagi_contracts.units import AqmTarget, AqmUpdate, Gain, QueueSize, Share

# The thresholds of marking low latency's packets, by the style that knows them.
DEFAULTS_NS: dict[Style, dict[str, int]] = {
    "linux": {"step": 1_000_000},
    "rfc": {"min_threshold": 800_000, "range": 400_000},
}
_MIN_COUPLING, _MAX_COUPLING = real("aqm_coupling")


class DualPi2Plan(AqmPlanBase):
    """ECT(1) packets wait in a queue of their own and are marked; classic ones are dropped or
    marked with the square of the probability."""

    title = "DualPI2"
    discipline: Literal["dualpi2"] = "dualpi2"
    target_ns: int
    update_ns: int
    alpha_hz: float
    beta_hz: float
    coupling: float
    step_ns: int | None = Field(None, exclude_if=is_none, description="of Linux's style")
    min_threshold_ns: int | None = Field(None, exclude_if=is_none, description="of the RFC's style")
    range_ns: int | None = Field(None, exclude_if=is_none, description="of the RFC's style")
    classic_weight: float


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
    step: AqmTarget | None = Field(
        None, description="as Linux: time above which waiting ECT(1) packets are marked; 1 ms"
    )
    min_threshold: AqmTarget | None = Field(
        None,
        description="as the RFC: time above which waiting ECT(1) packets may be marked; 0.8 ms",
    )
    range: AqmTarget | None = Field(
        None, description="as the RFC: so much above that all of them are marked; 0.4 ms"
    )
    classic_weight: Share = Field(
        Share(0.1), description="the classic queue's share while both wait"
    )

    @model_validator(mode="after")
    def _check_style(self) -> Self:
        other: Style = "rfc" if self.style == "linux" else "linux"
        for key in DEFAULTS_NS[other]:
            if getattr(self, key) is not None:
                raise BadValue(
                    f"`{key}` with `style: {self.style}`",
                    f"remove it, or write `style: {other}`",
                    key,
                )
        return self

    def further(self, planning: Planning) -> dict[str, int]:
        missing = {
            f"{key}_ns": default_ns
            for key, default_ns in DEFAULTS_NS[self.style].items()
            if getattr(self, key) is None
        }
        return super().further(planning) | missing

    @property
    def marks(self) -> bool:
        return True
