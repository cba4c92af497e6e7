# SPDX-License-Identifier: Apache-2.0
"""What queue disciplines have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict
from nagi_contracts.impairments.planning import Planning, full_size, plan_values
from nagi_contracts.units import PacketCount, QueueSize

DISCIPLINE = "which packet is sent next, and which are dropped"


class QueueSettings(Strict, ABC):
    limit: QueueSize
    plan_type: ClassVar[type[QueuePlanBase]]

    @property
    def marks(self) -> bool:
        """Whether it marks packets that understand ECN."""
        return False

    def plan(self, planning: Planning) -> QueuePlanBase:
        """Raises InputError."""
        packets, size = planning.limit(self.limit)
        values = plan_values(self, without=["limit"])
        return self.plan_type(packets=packets, bytes=size, **self.further(planning), **values)

    def further(self, planning: Planning) -> dict[str, int]:
        """Values of the plan that are no settings of the discipline."""
        return {}


Style = Literal["linux", "rfc"]


class AqmSettings(QueueSettings, ABC):
    """Settings of active queue management, which drops packets before the queue is full."""

    style: Style = Field(
        "linux",
        description="whom it follows where Linux 7.2 and the RFC's pseudocode differ",
    )

    def further(self, planning: Planning) -> dict[str, int]:
        return {"full_packet_bytes": full_size(planning)}


class EcnSettings(AqmSettings, ABC):
    """Of a discipline that marks where that is asked for."""

    ecn: Flag = Field(False, description="mark packets that understand it, instead of dropping")

    @property
    def marks(self) -> bool:
        return self.ecn


class QueuePlanBase(Contract, ABC):
    """A queue discipline of a plan. How much may wait is one of the two."""

    packets: int | None = None
    bytes: int | None = None
    is_for_switches: ClassVar[bool] = False  # whether a switch can impose it

    @abstractmethod
    def describe(self) -> str:
        """For reports."""


class AqmPlanBase(QueuePlanBase, ABC):
    """Active queue management of a plan."""

    style: Style = Field("rfc", description="plans of earlier versions have none")
    full_packet_bytes: int
    title: ClassVar[str]

    def describe(self) -> str:
        return self.title if self.style == "linux" else f"{self.title} of the RFC"


def some_packets(count: int) -> QueueSize:
    return QueueSize(PacketCount(count))
