# SPDX-License-Identifier: Apache-2.0
"""The base classes of all queue disciplines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Flag, Strict
from nagi_contracts.impairments.planning import Planning, get_full_size, plan_values
from nagi_contracts.units import PacketCount, QueueSize

DISCIPLINE = "queue discipline: decides which packet is sent next and which are dropped"


class QueueSettings(Strict, ABC):
    """A queue discipline in an experiment file."""

    limit: QueueSize
    plan_type: ClassVar[type[QueuePlanBase]]

    @property
    def marks(self) -> bool:
        """True if the discipline marks packets of ECN-capable flows."""
        return False

    def to_plan(self, planning: Planning) -> QueuePlanBase:
        """Return the plan of the queue.

        Raises:
            InputError: The settings do not fit the link.
        """
        packets, size = planning.resolve_size(self.limit)
        values = plan_values(self, without=["limit"])
        extra = self.get_extra_values(planning)
        return self.plan_type(packets=packets, bytes=size, **extra, **values)

    def get_extra_values(self, planning: Planning) -> dict[str, int]:
        """Return name -> value, for values of the plan that are not settings of the discipline."""
        return {}


Style = Literal["linux", "rfc"]


class AqmSettings(QueueSettings, ABC):
    """Settings of active queue management, which drops packets before the queue is full."""

    style: Style = Field(
        "linux",
        description="the behaviour to follow where Linux 7.2 and the RFC's pseudocode differ",
    )

    def get_extra_values(self, planning: Planning) -> dict[str, int]:
        return {"full_packet_bytes": get_full_size(planning)}


class EcnSettings(AqmSettings, ABC):
    """Settings of a discipline in which marking is optional."""

    ecn: Flag = Field(
        False, description="whether ECN-capable packets are marked instead of dropped"
    )

    @property
    def marks(self) -> bool:
        return self.ecn


class QueuePlanBase(Contract, ABC):
    """A queue discipline in a plan. Its limit is either `packets` or `bytes`."""

    packets: int | None = None
    bytes: int | None = None
    is_for_switches: ClassVar[bool] = False  # whether switches support the discipline

    @abstractmethod
    def describe(self) -> str:
        """Name the discipline for reports."""


class AqmPlanBase(QueuePlanBase, ABC):
    """Active queue management in a plan."""

    style: Style = Field("rfc", description="absent in plans of earlier versions")
    full_packet_bytes: int
    title: ClassVar[str]

    def describe(self) -> str:
        return self.title if self.style == "linux" else f"{self.title} of the RFC"


def make_packet_limit(count: int) -> QueueSize:
    """Return the capacity of a queue for `count` packets."""
    return QueueSize(PacketCount(count))
