# SPDX-License-Identifier: Apache-2.0
"""links.json: the emulator's own account of what it did. Written by nagi-link."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_empty, is_false, is_none
from nagi_contracts.plan import DirectionName, DirectionPlan


class PacketCounts(Contract):
    """offered = delivered + queue_overflows + aqm_drops + channel_losses + held"""

    offered: int
    delivered: int = Field(description="without copies")
    queue_overflows: int
    aqm_drops: int = Field(description="by active queue management, before the queue was full")
    channel_losses: int
    held: int = Field(description="still waiting or under way")
    marked: int = Field(description="given ECN's CE by the queue")
    corrupted: int = Field(description="delivered with a wrong checksum")
    duplicated: int = Field(description="copies delivered, beside the packets")
    reordered: int = Field(description="delivered after having been held back for others")

    @property
    def dropped_by_queue(self) -> int:
        """Because it was full, or by active queue management."""
        return self.queue_overflows + self.aqm_drops

    @property
    def accounted(self) -> int:
        """As many as were offered, unless some were lost by mistake."""
        return self.delivered + self.dropped_by_queue + self.channel_losses + self.held


class ByteCounts(Contract):
    offered: int
    delivered: int


class ServerCounts(Contract):
    """The rate server: what it sent (overhead included), and how long it was busy doing so."""

    packets: int
    bytes: int
    busy_ns: int


class Lateness(Contract):
    """How a time in nanoseconds was distributed over packets, by the emulator's own clock."""

    count: int
    median: int
    p99: int
    max: int
    histogram: list[tuple[int, int]] = Field(description="(largest value, how many) a bucket")


class Change(Contract):
    """A direction was changed while it ran."""

    at_ns: int = Field(description="since the epoch")
    config: DirectionPlan


class TransmissionCounts(Contract):
    """sent is the sum of the outcomes, and of those of which the radio has not told what became of
    them"""

    sent: int
    received: int
    not_detected: int = Field(description="no burst was found")
    header_errors: int
    payload_errors: int
    receiver_busy: int = Field(0, description="half duplex: the receiver transmitted itself")
    not_sent: int = Field(0, description="a device had it too late, or ran out of samples")
    not_received: int = Field(0, description="a device lost samples of it")
    lost: int = Field(description="drawn by a loss model, of a link that is no radio")
    undetected_errors: int = Field(description="received with other bytes than were sent")


class CoreCounts(Contract):
    """What the core of an FPGA counts beside that."""

    tick_ns: int = Field(description="packets arrive and are released at ticks")
    memory_overflows: int = Field(description="dropped for want of memory: in queue_overflows, too")
    late_releases: int = Field(description="packets released after the first tick that was due")
    max_late_ns: int = Field(description="by which a packet was released after it was due, at most")


class DirectionAccount(Contract):
    config: DirectionPlan = Field(description="at the end")
    changes: list[Change]
    packets: PacketCounts
    bytes: ByteCounts
    server: ServerCounts
    max_waiting_packets: int
    arrival_lateness_ns: Lateness = Field(
        description="by how much the model had moved past an arrival when it was seen"
    )
    transit_error_ns: Lateness = Field(
        description="between a packet being due and being handed to the kernel"
    )
    transmissions: TransmissionCounts | None = Field(
        None, exclude_if=is_none, description="of a radio, or with ARQ"
    )
    core: CoreCounts | None = Field(None, exclude_if=is_none, description="of an FPGA")
    late_events: int = Field(description="packets handed over more than 1 ms late")


class PortAccount(Contract):
    interface: str
    io: str = Field(description="af_xdp with its mode, or af_packet")
    received: int
    sent: int
    socket_drops: int = Field(description="lost before the emulator saw them")
    oversized: int = Field(
        description="discarded: longer than the MTU, so somebody merges segments"
    )
    checksum_missing: int = Field(
        description="packets whose sender left the checksum of TCP or UDP to hardware; completed"
    )
    send_failures: int
    offloads_switched_off: list[str]


class LinkAccount(Contract):
    name: str
    id: int
    a: PortAccount
    b: PortAccount
    forward: DirectionAccount = Field(description="from a to b")
    backward: DirectionAccount

    def direction(self, name: DirectionName) -> DirectionAccount:
        return self.forward if name == "forward" else self.backward


class StationPackets(Contract):
    """offered = delivered + queue_overflows + aqm_drops + given_up + held"""

    offered: int
    delivered: int = Field(description="to whom they were for; of broadcasts: sent")
    queue_overflows: int
    aqm_drops: int
    given_up: int = Field(description="after the retry limit")
    held: int
    marked: int

    @property
    def dropped_by_queue(self) -> int:
        """Because it was full, or by active queue management."""
        return self.queue_overflows + self.aqm_drops

    @property
    def accounted(self) -> int:
        """As many as were offered, unless some were lost by mistake."""
        return self.delivered + self.dropped_by_queue + self.given_up + self.held


class FrameCounts(Contract):
    """Frames of one kind by what became of them; sent is the sum of all others. See FrameRow."""

    sent: int
    received: int
    channel_errors: int
    collided: int
    hidden_terminal: int
    receiver_busy: int
    out_of_reach: int
    not_answered: int


class StationAccount(Contract):
    """A station of a medium."""

    name: str = Field(description="the node")
    port: PortAccount
    packets: StationPackets
    bytes: ByteCounts
    max_waiting_packets: int
    on_air_ns: int = Field(description="how long it was sending")
    frames: dict[Literal["rts", "cts", "data", "ack"], FrameCounts]
    arrival_lateness_ns: Lateness
    transit_error_ns: Lateness
    late_events: int


class MediumAccount(Contract):
    name: str
    id: int
    config: dict[str, Any] = Field(description="as nagi-link understood it")
    stations: list[StationAccount]

    def station(self, node: str) -> StationAccount:
        return next(station for station in self.stations if station.name == node)


class Cpu(Contract):
    user_s: float
    system_s: float
    max_resident_bytes: int


class Links(Contract):
    """links.json"""

    schema_version: Literal[1] = 1
    executable: str
    version: str
    scheduling: str = Field(description="SCHED_FIFO, or SCHED_OTHER where that was refused")
    memory_locked: bool
    cpu_pinned: int | None = Field(description="the processor it stayed on, if it did")
    virtual_time: bool = Field(
        False,
        exclude_if=is_false,
        description="time stood still while it ran, and frames were given to the kernel ahead of "
        "time: transit errors then only count those given too late",
    )
    spin_ns: int = Field(description="how long at most it waited awake for a packet's instant")
    complete: bool = Field(description="false: a first account; the emulator did not end in order")
    seed: int
    epoch_realtime_ns: int
    started_realtime_ns: int
    ended_realtime_ns: int
    cpu: Cpu
    records_lost: int = Field(description="of packets and drops, for want of disk")
    notices: list[str]
    links: list[LinkAccount]
    media: list[MediumAccount] = Field([], exclude_if=is_empty)

    def medium(self, name: str) -> MediumAccount:
        return next(medium for medium in self.media if medium.name == name)
