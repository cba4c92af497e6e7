# SPDX-License-Identifier: Apache-2.0
"""The base classes of loss models with a good and a bad state."""

from __future__ import annotations

from pydantic import Field

from nagi_contracts.impairments.losses.base import LossPlanBase, LossSettings, format_percent
from nagi_contracts.units import Share


class TwoStatesPlan(LossPlanBase):
    """The base class of plans of loss models with a good and a bad state."""

    loss_in_good: float = Field(description="probability of losing a packet in the good state")
    loss_in_bad: float = Field(description="probability of losing a packet in the bad state")

    def describe_states(self) -> str:
        """Describe the loss rates of both states in a phrase for reports."""
        good, bad = format_percent(self.loss_in_good), format_percent(self.loss_in_bad)
        return f"{good} in good, {bad} in bad state"


class TwoStatesSettings(LossSettings):
    """The base class of settings of loss models with a good and a bad state."""

    loss_in_good: Share = Field(
        Share(0), description="the probability of losing a packet in the good state"
    )
    loss_in_bad: Share = Field(
        Share(1), description="the probability of losing a packet in the bad state"
    )
