# SPDX-License-Identifier: Apache-2.0
"""Losses as recorded: by the number of the packet, or by the instant of its transmission."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.bounds import whole
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings
from nagi_contracts.impairments.losses.bernoulli_trace import BernoulliTraceLossPlan
from nagi_contracts.impairments.planning import Planning


class TraceLossPlan(LossPlanBase):
    """The packets are lost whose indices are listed, again and again."""

    model: Literal["trace"] = "trace"
    lost: list[int] = Field(description="indices of lost packets, strictly increasing")
    length: int = Field(description="packets after which the trace repeats")

    def describe(self) -> str:
        return "a recorded trace"


class TraceLoss(LossSettings):
    """Losses that a file says; it repeats."""

    model: Literal["trace"] = Field(description=MODEL)
    file: str = Field(
        min_length=1,
        description="0 and 1 (lost), a packet each; or transmissions.parquet of a run; relative to "
        "this file",
    )
    link: str | None = Field(
        None, description="of transmissions.parquet: the link in that run, if it had several"
    )
    direction: Literal["forward", "backward"] | None = Field(
        None, description="of transmissions.parquet: the link's direction in that run"
    )
    by: Literal["instant", "number"] | None = Field(
        None,
        description="of transmissions.parquet: a transmission meets the outcome of the one that "
        "began nearest to that instant (instant, if not given), or of the same number",
    )

    def plan(self, planning: Planning) -> TraceLossPlan | BernoulliTraceLossPlan:
        outcomes = planning.outcomes(self.file, self.link, self.direction)
        if outcomes is None:
            for key in ("link", "direction", "by"):
                if getattr(self, key) is not None:
                    planning.refuse(
                        f"`{key}` of a loss trace of 0 and 1, which counts packets",
                        f"remove `{key}`, or give transmissions.parquet of a run",
                    )
            lost, length = planning.losses(self.file)
            return TraceLossPlan(lost=lost, length=length, at=self.at)
        if self.at == "ingress":
            planning.refuse(
                "outcomes of transmissions on packets before the queue",
                "write `at: egress`, or remove it",
            )
        if self.by == "number":
            return TraceLossPlan(lost=outcomes.lost, length=outcomes.length)
        _, longest = whole("period_ns")
        if outcomes.end_ns > longest:
            planning.refuse(
                f"a record of {outcomes.end_ns / 1e9:.0f} s, longer than {longest / 1e9:.0f} s",
                "give the record of a shorter run, or write `by: number`",
            )
        return BernoulliTraceLossPlan(steps=outcomes.steps, period_ns=outcomes.end_ns)
