# SPDX-License-Identifier: Apache-2.0
"""A Markov model in continuous time with a good and a bad state."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL
from nagi_contracts.impairments.losses.two_states import TwoStatesPlan, TwoStatesSettings
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Sojourn


class MarkovLossPlan(TwoStatesPlan):
    """A good and a bad state with different loss rates; the state changes in continuous time."""

    model: Literal["markov"] = "markov"
    good_sojourn_ns: int = Field(description="mean time in the good state")
    bad_sojourn_ns: int = Field(description="mean time in the bad state")

    def describe(self) -> str:
        return f"two states in time: {self.describe_states()}"


class MarkovLoss(TwoStatesSettings):
    """A good and a bad state with different loss rates; the state changes in continuous time."""

    model: Literal["markov"] = Field(description=MODEL)
    good: Sojourn = Field(description="mean time in the good state")
    bad: Sojourn = Field(description="mean time in the bad state")

    def to_plan(self, planning: Planning) -> MarkovLossPlan:
        return MarkovLossPlan(
            good_sojourn_ns=self.good.value,
            bad_sojourn_ns=self.bad.value,
            loss_in_good=self.loss_in_good.value,
            loss_in_bad=self.loss_in_bad.value,
            at=self.at,
        )
