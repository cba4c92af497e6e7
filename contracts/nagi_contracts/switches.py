# SPDX-License-Identifier: Apache-2.0
"""The counts of switches in a run: switches.json, and the samples of their queues."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none
from nagi_contracts.links import Lateness, PortAccount
from nagi_contracts.plan import DirectionName, SwitchTarget

# The files that nagi adds to the directory of a user's controller.
CONTROLLER_FACTS, CONTROLLER_PROGRAM, CONTROLLER_P4INFO = (
    "controller.json",
    "pipeline.json",
    "p4info.txtpb",
)
CONTROLLER_PACKAGE = "nagi_p4"
CONTROLLER_SOCKET = "nagi-switch.sock"
CONTROLLER_FILES = (
    CONTROLLER_FACTS,
    CONTROLLER_PROGRAM,
    CONTROLLER_P4INFO,
    CONTROLLER_PACKAGE,
    CONTROLLER_SOCKET,
)


def drops_file(node: str) -> str:
    """Return the name that the drop log of the switch `node` has in a run directory."""
    return f"{node}.drops.pcapng"


def program_file(node: str) -> str:
    """Return the name of the run's file with the user's compiled P4 program (JSON) of a switch."""
    return f"{node}.pipeline.json"


def digests_file(node: str) -> str:
    """Return the name of the run's file with the digests of the user's P4 program on a switch."""
    return f"{node}.digests.jsonl"


def controller_log(node: str) -> str:
    """Return the name of the run's file with the output of the user's controller of a switch."""
    return f"{node}.controller.log"


class ControllerNeighbour(Contract):
    """The node at the other end of a port's link."""

    node: str
    address: str
    mac: str


class ControllerPort(Contract):
    """A port of the switch, for its controller."""

    number: int = Field(description="number of the port in the P4 program")
    link: str
    interface: str = Field(description="interface on the switch's host")
    mac: str
    address: str = Field(description="the switch's IP address on this link, with prefix length")
    neighbour: ControllerNeighbour


class ControllerRoute(Contract):
    """A route of the switch, for its controller."""

    destination: str = Field(description="address with prefix length")
    port: int
    next_hop: str = Field(description="address of the port's neighbour")


class ControllerP4Runtime(Contract):
    """The P4Runtime server of a switch, which has no primary controller yet."""

    address: str
    device_id: int


class ControllerFacts(Contract):
    """controller.json: the facts about a switch that a user's controller needs.

    Paths are relative to the controller's directory.
    """

    schema_version: Literal[1] = 1
    node: str
    target: SwitchTarget
    control_socket: str | None = Field(
        description="control socket of nagi-switch (p4/switch/daemon/controller.hpp); null for "
        "other targets"
    )
    thrift_port: int | None = Field(
        description="Thrift port of bmv2 at 127.0.0.1; null for other targets"
    )
    p4runtime: ControllerP4Runtime | None = Field(description="null for other targets")
    program: str = Field(description="path of p4c's output")
    p4info: str | None = Field(
        description="path of P4Info in protobuf's text format; null: the experiment has none"
    )
    cpu_port: int | None = Field(description="port of packet-in and packet-out; null: none")
    ports: list[ControllerPort]
    routes: list[ControllerRoute]


class PortCounters(Contract):
    """The packet counts of the program edge.p4 at one port of a switch."""

    number: int
    received: int
    sent: int = Field(description="packets not lost in egress")
    lost: int = Field(description="packets lost by the loss model")
    marked: int = Field(description="packets marked CE (ECN)")


class Counters(Contract):
    """The packet counts of the program edge.p4."""

    ports: list[PortCounters]
    drops: dict[str, int] = Field(description="cause -> packets dropped in ingress")
    told: dict[str, int] = Field(
        {}, description="cause -> packets sent to the controller, which answers by ICMP"
    )
    from_controller: int = Field(0, description="packets received from the controller")


class SwitchRecord(Contract):
    """switch.json: the counts of a switch that the agent on its host recorded."""

    schema_version: Literal[1] = 1
    node: str
    target: SwitchTarget
    version: str
    epoch_realtime_ns: int = Field(description="instant 0 of the switch's clock")
    counters: Counters | None = Field(description="null for a user's program")
    account: dict[str, Any] | None = Field(
        description="counts that nagi-switch wrote; null for other targets"
    )
    notices: list[str]


class Backlogged(Contract):
    """The packets that a port sent in the intervals in which its queue was never empty."""

    packets: int
    bytes: int = Field(description="IP bytes and overhead")
    length_ns: int = Field(description="total length of these intervals")


class SwitchPortAccount(Contract):
    """The counts of one port. Values that the target does not provide are null."""

    number: int
    link: str
    direction: DirectionName = Field(description="direction of packets that leave by this port")
    counters: PortCounters | None = Field(description="null for a user's program")
    dropped_by_program: int | None = Field(
        None,
        exclude_if=is_none,
        description="packets that a user's program dropped in egress; null for edge.p4, and for "
        "targets other than nagi-switch",
    )
    queue_overflows: int | None
    waiting: int | None = Field(description="packets in the queue at the end")
    max_waiting_packets: int | None
    backlogged: Backlogged | None
    added_delay_ns: Lateness | None = Field(
        description="time from a packet's due instant until it was handed to the kernel"
    )
    arrival_lateness_ns: Lateness | None = Field(
        description="time by which the switch had advanced beyond a packet's arrival when it read "
        "the packet"
    )
    changes: int | None = Field(description="number of changes of rates or limits")
    interface: PortAccount | None

    @property
    def received(self) -> int | None:
        """Packets received, counted by edge.p4 or else by the interface; None if neither counts."""
        if self.counters is not None:
            return self.counters.received
        return None if self.interface is None else self.interface.received

    @property
    def sent(self) -> int | None:
        """Packets sent, counted by edge.p4 or else by the interface; None if neither counts."""
        if self.counters is not None:
            return self.counters.sent
        return None if self.interface is None else self.interface.sent

    @property
    def lost(self) -> int | None:
        """Packets dropped in egress, after the queue; None if the target does not count them.

        With edge.p4, these are the losses of its loss model.
        """
        return self.dropped_by_program if self.counters is None else self.counters.lost


class SwitchAccount(Contract):
    """The counts of one switch."""

    node: str
    target: SwitchTarget
    version: str
    scheduling: str | None = Field(
        description="SCHED_FIFO, or SCHED_OTHER if SCHED_FIFO was refused; null: unknown"
    )
    complete: bool
    records_lost: int = Field(
        description="records of digests and drops lost because the disk or the reader was too slow"
    )
    drops: dict[str, int] = Field(
        description="cause -> packets dropped for another reason than a link's settings. "
        "nagi-switch counts all causes, other targets only those that edge.p4 counts"
    )
    told: dict[str, int] = Field(
        {}, description="cause -> packets that were not forwarded but answered by ICMP"
    )
    from_controller: int = Field(0, description="number of ICMP errors sent")
    link_scope: int = Field(0, description="packets of IGMP and MLD, which no router forwards")
    notices: list[str]
    ports: list[SwitchPortAccount]


class Switches(Contract):
    """switches.json: all switches of a run."""

    schema_version: Literal[1] = 1
    switches: list[SwitchAccount]

    def port(self, link: str, direction: DirectionName) -> SwitchPortAccount | None:
        """Return the switch port that sends packets into a direction, or None if no switch does."""
        ports = [port for switch in self.switches for port in switch.ports]
        return next(
            (port for port in ports if (port.link, port.direction) == (link, direction)), None
        )


class QueueSample(Contract):
    """A row of queue_samples.parquet: the queue of a switch's port when a packet left the queue."""

    t_s: float = Field(description="seconds since the run began, by the switch's clock")
    link: str
    direction: DirectionName
    depth_at_enqueue: int = Field(description="packets in the queue when this packet arrived")
    depth_at_dequeue: int = Field(description="packets in the queue when this packet left it")
    in_queue_us: int = Field(description="time that this packet spent in the queue")
