# SPDX-License-Identifier: Apache-2.0
"""What losses in a good and a bad state have in common."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.impairments.losses.base import LossPlanBase, LossSettings, percent
from nagi_contracts.units import Share


class TwoStatesPlan(LossPlanBase):
    loss_in_good: float = Field(description="probability")
    loss_in_bad: float = Field(description="probability")

    def describe_states(self) -> str:
        return f"{percent(self.loss_in_good)} in good, {percent(self.loss_in_bad)} in bad state"


class TwoStatesSettings(LossSettings):
    loss_in_good: Share = Field(Share(0), description="the probability of losing a packet")
    loss_in_bad: Share = Field(Share(1), description="the probability of losing a packet")
