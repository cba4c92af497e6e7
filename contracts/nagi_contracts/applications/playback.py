# SPDX-License-Identifier: Apache-2.0
"""A stream that is played as it comes (Zhang, Tsaoussidis: TCP-Real, 2001, section 3): how often
the player finds what it is to play next."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
)
from nagi_contracts.base import Flag, is_false, is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Bitrate, ByteCount, Duration, PositiveDuration

MAX_CHUNK = 2**20  # bytes; the receiver's kernel has to hold it


class PlaybackPlan(ApplicationPlan):
    """A stream that is played as it comes."""

    application: Literal["playback"] = "playback"
    rate_bps: int
    interval_ns: int
    size_bytes: int | None = Field(
        None, exclude_if=is_none, description="null: as long as the traffic"
    )
    wait_ns: int | None = Field(None, exclude_if=is_none, description="null: an interval")
    ahead: bool = Field(False, exclude_if=is_false)

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        size = math.inf if self.size_bytes is None else self.size_bytes
        return size if self.ahead else min(size, self.rate_bps / 8 * seconds)

    def describe(self) -> str:
        how = ", sent ahead" if self.ahead else ""
        return f"playback at {Bitrate(self.rate_bps)}, read every {Duration(self.interval_ns)}{how}"


class Playback(ApplicationSettings):
    """A stream that is played as it comes."""

    plan_type = PlaybackPlan
    application: Literal["playback"] = Field(description=APPLICATION)
    rate: Bitrate = Field(description="of the stream, payload only")
    interval: PositiveDuration = Field(
        description="between attempts to read what is played until the next"
    )
    size: ByteCount | None = Field(
        None, description="of the whole stream; as long as the traffic if not given"
    )
    wait: Duration | None = Field(
        None, description="from the first byte to the first attempt; an interval if not given"
    )
    ahead: Flag = Field(
        False, description="whether it is sent as fast as TCP takes it, not at `rate`"
    )

    @model_validator(mode="after")
    def _possible(self) -> Playback:
        chunk = self.rate.value * self.interval.value / 8e9
        if not 1 <= chunk <= MAX_CHUNK:
            what = f"{chunk:g} bytes are read at each attempt, rate x interval"
            raise BadValue(what, f"give 1 to {MAX_CHUNK} bytes", "interval")
        return self


class PlaybackClient(End):
    """The source of a stream."""

    application: Literal["playback"] = "playback"
    role: Literal["client"] = "client"
    size_bytes: Count | None
    connect_s: float | None
    sent_bytes: Count = Field(description="that its kernel took")


class PlaybackServer(End):
    """The player of a stream."""

    application: Literal["playback"] = "playback"
    role: Literal["server"] = "server"
    chunk_bytes: Count
    interval_s: float
    first_byte_s: float | None = Field(description="from its start; null: none came")
    attempts: Count
    successes: Count
    success_share: float | None = Field(description="successes / attempts")
    read_bytes: Count
