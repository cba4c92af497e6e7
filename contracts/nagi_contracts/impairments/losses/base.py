# SPDX-License-Identifier: Apache-2.0
"""The base classes of all loss models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.impairments.planning import Planning

LossPoint = Literal["ingress", "egress"]
MODEL = "loss model of the channel"


class LossSettings(Strict, ABC):
    """A loss model in an experiment file."""

    at: LossPoint = Field(
        "egress",
        description="point at which packets are lost: before the queue (ingress), or after "
        "transmission (egress)",
    )

    @abstractmethod
    def to_plan(self, planning: Planning) -> LossPlanBase:
        """Return the plan of the losses.

        Raises:
            InputError: The settings do not fit the link.
        """


class LossPlanBase(Contract, ABC):
    """A loss model in a plan."""

    at: LossPoint = "egress"
    is_for_switches: ClassVar[bool] = False  # whether switches support the model

    def loss_probability(self, size: int, overhead: int) -> float | None:
        """Return the probability that the channel loses a packet.

        Args:
            size: IP bytes of the packet.
            overhead: Bytes that the link adds to the packet.

        Returns:
            The probability, or None if it differs from packet to packet of this size, or if losses
            are not sampled.
        """
        return None

    @abstractmethod
    def describe(self) -> str:
        """Describe the losses in a phrase for reports."""


def format_percent(share: float) -> str:
    """Format a share from 0 to 1 as a percentage."""
    return f"{share * 100:g} %"
