# SPDX-License-Identifier: Apache-2.0
"""links.json: the counts and settings of links and media, written by nagi-link."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_empty, is_false, is_none
from nagi_contracts.plan import DirectionName, DirectionPlan


class PacketCounts(Contract):
    """The numbers of packets of one direction of a link, by fate.

    offered = delivered + queue_overflows + aqm_drops + channel_losses + held
    """

    offered: int = Field(description="packets that arrived at the link")
    delivered: int = Field(description="packets delivered, without copies")
    queue_overflows: int
    aqm_drops: int = Field(
        description="packets that active queue management dropped before the queue was full"
    )
    channel_losses: int
    held: int = Field(description="packets still in the queue or in propagation at the end")
    marked: int = Field(description="packets that the queue marked CE (ECN)")
    corrupted: int = Field(description="packets delivered with a wrong checksum")
    duplicated: int = Field(description="copies delivered in addition to the packets")
    reordered: int = Field(
        description="packets delivered with an extra delay, so that later packets overtook them"
    )

    @property
    def dropped_by_queue(self) -> int:
        """Packets dropped by a full queue or by active queue management."""
        return self.queue_overflows + self.aqm_drops

    @property
    def accounted(self) -> int:
        """The sum over all fates; less than `offered` if the emulator lost packets unnoticed."""
        return self.delivered + self.dropped_by_queue + self.channel_losses + self.held


class ByteCounts(Contract):
    """The bytes of packets offered to a link or medium, and of packets delivered."""

    offered: int
    delivered: int


class ServerCounts(Contract):
    """The packets and bytes (with overhead) that the link transmitted, and its busy time."""

    packets: int
    bytes: int
    busy_ns: int


class Lateness(Contract):
    """The distribution, over all packets, of the time by which they were late.

    Times are in nanoseconds of the emulator's clock.
    """

    count: int
    median: int
    p99: int
    max: int
    histogram: list[tuple[int, int]] = Field(
        description="(largest value, number of packets) of each bucket"
    )


class Change(Contract):
    """A change of a direction's settings during the run."""

    at_ns: int = Field(description="instant in ns since the epoch")
    config: DirectionPlan


class TransmissionCounts(Contract):
    """The numbers of transmissions by outcome.

    `sent` is the sum of all outcomes and of the transmissions whose outcome the radio has not
    reported.
    """

    sent: int
    received: int
    not_detected: int = Field(description="the receiver found no burst")
    header_errors: int
    payload_errors: int
    receiver_busy: int = Field(0, description="half duplex: the receiver itself was transmitting")
    not_sent: int = Field(
        0, description="the device got the burst too late, or ran out of its samples"
    )
    not_received: int = Field(0, description="the device lost samples of the burst")
    lost: int = Field(description="lost by a loss model, on a link without a radio")
    undetected_errors: int = Field(description="received with other bytes than sent")


class CoreCounts(Contract):
    """The counts of an FPGA's core that other emulators do not have."""

    tick_ns: int = Field(
        description="length of a tick; packets arrive and are released at ticks only"
    )
    memory_overflows: int = Field(
        description="packets dropped because memory was full; queue_overflows includes them"
    )
    late_releases: int = Field(description="packets released later than at their due tick")
    max_late_ns: int = Field(description="longest time from a packet's due instant to its release")


class DirectionAccount(Contract):
    """The counts of one direction of a link."""

    config: DirectionPlan = Field(description="the direction's settings at the end")
    changes: list[Change]
    packets: PacketCounts
    bytes: ByteCounts
    server: ServerCounts
    max_waiting_packets: int
    arrival_lateness_ns: Lateness = Field(
        description="time by which the model had advanced beyond a packet's arrival when it read "
        "the packet"
    )
    transit_error_ns: Lateness = Field(
        description="time from a packet's due instant until it was handed to the kernel"
    )
    transmissions: TransmissionCounts | None = Field(
        None, exclude_if=is_none, description="null if the link has neither a radio nor ARQ"
    )
    core: CoreCounts | None = Field(
        None, exclude_if=is_none, description="null if no FPGA emulates the link"
    )
    late_events: int = Field(
        description="packets handed to the kernel more than 1 ms after their due instant"
    )


class PortAccount(Contract):
    """The counts of one interface of the emulator."""

    interface: str
    io: str = Field(description="af_xdp with its mode, or af_packet")
    received: int
    sent: int
    socket_drops: int = Field(description="packets lost before the emulator saw them")
    oversized: int = Field(
        description="packets discarded because they exceed the MTU, usually because an offload "
        "merges segments"
    )
    checksum_missing: int = Field(
        description="packets whose sender left the checksum of TCP or UDP to hardware; the "
        "emulator computed the checksum"
    )
    send_failures: int
    offloads_switched_off: list[str]


class LinkAccount(Contract):
    """The counts of one link, whose ends are `a` and `b`."""

    name: str
    id: int
    a: PortAccount
    b: PortAccount
    forward: DirectionAccount = Field(description="from a to b")
    backward: DirectionAccount

    def direction(self, name: DirectionName) -> DirectionAccount:
        return self.forward if name == "forward" else self.backward


class StationPackets(Contract):
    """The numbers of packets at one station of a medium, by fate.

    offered = delivered + queue_overflows + aqm_drops + given_up + held
    """

    offered: int = Field(description="packets that arrived at the station")
    delivered: int = Field(description="packets delivered to their receiver, and broadcasts sent")
    queue_overflows: int
    aqm_drops: int
    given_up: int = Field(description="packets given up at the retry limit")
    held: int
    marked: int

    @property
    def dropped_by_queue(self) -> int:
        """Packets dropped by a full queue or by active queue management."""
        return self.queue_overflows + self.aqm_drops

    @property
    def accounted(self) -> int:
        """The sum over all fates; less than `offered` if the emulator lost packets unnoticed."""
        return self.delivered + self.dropped_by_queue + self.given_up + self.held


class FrameCounts(Contract):
    """The numbers of frames of one kind by outcome (see FrameRow); `sent` is their sum."""

    sent: int
    received: int
    channel_errors: int
    collided: int
    hidden_terminal: int
    receiver_busy: int
    out_of_reach: int
    not_answered: int


class StationAccount(Contract):
    """The counts of one station of a medium."""

    name: str = Field(description="the node")
    port: PortAccount
    packets: StationPackets
    bytes: ByteCounts
    max_waiting_packets: int
    on_air_ns: int = Field(description="time for which the station was sending")
    frames: dict[Literal["rts", "cts", "data", "ack"], FrameCounts]
    arrival_lateness_ns: Lateness
    transit_error_ns: Lateness
    late_events: int


class MediumAccount(Contract):
    """The counts of one medium."""

    name: str
    id: int
    config: dict[str, Any] = Field(description="the medium's settings as nagi-link read them")
    stations: list[StationAccount]

    def station(self, node: str) -> StationAccount:
        """Return the counts of a node's station, which must be on this medium."""
        return next(station for station in self.stations if station.name == node)


class Cpu(Contract):
    """The resources that nagi-link used."""

    user_s: float
    system_s: float
    max_resident_bytes: int


class Links(Contract):
    """links.json: all links and media of a run."""

    schema_version: Literal[1] = 1
    executable: str
    version: str
    scheduling: str = Field(description="SCHED_FIFO, or SCHED_OTHER if SCHED_FIFO was refused")
    memory_locked: bool
    cpu_pinned: int | None = Field(
        description="processor to which the emulator was pinned; null: to none"
    )
    virtual_time: bool = Field(
        False,
        exclude_if=is_false,
        description="whether time stood still while the emulator ran. The emulator then hands "
        "frames to the kernel early, and transit_error_ns counts only frames handed over too late",
    )
    spin_ns: int = Field(description="longest busy wait for the due instant of a packet")
    complete: bool = Field(
        description="false: the counts are preliminary, because the emulator did not end properly"
    )
    seed: int
    epoch_realtime_ns: int
    started_realtime_ns: int
    ended_realtime_ns: int
    cpu: Cpu
    records_lost: int = Field(
        description="records of packets and drops lost because the disk was full or too slow"
    )
    notices: list[str]
    links: list[LinkAccount]
    media: list[MediumAccount] = Field([], exclude_if=is_empty)

    def medium(self, name: str) -> MediumAccount:
        """Return the counts of the medium with a name, which must exist."""
        return next(medium for medium in self.media if medium.name == name)
