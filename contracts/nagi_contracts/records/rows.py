# SPDX-License-Identifier: Apache-2.0
"""Rows of the Parquet files in a run directory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract
from nagi_contracts.plan import DirectionName


class TcpInfoSample(Contract):
    """A row of tcp_info.parquet: struct tcp_info of a connection at its sender, at one instant.

    Fields that the kernel does not have are null. Times are in us, windows in packets, sizes in
    bytes, rates in bytes/s.
    """

    t_s: float = Field(description="seconds since the run began")
    flow: str
    connection: int = Field(
        0, description="number of the connection in the flow, in the order of their first samples"
    )
    ca_state: int | None = Field(description="0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss")
    rto: int | None
    unacked: int | None
    sacked: int | None
    lost: int | None
    retrans: int | None
    rtt: int | None
    rttvar: int | None
    snd_ssthresh: int | None
    snd_cwnd: int | None
    total_retrans: int | None
    pacing_rate: int | None
    bytes_acked: int | None
    delivery_rate: int | None
    min_rtt: int | None
    busy_time: int | None
    rwnd_limited: int | None
    sndbuf_limited: int | None
    bytes_sent: int | None
    bytes_retrans: int | None


class SchemeEvent(Contract):
    """A row of scheme_events.parquet: an event of a connection that one of nagi's schemes reported.

    hosts/tcp/glue/event.h explains the events. Windows and thresholds are in segments. Sequence
    numbers are those in the packets.
    """

    t_s: float = Field(description="seconds since the run began, by the sender's clock")
    flow: str
    connection: int = Field(
        0, description="number of the connection in the flow, in the order of their starts"
    )
    event: Literal[
        "started",
        "three_duplicates",
        "partial_ack",
        "timeout",
        "congestion_mark",
        "fallback",
        "sample",
    ]
    verdict: Literal["congestion", "channel", "undecided"] | None = Field(
        description="how the scheme classified the loss; null: the last verdict still holds, or "
        "the event is no loss"
    )
    una: int = Field(description="first sequence number not acknowledged")
    next: int = Field(description="first sequence number not sent yet")
    flight: int = Field(description="segments between una and next")
    cwnd_before: int
    cwnd: int
    ssthresh_before: int | None = Field(description="null: not set yet")
    ssthresh: int | None
    rtt_us: int = Field(
        description="RTT as the scheme measured it; if it does not, the kernel's smoothed RTT"
    )
    min_rtt_us: int = Field(description="0: the scheme does not measure it")
    bandwidth_bytes_per_second: int = Field(description="estimate; 0: the scheme has none")
    backlog_segments: float = Field(description="Vegas's estimate; 0: the scheme has none")


class PacketRow(Contract):
    """A row of packets.parquet: the fate of a packet in a direction of a link, or at a station.

    Instants are nanoseconds since the run began.
    """

    link: str = Field(description="link or medium")
    direction: DirectionName = Field(description="on a medium: forward")
    sender: str | None = Field(
        None, description="on a medium: the station; the column exists only if there are media"
    )
    receiver: str | None = Field(
        None,
        description="on a medium: the station to which the packet is addressed; null: a broadcast, "
        "or no station has the address",
    )
    index: int = Field(description="number of the packet on this link and direction, modulo 2^32")
    arrived_ns: int
    left_ns: int = Field(
        description="instant at which the packet was due at the receiving end, or was dropped; 0 "
        "if its fate is held"
    )
    late_ns: int = Field(
        description="time from the due instant until the packet was handed to the kernel"
    )
    bytes: int = Field(description="IP bytes")
    identity: int = Field(
        description="IPv4 identification << 16 | checksum of the payload; for TCP over IPv6, the "
        "lower half of sequence + acknowledgement replaces the identification"
    )
    flow: int = Field(description="hash of the flow, if the queue distinguishes flows; otherwise 0")
    fate: Literal["delivered", "queue overflow", "channel loss", "held", "AQM drop", "given up"]
    ecn: int = Field(description="ECN field at arrival: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE")
    marked: bool
    corrupted: bool = Field(description="whether bits were changed after transmission")
    is_copy: bool = Field(description="whether this is the duplicate of the packet with this index")


Outcome = Literal[
    "received",
    "not detected",
    "header error",
    "payload error",
    "unanswered",
    "lost",
    "receiver busy",
    "not sent",
    "not received",
]


class TransmissionRow(Contract):
    """A row of transmissions.parquet: one transmission of a packet in a direction of a link.

    Instants are nanoseconds since the run began.
    """

    link: str
    direction: DirectionName
    number: int = Field(
        description="number of the transmission on this link and direction, modulo 2^32"
    )
    index: int = Field(description="the packet's index in packets.parquet")
    attempt: int = Field(
        description="number of this transmission of the packet, from 1; above 1 only with ARQ"
    )
    start_ns: int
    end_ns: int = Field(description="end of the transmission; propagation follows")
    outcome: Outcome = Field(
        description="lost: by a loss model, on a link without a radio; receiver busy, not sent, "
        "not received: radio hardware only"
    )
    snr_db: float | None = Field(description="measured by the receiver; null: not measured")
    mode: int = Field(
        0, description="with rate adaptation: index of the radio's mode, from 0; otherwise 0"
    )


FrameKind = Literal["RTS", "CTS", "DATA", "ACK"]
FrameOutcome = Literal[
    "received",
    "channel error",
    "collided",
    "hidden terminal",
    "receiver busy",
    "out of reach",
    "not answered",
]


class FrameRow(Contract):
    """A row of frames.parquet: a frame on a medium.

    Instants are nanoseconds since the run began.
    """

    medium: str
    sender: str
    receiver: str | None = Field(
        description="station to which the frame is addressed; null: a broadcast, or no station has "
        "the address"
    )
    kind: FrameKind
    number: int = Field(description="number of the frame among its sender's frames, modulo 2^32")
    index: int = Field(
        description="index in packets.parquet of the packet for which the frame was sent; for CTS "
        "and ACK, of the packet of the frame's receiver"
    )
    attempt: int = Field(description="number of the attempt to send the packet, from 1")
    start_ns: int
    end_ns: int
    outcome: FrameOutcome = Field(
        description="outcome at the receiver. channel error: by the loss model; collided: with a "
        "frame of a station that the sender hears; hidden terminal: with a frame of a station that "
        "the sender does not hear; not answered: an RTS to a station whose NAV was set"
    )
