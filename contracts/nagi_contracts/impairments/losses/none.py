# SPDX-License-Identifier: Apache-2.0
"""No losses on the channel."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Strict
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase
from nagi_contracts.impairments.planning import Planning


class NoLossPlan(LossPlanBase):
    """A channel without losses."""

    model: Literal["none"] = "none"
    is_for_switches: ClassVar[bool] = True

    def describe(self) -> str:
        return "none"


class NoLoss(Strict):
    """A channel without losses."""

    model: Literal["none"] = Field("none", description=MODEL)

    def to_plan(self, planning: Planning) -> NoLossPlan:
        return NoLossPlan()
