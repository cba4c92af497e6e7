# SPDX-License-Identifier: Apache-2.0
"""A sender that a token bucket limits (Zhang, Tsaoussidis: TCP-Real, 2001, section 3): how many
tokens it uses in a round-trip time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
    in_bytes,
)
from nagi_contracts.base import Whole
from nagi_contracts.errors import BadValue
from nagi_contracts.units import ByteCount, Duration, PositiveDuration


class TokenBucketPlan(ApplicationPlan):
    """A sender that a token bucket limits."""

    application: Literal["token_bucket"] = "token_bucket"
    depth_bytes: int
    token_bytes: int
    tokens: int
    interval_ns: int

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        return self.depth_bytes + self.token_bytes * self.tokens * seconds * 1e9 / self.interval_ns

    def describe(self) -> str:
        return (
            f"token bucket of {in_bytes(self.depth_bytes)}, {self.tokens} tokens of "
            f"{in_bytes(self.token_bytes)} every {Duration(self.interval_ns)}"
        )


class TokenBucket(ApplicationSettings):
    """A sender that a token bucket limits."""

    plan_type = TokenBucketPlan
    application: Literal["token_bucket"] = Field(description=APPLICATION)
    depth: ByteCount = Field(ByteCount(20_000), description="what the bucket holds")
    token: ByteCount = Field(ByteCount(1000), description="what a token is good for")
    tokens: Annotated[Whole, Field(ge=1, le=10**6)] = Field(
        20, description="that come at every interval"
    )
    interval: PositiveDuration = Field(
        PositiveDuration(30 * 10**6), description="between arrivals of tokens"
    )

    @model_validator(mode="after")
    def _possible(self) -> TokenBucket:
        if self.depth.value < self.token.value:
            what = f"a bucket of {self.depth} for tokens of {self.token}"
            raise BadValue(what, "give it a depth of a token or more", "depth")
        return self


class TokenBucketClient(End):
    """The sender."""

    application: Literal["token_bucket"] = "token_bucket"
    role: Literal["client"] = "client"
    connect_s: float | None
    tokens_consumed: Count
    tokens_lost: Count = Field(description="that found the bucket full")
    token_bytes: Count
    rtts: list[tuple[float, float, int]] = Field(
        description="one round-trip time after the other: since the connection was there, "
        "smoothed RTT by TCP_INFO (at least 1 ms), tokens consumed"
    )
    tokens_per_rtt: float | None = Field(description="mean of these; null: there are none")
    permitted_per_rtt: float | None = Field(description="tokens that came in these, mean")


class TokenBucketServer(End):
    """The receiver. Times count from its start."""

    application: Literal["token_bucket"] = "token_bucket"
    role: Literal["server"] = "server"
    received_bytes: Count
    accepted_s: float | None
    first_byte_s: float | None
    last_byte_s: float | None
