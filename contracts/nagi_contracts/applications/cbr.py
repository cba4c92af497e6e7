# SPDX-License-Identifier: Apache-2.0
"""UDP at a constant rate, which measures loss, one-way delay, jitter, and the MOS of a call."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.applications.base import (
    APPLICATION,
    TCP_MINUS_UDP_HEADER,
    UDP_HEADER,
    ApplicationPlan,
    ApplicationSettings,
    Count,
    End,
    format_exact_size,
)
from nagi_contracts.base import Contract, is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Bitrate, ByteCount, Duration, PositiveDuration

# G.711: 160 bytes of voice and RTP's header, 50 times per second; 80 kb/s of IPv4 packets.
VOICE_PAYLOAD, VOICE_PACKETS_PER_S = 172, 50
PLAYOUT_NS = 60 * 10**6
# A train of packets takes 1/26 of the time of a search, because RateSearch (hosts/traffic) sends at
# most 18 trains, and needs 30 % of the time for the answers.
SEARCH_TRAINS = 26
MIN_PAYLOAD = 20  # bytes of a datagram for its number and its time of sending


class CbrPlan(ApplicationPlan):
    """Datagrams at a constant rate."""

    application: Literal["cbr"] = "cbr"
    rate_bps: int = Field(description="rate of IP packets, headers included")
    payload_bytes: int = Field(description="payload of a datagram")
    search_ns: int | None = Field(
        None,
        exclude_if=is_none,
        description="maximum duration of a search, before the flow's data is sent, for the largest "
        "rate up to `rate_bps` that the path can carry; null: no search",
    )
    codec: Literal["g711"] | None = Field(
        None, exclude_if=is_none, description="for a voice call: its codec"
    )
    playout_ns: int | None = Field(
        None, exclude_if=is_none, description="for a voice call: length of the playout buffer"
    )

    @property
    def is_udp(self) -> bool:
        return True

    def offered_bytes(self, seconds: float, header_bytes: int) -> float:
        payload_share = self.payload_bytes / (self.payload_bytes + header_bytes)
        return self.rate_bps / 8 * payload_share * seconds

    def describe(self) -> str:
        if self.codec is not None and self.playout_ns is not None:
            return f"voice call, G.711, played {Duration(self.playout_ns)} late"
        rate = f"{Bitrate(self.rate_bps)}"
        if self.search_ns is not None:
            rate = f"the largest rate up to {rate} that the path carries,"
        return f"UDP at {rate} in datagrams of {format_exact_size(self.payload_bytes)}"


class Cbr(ApplicationSettings):
    """Datagrams at a constant rate, or a voice call."""

    plan_type = CbrPlan
    application: Literal["cbr"] = Field(description=APPLICATION)
    rate: Bitrate | None = Field(None, description="rate of IP packets, headers included")
    payload: ByteCount | None = Field(
        None, description="payload of a datagram; default: the flow's payload"
    )
    search: PositiveDuration | None = Field(
        None,
        description="maximum duration of a search, before the flow's data is sent, for the largest "
        "rate up to `rate` that the path can carry; default: no search",
    )
    codec: Literal["g711"] | None = Field(
        None,
        description="a voice call, in place of `rate` and `payload`: G.711 sends 160 bytes and "
        "RTP's header every 20 ms",
    )
    playout: Duration | None = Field(
        None,
        description="for a voice call: length of the playout buffer, by which packets are played "
        "later than packets with the smallest delay arrive; default: 60 ms",
    )

    @model_validator(mode="after")
    def _check_codec(self) -> Cbr:
        if self.codec is None:
            if self.rate is None:
                raise BadValue("no rate", "add `rate: ...`, or `codec: g711` for a voice call")
            if self.playout is not None:
                raise BadValue("playout needs a codec", "remove it", "playout")
            if self.payload is not None and self.payload.value < MIN_PAYLOAD:
                message = f"a payload of {self.payload} is too small"
                raise BadValue(message, f"give {MIN_PAYLOAD} bytes or more", "payload")
        else:
            for key in ("rate", "payload", "search"):
                if getattr(self, key) is not None:
                    raise BadValue(f"the codec already defines {key}", "remove it", key)
        return self

    @property
    def is_udp(self) -> bool:
        return True

    def to_plan(self, payload_bytes: int, ip_header_bytes: int) -> CbrPlan:
        """Return the plan; for a voice call, payload and rate are those of the codec.

        Raises:
            BadValue: The datagrams are larger than the flow's packets.
        """
        payload = self.payload.value if self.payload is not None else payload_bytes
        if self.codec is not None:
            payload = VOICE_PAYLOAD
        # Hosts send no IP packets larger than a full-size TCP segment, which has larger headers.
        if payload > payload_bytes + TCP_MINUS_UDP_HEADER:
            message = f"datagrams of {payload} bytes are larger than the flow's segments"
            raise BadValue(message, f"give the flow `payload: {payload} bytes`", "payload")
        if self.codec is not None:
            playout = self.playout.value if self.playout is not None else PLAYOUT_NS
            return CbrPlan(
                rate_bps=8 * VOICE_PACKETS_PER_S * (payload + UDP_HEADER + ip_header_bytes),
                payload_bytes=payload,
                codec=self.codec,
                playout_ns=playout,
            )
        assert self.rate is not None
        search = None if self.search is None else self.search.value
        return CbrPlan(rate_bps=self.rate.value, payload_bytes=payload, search_ns=search)


class CbrClient(End):
    """The sender of datagrams."""

    application: Literal["cbr"] = "cbr"
    role: Literal["client"] = "client"
    payload_bytes: Count
    rate_bps: Count
    probes_bps: list[tuple[float, float]] | None = Field(
        None,
        exclude_if=is_none,
        description="for a search: (rate tried, rate received) in bit/s; null: no search",
    )
    packets_sent: Count = Field(description="datagrams sent, without the datagrams of a search")


class Delays(Contract):
    """One-way delays by the clocks of both hosts. They include the offset between the clocks."""

    min_s: float
    mean_s: float
    median_s: float
    p95_s: float
    p99_s: float
    max_s: float


class Voice(Contract):
    """The quality of a voice call, computed by the E-model (ITU-T G.107)."""

    codec: Literal["G.711"]
    mouth_to_ear_ms: float = Field(
        description="smallest one-way delay + playout buffer + 20 ms of voice in a packet"
    )
    unplayed_share: float = Field(description="share of packets lost, or too late to be played")
    burst_ratio: float = Field(
        description="burst ratio of the packets not played (G.107, section 7.5)"
    )
    r_factor: float
    mos: float


class CbrServer(End):
    """The receiver of datagrams."""

    application: Literal["cbr"] = "cbr"
    role: Literal["server"] = "server"
    received_bytes: Count = Field(description="payload received, duplicates included")
    packets_received: Count = Field(description="datagrams received, without duplicates")
    packets_expected: Count = Field(
        description="number of datagrams up to the highest number received"
    )
    packets_lost: Count = Field(description="packets expected but not received")
    duplicates: Count
    reordered: Count = Field(description="datagrams received after one with a higher number")
    one_way_delay: Delays | None = Field(description="null: no datagram was received")
    jitter_s: float | None = Field(
        description="interarrival jitter after the last datagram (RFC 3550)"
    )
    jitter_max_s: float | None
    voice: Voice | None = Field(description="for a voice call: its quality")
