# SPDX-License-Identifier: Apache-2.0
"""A good and a bad state that change in continuous time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings, percent
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Share, Sojourn


class MarkovLossPlan(LossPlanBase):
    """A good and a bad state with their own loss rates, which change in continuous time."""

    model: Literal["markov"] = "markov"
    good_sojourn_ns: int = Field(description="mean")
    bad_sojourn_ns: int = Field(description="mean")
    loss_in_good: float = Field(description="probability")
    loss_in_bad: float = Field(description="probability")

    def describe(self) -> str:
        good, bad = percent(self.loss_in_good), percent(self.loss_in_bad)
        return f"two states in time: {good} in good, {bad} in bad"


class MarkovLoss(LossSettings):
    """A good and a bad state with their own loss rates, which change in continuous time."""

    model: Literal["markov"] = Field(description=MODEL)
    good: Sojourn = Field(description="mean sojourn in the good state")
    bad: Sojourn = Field(description="mean sojourn in the bad state")
    loss_in_good: Share = Field(Share(0), description="the probability of losing a packet")
    loss_in_bad: Share = Field(Share(1), description="the probability of losing a packet")

    def plan(self, planning: Planning) -> MarkovLossPlan:
        return MarkovLossPlan(
            good_sojourn_ns=self.good.value,
            bad_sojourn_ns=self.bad.value,
            loss_in_good=self.loss_in_good.value,
            loss_in_bad=self.loss_in_bad.value,
            at=self.at,
        )
