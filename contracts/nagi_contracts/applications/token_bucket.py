# SPDX-License-Identifier: Apache-2.0
"""A sender limited by a token bucket. It measures how many tokens it uses per round-trip time.

Source: Zhang, Tsaoussidis: TCP-Real, 2001, section 3.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
    format_exact_size,
)
from nagi_contracts.base import Whole
from nagi_contracts.errors import BadValue
from nagi_contracts.units import ByteCount, Duration, PositiveDuration


class TokenBucketPlan(ApplicationPlan):
    """A sender limited by a token bucket."""

    application: Literal["token_bucket"] = "token_bucket"
    depth_bytes: int
    token_bytes: int
    tokens: int
    interval_ns: int

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        return self.depth_bytes + self.token_bytes * self.tokens * seconds * 1e9 / self.interval_ns

    def describe(self) -> str:
        return (
            f"token bucket of {format_exact_size(self.depth_bytes)}, {self.tokens} tokens of "
            f"{format_exact_size(self.token_bytes)} every {Duration(self.interval_ns)}"
        )


class TokenBucket(ApplicationSettings):
    """A sender limited by a token bucket."""

    plan_type = TokenBucketPlan
    application: Literal["token_bucket"] = Field(description=APPLICATION)
    depth: ByteCount = Field(ByteCount(20_000), description="capacity of the bucket")
    token: ByteCount = Field(ByteCount(1000), description="bytes that one token permits to send")
    tokens: Annotated[Whole, Field(ge=1, le=10**6)] = Field(
        20, description="number of tokens that arrive at every interval"
    )
    interval: PositiveDuration = Field(
        PositiveDuration(30 * 10**6), description="time between arrivals of tokens"
    )

    @model_validator(mode="after")
    def _check_depth(self) -> TokenBucket:
        if self.depth.value < self.token.value:
            message = f"a bucket of {self.depth} cannot hold a token of {self.token}"
            raise BadValue(message, "give a depth of one token or more", "depth")
        return self


class TokenBucketClient(End):
    """The sender, which the token bucket limits."""

    application: Literal["token_bucket"] = "token_bucket"
    role: Literal["client"] = "client"
    connect_s: float | None
    tokens_consumed: Count
    tokens_lost: Count = Field(description="tokens that arrived while the bucket was full")
    token_bytes: Count
    rtts: list[tuple[float, float, int]] = Field(
        description="one entry per round-trip time: (instant, relative to the connection's start; "
        "smoothed RTT by TCP_INFO, at least 1 ms; tokens consumed)"
    )
    tokens_per_rtt: float | None = Field(
        description="mean number of tokens consumed per RTT; null: no RTT was measured"
    )
    permitted_per_rtt: float | None = Field(
        description="mean number of tokens that arrived per RTT"
    )


class TokenBucketServer(End):
    """The receiver. Times are relative to the start of the receiver."""

    application: Literal["token_bucket"] = "token_bucket"
    role: Literal["server"] = "server"
    received_bytes: Count
    accepted_s: float | None
    first_byte_s: float | None
    last_byte_s: float | None
