# SPDX-License-Identifier: Apache-2.0
"""Recorded losses, which are repeated by the packet's number or by the time of its transmission."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.bounds import get_integer_range
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings
from nagi_contracts.impairments.losses.bernoulli_trace import BernoulliTraceLossPlan
from nagi_contracts.impairments.planning import Planning


class TraceLossPlan(LossPlanBase):
    """Losses of the packets with listed indices. After `length` packets, the list repeats."""

    model: Literal["trace"] = "trace"
    lost: list[int] = Field(description="indices of lost packets, strictly increasing")
    length: int = Field(description="number of packets after which the trace repeats")

    def describe(self) -> str:
        return "a recorded trace"


class TraceLoss(LossSettings):
    """Losses from a file, which repeats."""

    model: Literal["trace"] = Field(description=MODEL)
    file: str = Field(
        min_length=1,
        description="path, relative to the experiment file, of a file with 0 or 1 (lost) for each "
        "packet, or of transmissions.parquet of a run",
    )
    link: str | None = Field(
        None,
        description="for transmissions.parquet: the recorded link, required if there are several",
    )
    direction: Literal["forward", "backward"] | None = Field(
        None, description="for transmissions.parquet: the recorded direction of the link"
    )
    by: Literal["instant", "number"] | None = Field(
        None,
        description="for transmissions.parquet: which recorded outcome a transmission gets. "
        "instant (default): the outcome of the recorded transmission that is nearest in time; "
        "number: the outcome of the recorded transmission with the same number",
    )

    def to_plan(self, planning: Planning) -> TraceLossPlan | BernoulliTraceLossPlan:
        """Return the plan of a loss trace, or of the recorded outcomes of transmissions.

        Raises:
            InputError: The file is wrong, the recorded run is too long, or a setting does not fit
                the file.
        """
        outcomes = planning.read_outcomes(self.file, self.link, self.direction)
        if outcomes is None:
            for key in ("link", "direction", "by"):
                if getattr(self, key) is not None:
                    planning.refuse(
                        f"`{key}` has no meaning for a loss trace of 0 and 1",
                        f"remove `{key}`, or give transmissions.parquet of a run",
                    )
            lost, length = planning.read_losses(self.file)
            return TraceLossPlan(lost=lost, length=length, at=self.at)
        if self.at == "ingress":
            planning.refuse(
                "recorded outcomes of transmissions cannot apply before the queue (`at: ingress`)",
                "write `at: egress`, or remove `at`",
            )
        if self.by == "number":
            return TraceLossPlan(lost=outcomes.lost, length=outcomes.length)
        _, longest = get_integer_range("period_ns")
        if outcomes.end_ns > longest:
            planning.refuse(
                f"the record lasts {outcomes.end_ns / 1e9:.0f} s, more than {longest / 1e9:.0f} s",
                "give the record of a shorter run, or write `by: number`",
            )
        return BernoulliTraceLossPlan(steps=outcomes.steps, period_ns=outcomes.end_ns)
