# SPDX-License-Identifier: Apache-2.0
"""The Gilbert-Elliott model: the state changes after packets (Gilbert 1960, Elliott 1963)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL
from nagi_contracts.impairments.losses.two_states import TwoStatesPlan, TwoStatesSettings
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import Share


class GilbertElliottLossPlan(TwoStatesPlan):
    """A good and a bad state with different loss rates; the state may change after each packet."""

    model: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: float = Field(
        description="probability that the state changes to bad after a packet in the good state"
    )
    bad_to_good: float = Field(
        description="probability that the state changes to good after a packet in the bad state"
    )
    is_for_switches: ClassVar[bool] = True

    def describe(self) -> str:
        return f"Gilbert-Elliott: {self.describe_states()}"


class GilbertElliottLoss(TwoStatesSettings):
    """A good and a bad state with different loss rates; the state may change after each packet."""

    model: Literal["gilbert_elliott"] = Field(description=MODEL)
    good_to_bad: Share = Field(
        description="probability that the state changes to bad after a packet in the good state"
    )
    bad_to_good: Share = Field(
        description="probability that the state changes to good after a packet in the bad state"
    )

    def to_plan(self, planning: Planning) -> GilbertElliottLossPlan:
        return GilbertElliottLossPlan(
            good_to_bad=self.good_to_bad.value,
            bad_to_good=self.bad_to_good.value,
            loss_in_good=self.loss_in_good.value,
            loss_in_bad=self.loss_in_bad.value,
            at=self.at,
        )
