# SPDX-License-Identifier: Apache-2.0
"""Losses as recorded: the packets that a file says, by their number."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings
from nagi_contracts.impairments.planning import Planning


class TraceLossPlan(LossPlanBase):
    """The packets are lost whose indices are listed, again and again."""

    model: Literal["trace"] = "trace"
    lost: list[int] = Field(description="indices of lost packets, strictly increasing")
    length: int = Field(description="packets after which the trace repeats")

    def describe(self) -> str:
        return "a recorded trace"


class TraceLoss(LossSettings):
    """The packets are lost that a file says, by their number; it repeats."""

    model: Literal["trace"] = Field(description=MODEL)
    file: str = Field(
        min_length=1, description="0 and 1 (lost), a packet each; relative to this file"
    )

    def plan(self, planning: Planning) -> TraceLossPlan:
        lost, length = planning.losses(self.file)
        return TraceLossPlan(lost=lost, length=length, at=self.at)
