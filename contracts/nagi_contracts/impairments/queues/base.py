# SPDX-License-Identifier: Apache-2.0
"""What queue disciplines have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import PacketCount, QueueSize

DISCIPLINE = "which packet is sent next, and which are dropped"


class QueueSettings(Strict, ABC):
    @property
    def marks(self) -> bool:
        """Whether it marks packets that understand ECN."""
        return False

    @abstractmethod
    def plan(self, planning: Planning) -> QueuePlanBase:
        """Raises InputError."""


class EcnSettings(QueueSettings, ABC):
    """Of a discipline that marks where that is asked for."""

    ecn: Flag = Field(False, description="mark packets that understand it, instead of dropping")

    @property
    def marks(self) -> bool:
        return self.ecn


class QueuePlanBase(Contract, ABC):
    """How much may wait is one of the two."""

    packets: int | None = None
    bytes: int | None = None
    is_for_switches: ClassVar[bool] = False  # whether a switch can impose it

    @abstractmethod
    def describe(self) -> str:
        """For reports."""


def some_packets(count: int) -> QueueSize:
    return QueueSize(PacketCount(count))
