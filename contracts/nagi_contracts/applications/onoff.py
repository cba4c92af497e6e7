# SPDX-License-Identifier: Apache-2.0
"""A source of cross traffic that is alternately on and off."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    TCP_MINUS_UDP_HEADER,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
)
from nagi_contracts.applications.cbr import MIN_PAYLOAD, Delays
from nagi_contracts.base import is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Bitrate, ByteCount, Duration, PositiveDuration

SHAPE = 1.5  # default shape of the Pareto distribution


class OnOffPlan(ApplicationPlan):
    """A source that is alternately on and off."""

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
        distribution = self.distribution if self.shape is None else f"Pareto, shape {self.shape:g}"
        return (
            f"{self.transport.upper()} at {Bitrate(self.rate_bps)} while on: {distribution}, "
            f"{Duration(self.on_time_ns)} on and {Duration(self.off_time_ns)} off in the mean"
        )


class OnOff(ApplicationSettings):
    """A source that is alternately on and off. It is on at the start."""

    plan_type = OnOffPlan
    application: Literal["onoff"] = Field(description=APPLICATION)
    rate: Bitrate = Field(description="rate while on: of IP packets for UDP, of payload for TCP")
    on_time: PositiveDuration = Field(description="mean time on")
    off_time: PositiveDuration = Field(description="mean time off")
    distribution: Literal["exponential", "pareto"] = Field(
        "exponential", description="distribution of both times"
    )
    shape: float | None = Field(
        None,
        gt=1,
        le=100,
        allow_inf_nan=False,
        description="for pareto: shape of the distribution, smaller is heavier-tailed; default: "
        f"{SHAPE}",
    )
    transport: Literal["tcp", "udp"] = Field("udp", description="transport protocol")
    payload: ByteCount | None = Field(
        None,
        description="payload of a datagram, or of one write to TCP; default: the flow's payload",
    )

    @model_validator(mode="after")
    def _check_values(self) -> OnOff:
        if self.shape is not None and self.distribution != "pareto":
            raise BadValue("shape needs `distribution: pareto`", "remove it", "shape")
        if self.payload is not None and self.payload.value < MIN_PAYLOAD:
            message = f"a payload of {self.payload} is too small"
            raise BadValue(message, f"give {MIN_PAYLOAD} bytes or more", "payload")
        return self

    @property
    def is_udp(self) -> bool:
        return self.transport == "udp"

    def to_plan(self, payload_bytes: int, ip_header_bytes: int) -> Any:
        payload = self.payload.value if self.payload is not None else payload_bytes
        if self.is_udp and payload > payload_bytes + TCP_MINUS_UDP_HEADER:
            message = f"datagrams of {payload} bytes are larger than the flow's segments"
            raise BadValue(message, f"give the flow `payload: {payload} bytes`", "payload")
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
    periods: Count = Field(description="number of on periods")
    offered_bytes: Count = Field(description="payload that the source offered")
    sent_bytes: Count = Field(description="payload that the kernel accepted")
    packets_sent: Count | None = Field(description="datagrams sent; null for TCP")


class OnOffServer(End):
    """The receiver. For TCP it has the fields of TransferServer, for UDP those of CbrServer."""

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
