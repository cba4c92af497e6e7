# SPDX-License-Identifier: Apache-2.0
"""A transfer of a given size: how long it takes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
    in_bytes,
)
from nagi_contracts.base import is_none
from nagi_contracts.units import ByteCount, Duration, PositiveDuration


class TransferPlan(ApplicationPlan):
    """Data of a given size over one TCP connection."""

    application: Literal["transfer"] = "transfer"
    size_bytes: int
    max_duration_ns: int | None = Field(
        None, exclude_if=is_none, description="from connect() on; null: until the traffic ends"
    )

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        return self.size_bytes

    def describe(self) -> str:
        until = ""
        if self.max_duration_ns is not None:
            until = f", for at most {Duration(self.max_duration_ns)}"
        return f"transfer of {in_bytes(self.size_bytes)}{until}"


class Transfer(ApplicationSettings):
    """Data of a given size over one TCP connection."""

    plan_type = TransferPlan
    application: Literal["transfer"] = Field(description=APPLICATION)
    size: ByteCount = Field(description="what is sent")
    max_duration: PositiveDuration | None = Field(
        None,
        description="from the SYN on: what is not complete by then is given up; until the traffic "
        "ends if not given",
    )


class TransferClient(End):
    """The sender of a transfer."""

    application: Literal["transfer"] = "transfer"
    role: Literal["client"] = "client"
    size_bytes: Count
    connect_s: float | None = Field(description="of the handshake; null: there was none")
    completed: bool
    completion_s: float | None = Field(
        description="from connect() until the last byte was acknowledged"
    )
    duration_s: float = Field(description="the same, or until it was given up")


class TransferServer(End):
    """The receiver of a transfer. Times count from its start."""

    application: Literal["transfer"] = "transfer"
    role: Literal["server"] = "server"
    received_bytes: Count
    accepted_s: float | None
    first_byte_s: float | None
    last_byte_s: float | None
