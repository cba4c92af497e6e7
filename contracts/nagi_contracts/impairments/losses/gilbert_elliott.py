# SPDX-License-Identifier: Apache-2.0
"""A good and a bad state that change after packets (Gilbert 1960, Elliott 1963)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings, percent
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Share


class GilbertElliottLossPlan(LossPlanBase):
    """A good and a bad state with their own loss rates; after each packet the state may change."""

    model: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: float = Field(description="probability, after each packet")
    bad_to_good: float = Field(description="probability, after each packet")
    loss_in_good: float = Field(description="probability")
    loss_in_bad: float = Field(description="probability")
    is_for_switches: ClassVar[bool] = True

    def describe(self) -> str:
        good, bad = percent(self.loss_in_good), percent(self.loss_in_bad)
        return f"Gilbert-Elliott: {good} in good, {bad} in bad state"


class GilbertElliottLoss(LossSettings):
    """A good and a bad state with their own loss rates; after each packet the state may change."""

    model: Literal["gilbert_elliott"] = Field(description=MODEL)
    good_to_bad: Share = Field(description="the probability of leaving the good state")
    bad_to_good: Share = Field(description="the probability of leaving the bad state")
    loss_in_good: Share = Field(Share(0), description="the probability of losing a packet")
    loss_in_bad: Share = Field(Share(1), description="the probability of losing a packet")

    def plan(self, planning: Planning) -> GilbertElliottLossPlan:
        return GilbertElliottLossPlan(
            good_to_bad=self.good_to_bad.value,
            bad_to_good=self.bad_to_good.value,
            loss_in_good=self.loss_in_good.value,
            loss_in_bad=self.loss_in_bad.value,
            at=self.at,
        )
