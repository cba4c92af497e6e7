# SPDX-License-Identifier: Apache-2.0
"""Losses whose probability changes over time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings, format_percent
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.impairments.steps import Steps, make_steps_field
from nagi_contracts.units import Duration, Share


class BernoulliTraceLossPlan(LossPlanBase):
    """Independent losses; their probability depends on when the packet's transmission begins."""

    model: Literal["bernoulli_trace"] = "bernoulli_trace"
    steps: list[tuple[int, float]] = Field(
        description="(instant in ns, probability from then on); the first at 0, strictly increasing"
    )
    period_ns: int = Field(
        description="time after which the trace repeats; later than every instant"
    )

    def describe(self) -> str:
        shares = [share for _, share in self.steps]
        low, high = format_percent(min(shares)), format_percent(max(shares))
        return f"{low} to {high} of packets, along a trace"


class BernoulliTraceLoss(LossSettings, Steps):
    """Independent losses with a probability that changes over time."""

    model: Literal["bernoulli_trace"] = Field(description=MODEL)
    steps: dict[Duration, Share] = make_steps_field("probability of losing a packet from then on")

    def to_plan(self, planning: Planning) -> BernoulliTraceLossPlan:
        steps = [(at.value, share.value) for at, share in self.steps.items()]
        return BernoulliTraceLossPlan(steps=steps, period_ns=self.period.value, at=self.at)
