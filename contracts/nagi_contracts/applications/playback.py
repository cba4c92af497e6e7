# SPDX-License-Identifier: Apache-2.0
"""A stream that is played while it is received. It measures how often data arrived in time.

Source: Zhang, Tsaoussidis: TCP-Real, 2001, section 3.
"""

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

MAX_CHUNK = 2**20  # bytes; the receive buffer of the kernel must hold a chunk


class PlaybackPlan(ApplicationPlan):
    """A stream that is played while it is received."""

    application: Literal["playback"] = "playback"
    rate_bps: int
    interval_ns: int
    size_bytes: int | None = Field(
        None, exclude_if=is_none, description="null: until the traffic phase ends"
    )
    wait_ns: int | None = Field(None, exclude_if=is_none, description="null: one interval")
    ahead: bool = Field(False, exclude_if=is_false)

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        size = math.inf if self.size_bytes is None else self.size_bytes
        return size if self.ahead else min(size, self.rate_bps / 8 * seconds)

    def describe(self) -> str:
        mode = ", sent ahead" if self.ahead else ""
        rate, interval = Bitrate(self.rate_bps), Duration(self.interval_ns)
        return f"playback at {rate}, read every {interval}{mode}"


class Playback(ApplicationSettings):
    """A stream that is played while it is received."""

    plan_type = PlaybackPlan
    application: Literal["playback"] = Field(description=APPLICATION)
    rate: Bitrate = Field(description="payload rate of the stream")
    interval: PositiveDuration = Field(
        description="time between attempts to read the data of the next interval"
    )
    size: ByteCount | None = Field(
        None, description="size of the whole stream; default: until the traffic phase ends"
    )
    wait: Duration | None = Field(
        None, description="time from the first byte to the first attempt; default: one interval"
    )
    ahead: Flag = Field(
        False, description="whether the stream is sent as fast as TCP accepts it, not at `rate`"
    )

    @model_validator(mode="after")
    def _check_chunk(self) -> Playback:
        chunk = self.rate.value * self.interval.value / 8e9
        if not 1 <= chunk <= MAX_CHUNK:
            message = f"{chunk:g} bytes are read at each attempt (rate x interval)"
            raise BadValue(message, f"give 1 to {MAX_CHUNK} bytes", "interval")
        return self


class PlaybackClient(End):
    """The source of a stream."""

    application: Literal["playback"] = "playback"
    role: Literal["client"] = "client"
    size_bytes: Count | None
    connect_s: float | None
    sent_bytes: Count = Field(description="payload that the kernel accepted")


class PlaybackServer(End):
    """The player of a stream."""

    application: Literal["playback"] = "playback"
    role: Literal["server"] = "server"
    chunk_bytes: Count
    interval_s: float
    first_byte_s: float | None = Field(
        description="time from the player's start to the first byte; null: no byte was received"
    )
    attempts: Count
    successes: Count
    success_share: float | None = Field(description="successes / attempts")
    read_bytes: Count
