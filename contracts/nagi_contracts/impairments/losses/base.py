# SPDX-License-Identifier: Apache-2.0
"""What losses on the channel have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.impairments.planning import Planning

Place = Literal["ingress", "egress"]
MODEL = "how packets are lost on the channel"


class LossSettings(Strict, ABC):
    at: Place = Field(
        "egress",
        description="where packets are lost: before the queue (ingress), or after transmission "
        "(egress)",
    )

    @abstractmethod
    def plan(self, planning: Planning) -> LossPlanBase:
        """Raises InputError."""


class LossPlanBase(Contract, ABC):
    at: Place = "egress"
    is_for_switches: ClassVar[bool] = False  # whether a switch can impose it

    def loss_probability(self, size: int, overhead: int) -> float | None:
        """Of losing a packet of so many IP bytes, with so many bytes of overhead; None: losses
        depend on each other, or none are sampled."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """For reports."""


def percent(share: float) -> str:
    return f"{share * 100:g} %"
