# SPDX-License-Identifier: Apache-2.0
"""The base classes of all applications, which nagi-traffic implements (hosts/traffic)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import Contract, Strict
from nagi_contracts.impairments.planning import plan_values

APPLICATION = "application that makes the data"
UDP_HEADER = 8  # bytes
TCP_MINUS_UDP_HEADER = 12  # bytes by which TCP's header is larger than UDP's
Ended = Literal["complete", "stopped", "maximum duration", "given up", "connection broken"]
ENDED = (
    "how the program ended. complete: all data was transferred; stopped: by SIGTERM at the end of "
    "the traffic phase; maximum duration: it was reached; given up: the kernel could not connect; "
    "connection broken: by an error"
)
Count = Annotated[int, Field(ge=0)]


class ApplicationPlan(Contract, ABC):
    """The settings of an application in a plan.

    nagi-traffic has options of the same names, without the units (`_bytes`, `_ns`, `_bps`).
    """

    @property
    def is_udp(self) -> bool:
        """True if the application sends datagrams."""
        return False

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        """Return the mean payload in bytes that the application offers to the network.

        Args:
            seconds: The time for which the application runs.
            header_bytes: Length of all headers of an IP packet.

        Returns:
            The payload; infinite if the application sends as much as TCP accepts.
        """
        return math.inf

    @abstractmethod
    def describe(self) -> str:
        """Describe the application in a phrase for reports."""


class ApplicationSettings(Strict, ABC):
    """The settings of an application in an experiment file."""

    plan_type: ClassVar[type[ApplicationPlan]]

    def to_plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        """Return the application's plan, an object of `plan_type`.

        Args:
            payload_bytes: Payload of a full-size TCP segment of the flow.
            ip_header_bytes: Length of the IP header.

        Raises:
            BadValue: The settings do not fit the flow.
        """
        return self.plan_type(**plan_values(self, without=["application"]))

    @property
    def is_udp(self) -> bool:
        """True if the application sends datagrams."""
        return False


class End(Contract):
    """The record that the client or the server of an application writes. Times are in seconds."""

    schema_version: Literal[1] = 1
    began_realtime_s: float = Field(
        description="start of the program, in seconds since the epoch by the clock of its host"
    )
    ended: Ended = Field(description=ENDED)


def format_exact_size(count: int) -> str:
    """Format a number of bytes without rounding.

    The unit is the first of MiB, MB and kB of which `count` is a multiple, or else bytes.
    """
    for unit, size in (("MiB", 2**20), ("MB", 10**6), ("kB", 10**3)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"
