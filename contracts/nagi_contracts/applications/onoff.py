# SPDX-License-Identifier: Apache-2.0
"""A source that is on and off by turns: cross traffic."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    TCP_IS_LARGER,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
)
from nagi_contracts.applications.cbr import MIN_PAYLOAD, Delays
from nagi_contracts.base import is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Bitrate, ByteCount, Duration, PositiveDuration

SHAPE = 1.5


class OnOffPlan(ApplicationPlan):
    """A source that is on and off by turns."""

    application: Literal["onoff"] = "onoff"
    rate_bps: int
    on_time_ns: int
    off_time_ns: int
    distribution: Literal["exponential", "pareto"]
    shape: float | None = Field(None, exclude_if=is_none)
    transport: Literal["tcp", "udp"]
    payload_bytes: int

    @property
    def is_udp(self) -> bool:
        return self.transport == "udp"

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        share = self.on_time_ns / (self.on_time_ns + self.off_time_ns)
        if self.transport == "udp":
            share *= self.payload_bytes / (self.payload_bytes + header_bytes)
        return self.rate_bps / 8 * share * seconds

    def describe(self) -> str:
        drawn = self.distribution if self.shape is None else f"Pareto, shape {self.shape:g}"
        return (
            f"{self.transport.upper()} at {Bitrate(self.rate_bps)} while on: {drawn}, "
            f"{Duration(self.on_time_ns)} on and {Duration(self.off_time_ns)} off in the mean"
        )


class OnOff(ApplicationSettings):
    """A source that is on and off by turns; first it is on."""

    plan_type = OnOffPlan
    application: Literal["onoff"] = Field(description=APPLICATION)
    rate: Bitrate = Field(description="while it is on: of IP packets by UDP, of payload by TCP")
    on_time: PositiveDuration = Field(description="mean time on")
    off_time: PositiveDuration = Field(description="mean time off")
    distribution: Literal["exponential", "pareto"] = Field(
        "exponential", description="of both times"
    )
    shape: float | None = Field(
        None,
        gt=1,
        le=100,
        allow_inf_nan=False,
        description=f"of pareto: smaller is heavier-tailed; {SHAPE} if not given",
    )
    transport: Literal["tcp", "udp"] = Field("udp", description="by what it sends")
    payload: ByteCount | None = Field(
        None,
        description="of a datagram, or what TCP is given at once; that of the flow if not given",
    )

    @model_validator(mode="after")
    def _possible(self) -> OnOff:
        if self.shape is not None and self.distribution != "pareto":
            raise BadValue("shape without `distribution: pareto`", "remove it", "shape")
        if self.payload is not None and self.payload.value < MIN_PAYLOAD:
            what = f"a payload of {self.payload} is too small"
            raise BadValue(what, f"give {MIN_PAYLOAD} bytes or more", "payload")
        return self

    @property
    def is_udp(self) -> bool:
        return self.transport == "udp"

    def plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        payload = self.payload.value if self.payload is not None else payload_bytes
        if self.is_udp and payload > payload_bytes + TCP_IS_LARGER:
            what = f"datagrams of {payload} bytes are larger than the flow's segments"
            raise BadValue(what, f"give the flow `payload: {payload} bytes`", "payload")
        return OnOffPlan(
            rate_bps=self.rate.value,
            on_time_ns=self.on_time.value,
            off_time_ns=self.off_time.value,
            distribution=self.distribution,
            shape=(self.shape or SHAPE) if self.distribution == "pareto" else None,
            transport=self.transport,
            payload_bytes=payload,
        )


class OnOffClient(End):
    """The source."""

    application: Literal["onoff"] = "onoff"
    role: Literal["client"] = "client"
    periods: Count = Field(description="in which it was on")
    offered_bytes: Count = Field(description="of payload, by the source")
    sent_bytes: Count = Field(description="of these, that the kernel took")
    packets_sent: Count | None = Field(description="datagrams; null: it is TCP")


class OnOffServer(End):
    """The receiver: of TCP as a transfer's, of UDP as that of datagrams."""

    application: Literal["onoff"] = "onoff"
    role: Literal["server"] = "server"
    received_bytes: Count
    accepted_s: float | None = None
    first_byte_s: float | None = None
    last_byte_s: float | None = None
    packets_received: Count | None = None
    packets_expected: Count | None = None
    packets_lost: Count | None = None
    duplicates: Count | None = None
    reordered: Count | None = None
    one_way_delay: Delays | None = None
    jitter_s: float | None = None
    jitter_max_s: float | None = None
    voice: None = None
