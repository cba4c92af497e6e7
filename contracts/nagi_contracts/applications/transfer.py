# SPDX-License-Identifier: Apache-2.0
"""A transfer of a given size. It measures the completion time."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
    format_exact_size,
)
from nagi_contracts.base import is_none
from nagi_contracts.units import ByteCount, Duration, PositiveDuration


class TransferPlan(ApplicationPlan):
    """Data of a given size over one TCP connection."""

    application: Literal["transfer"] = "transfer"
    size_bytes: int
    max_duration_ns: int | None = Field(
        None,
        exclude_if=is_none,
        description="maximum time from connect(); null: until the traffic phase ends",
    )

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        return self.size_bytes

    def describe(self) -> str:
        until = ""
        if self.max_duration_ns is not None:
            until = f", for at most {Duration(self.max_duration_ns)}"
        return f"transfer of {format_exact_size(self.size_bytes)}{until}"


class Transfer(ApplicationSettings):
    """Data of a given size over one TCP connection."""

    plan_type = TransferPlan
    application: Literal["transfer"] = Field(description=APPLICATION)
    size: ByteCount = Field(description="bytes to send")
    max_duration: PositiveDuration | None = Field(
        None,
        description="time from the SYN after which an incomplete transfer is abandoned; default: "
        "until the traffic phase ends",
    )


class TransferClient(End):
    """The sender of a transfer."""

    application: Literal["transfer"] = "transfer"
    role: Literal["client"] = "client"
    size_bytes: Count
    connect_s: float | None = Field(
        description="duration of the handshake; null: it did not complete"
    )
    completed: bool
    completion_s: float | None = Field(
        description="time from connect() until the last byte was acknowledged; null: it was not "
        "acknowledged"
    )
    duration_s: float = Field(
        description="time from connect() until completion, or until the transfer was abandoned"
    )


class TransferServer(End):
    """The receiver of a transfer. Times are relative to the start of the receiver."""

    application: Literal["transfer"] = "transfer"
    role: Literal["server"] = "server"
    received_bytes: Count
    accepted_s: float | None
    first_byte_s: float | None
    last_byte_s: float | None
