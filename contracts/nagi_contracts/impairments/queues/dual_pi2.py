# SPDX-License-Identifier: Apache-2.0
"""DualPI2 (RFC 9332): a low-latency queue and a classic queue, coupled."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import is_none
from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.impairments.queues.base import (
    DISCIPLINE,
    AqmPlanBase,
    AqmSettings,
    Style,
    make_packet_limit,
)
from nagi_contracts.units import AqmTarget, AqmUpdate, Gain, QueueSize, Share

# Style -> the thresholds for marking ECT(1) packets that this style has, with their defaults.
DEFAULTS_NS: dict[Style, dict[str, int]] = {
    "linux": {"step": 1_000_000},
    "rfc": {"min_threshold": 800_000, "range": 400_000},
}
_MIN_COUPLING, _MAX_COUPLING = get_number_range("aqm_coupling")


class DualPi2Plan(AqmPlanBase):
    """Two coupled queues: one marks ECT(1) packets, the other is for classic packets.

    Classic packets are dropped or marked with the square of the probability.
    """

    title = "DualPI2"
    discipline: Literal["dualpi2"] = "dualpi2"
    target_ns: int
    update_ns: int
    alpha_hz: float
    beta_hz: float
    coupling: float
    step_ns: int | None = Field(None, exclude_if=is_none, description="for style linux")
    min_threshold_ns: int | None = Field(None, exclude_if=is_none, description="for style rfc")
    range_ns: int | None = Field(None, exclude_if=is_none, description="for style rfc")
    classic_weight: float


class DualPi2(AqmSettings):
    """Two coupled queues: one marks ECT(1) packets, the other is for classic packets.

    Classic packets are dropped or marked with the square of the probability.
    """

    plan_type = DualPi2Plan
    discipline: Literal["dualpi2"] = Field(description=DISCIPLINE)
    limit: QueueSize = Field(make_packet_limit(10000), description="size of both queues together")
    target: AqmTarget = Field(AqmTarget(15 * 10**6), description="target queueing delay")
    update: AqmUpdate = Field(
        AqmUpdate(16 * 10**6), description="time between updates of the probability"
    )
    alpha: Gain = Field(Gain(0.16), description="gain of the deviation from the target, in Hz")
    beta: Gain = Field(Gain(3.2), description="gain of the change of the delay, in Hz")
    coupling: float = Field(
        2.0,
        ge=_MIN_COUPLING,
        le=_MAX_COUPLING,
        description="coupling factor k of the two queues' probabilities",
    )
    step: AqmTarget | None = Field(
        None,
        description="for style linux: sojourn time above which ECT(1) packets are marked; default: "
        "1 ms",
    )
    min_threshold: AqmTarget | None = Field(
        None,
        description="for style rfc: sojourn time above which ECT(1) packets may be marked; "
        "default: 0.8 ms",
    )
    range: AqmTarget | None = Field(
        None,
        description="for style rfc: time above `min_threshold` from which all ECT(1) packets are "
        "marked; default: 0.4 ms",
    )
    classic_weight: Share = Field(
        Share(0.1),
        description="share of the rate for the classic queue while both queues have packets",
    )

    @model_validator(mode="after")
    def _check_style(self) -> Self:
        other_style: Style = "rfc" if self.style == "linux" else "linux"
        for key in DEFAULTS_NS[other_style]:
            if getattr(self, key) is not None:
                raise BadValue(
                    f"`{key}` has no meaning with `style: {self.style}`",
                    f"remove it, or write `style: {other_style}`",
                    key,
                )
        return self

    def get_extra_values(self, planning: Planning) -> dict[str, int]:
        defaults = {
            f"{key}_ns": default_ns
            for key, default_ns in DEFAULTS_NS[self.style].items()
            if getattr(self, key) is None
        }
        return super().get_extra_values(planning) | defaults

    @property
    def marks(self) -> bool:
        return True
