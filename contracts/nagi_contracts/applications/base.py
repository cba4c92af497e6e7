# SPDX-License-Identifier: Apache-2.0
"""What applications have in common. Their ends are nagi-traffic's (hosts/traffic)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.impairments.planning import plan_values

APPLICATION = "what makes the data"
UDP_HEADER = 8  # bytes
TCP_IS_LARGER = 12  # bytes of its header beside UDP's
Ended = Literal["complete", "stopped", "maximum duration", "given up", "connection broken"]
ENDED = (
    "complete; stopped by SIGTERM, when the traffic ended; at its maximum duration; given up by "
    "the kernel while it connected; its connection broken"
)
Count = Annotated[int, Field(ge=0)]


class ApplicationPlan(Contract, ABC):
    """An application's settings. Those of nagi-traffic have the same names without their units
    (`_bytes`, `_ns`, `_bps`)."""

    @property
    def is_udp(self) -> bool:
        """Whether it sends datagrams."""
        return False

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        """Mean of the payload that it has for the network in so many seconds; infinite: as much as
        TCP takes. `header_bytes`: those of an IP packet."""
        return math.inf

    @abstractmethod
    def describe(self) -> str:
        """For reports."""


class ApplicationSettings(Strict, ABC):
    """What an experiment says of an application."""

    plan_type: ClassVar[type[ApplicationPlan]]

    def plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        """`payload_bytes`: of a full-size segment of the flow. Raises BadValue."""
        return self.plan_type(**plan_values(self, without=["application"]))

    @property
    def is_udp(self) -> bool:
        """Whether it sends datagrams."""
        return False


class End(Contract):
    """What one end leaves. Times are seconds."""

    schema_version: Literal[1] = 1
    began_realtime_s: float = Field(description="when it was started, by its host's clock")
    ended: Ended = Field(description=ENDED)


def in_bytes(count: int) -> str:
    """A size, exactly."""
    for unit, size in (("MiB", 2**20), ("MB", 10**6), ("kB", 10**3)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"


def only(**values: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}
