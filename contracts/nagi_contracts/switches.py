# SPDX-License-Identifier: Apache-2.0
"""What switches say of a run: switches.json, and the samples of their queues."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none
from nagi_contracts.links import Lateness, PortAccount
from nagi_contracts.plan import DirectionName, SwitchTarget

# What a switch's own controller finds in its directory, beside files of its own.
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
    """What the drop log of a switch is called in a run directory."""
    return f"{node}.drops.pcapng"


def program_file(node: str) -> str:
    """What the JSON of a switch's own program is called there."""
    return f"{node}.pipeline.json"


def digests_file(node: str) -> str:
    """What the digests of a program of one's own are called there."""
    return f"{node}.digests.jsonl"


def controller_log(node: str) -> str:
    """What the output of a switch's own controller is called there."""
    return f"{node}.controller.log"


class ControllerNeighbour(Contract):
    """What a port's link leads to."""

    node: str
    address: str
    mac: str


class ControllerPort(Contract):
    """A port of the switch, as its controller is told."""

    number: int = Field(description="as the P4 program knows it")
    link: str
    interface: str = Field(description="of the switch's host")
    mac: str
    address: str = Field(description="of the switch on this link, with prefix length")
    neighbour: ControllerNeighbour


class ControllerRoute(Contract):
    """Where packets go that are for an address, as its controller is told."""

    destination: str = Field(description="with prefix length")
    port: int
    next_hop: str = Field(description="address of the port's neighbour")


class ControllerP4Runtime(Contract):
    """Where a switch is reached by P4Runtime; nobody is primary there."""

    address: str
    device_id: int


class ControllerFacts(Contract):
    """controller.json: what a switch's own controller is told. Paths are relative to its
    directory."""

    schema_version: Literal[1] = 1
    node: str
    target: SwitchTarget
    control_socket: str | None = Field(
        description="of nagi-switch: p4/switch/daemon/controller.hpp; null: another target"
    )
    thrift_port: int | None = Field(description="of bmv2, at 127.0.0.1; null: another target")
    p4runtime: ControllerP4Runtime | None = Field(description="null: another target")
    program: str = Field(description="what p4c made")
    p4info: str | None = Field(description="P4Info, protobuf's text format; null: not given")
    cpu_port: int | None
    ports: list[ControllerPort]
    routes: list[ControllerRoute]


class PortCounters(Contract):
    """What edge.p4 has counted at a port, in packets."""

    number: int
    received: int
    sent: int = Field(description="not lost in egress")
    lost: int = Field(description="by the loss model")
    marked: int = Field(description="given ECN's CE")


class Counters(Contract):
    ports: list[PortCounters]
    drops: dict[str, int] = Field(description="in ingress, by cause")
    told: dict[str, int] = Field(
        {}, description="packets that went to the controller, which answers by ICMP, by cause"
    )
    from_controller: int = Field(0, description="packets that came from the controller")


class SwitchRecord(Contract):
    """switch.json, as an agent leaves it."""

    schema_version: Literal[1] = 1
    node: str
    target: SwitchTarget
    version: str
    epoch_realtime_ns: int = Field(description="instant 0 of the switch's clock")
    counters: Counters | None = Field(description="null: the program is the user's own")
    account: dict[str, Any] | None = Field(description="nagi-switch's own; null: another target")
    notices: list[str]


class Backlogged(Contract):
    """Over the intervals in which packets waited all the time, as the switch handed them over."""

    packets: int
    bytes: int = Field(description="IP bytes, overhead included")
    length_ns: int


class SwitchPortAccount(Contract):
    """One port. What the target does not tell is null."""

    number: int
    link: str
    direction: DirectionName = Field(description="of what leaves by it")
    counters: PortCounters | None = Field(description="null: the program is the user's own")
    dropped_by_program: int | None = Field(
        None,
        exclude_if=is_none,
        description="packets that a program of one's own dropped in egress; null: edge.p4, or "
        "another target than nagi-switch",
    )
    queue_overflows: int | None
    waiting: int | None = Field(description="packets, at the end")
    max_waiting_packets: int | None
    backlogged: Backlogged | None
    added_delay_ns: Lateness | None = Field(
        description="between a packet being due and being handed to the kernel"
    )
    arrival_lateness_ns: Lateness | None = Field(
        description="by how much the switch had moved past an arrival when it was seen"
    )
    changes: int | None = Field(description="how often rates or limits were changed")
    interface: PortAccount | None

    @property
    def received(self) -> int | None:
        """Packets that came by it: by edge.p4's count, else by its interface's."""
        if self.counters is not None:
            return self.counters.received
        return None if self.interface is None else self.interface.received

    @property
    def sent(self) -> int | None:
        """Packets that left by it, counted alike."""
        if self.counters is not None:
            return self.counters.sent
        return None if self.interface is None else self.interface.sent

    @property
    def lost(self) -> int | None:
        """Packets that the program took as they left the queue."""
        return self.dropped_by_program if self.counters is None else self.counters.lost


class SwitchAccount(Contract):
    node: str
    target: SwitchTarget
    version: str
    scheduling: str | None = Field(
        description="SCHED_FIFO, or SCHED_OTHER where that was refused; null: not known"
    )
    complete: bool
    records_lost: int = Field(description="of digests and drops, for want of disk or a reader")
    drops: dict[str, int] = Field(
        description="packets dropped that no link asked to be, by cause; of nagi-switch all, of "
        "other targets those that edge.p4 counts"
    )
    told: dict[str, int] = Field(
        {}, description="packets that could not go on and were answered by ICMP, by cause"
    )
    from_controller: int = Field(0, description="ICMP errors")
    link_scope: int = Field(0, description="packets that no router forwards: of IGMP and MLD")
    notices: list[str]
    ports: list[SwitchPortAccount]


class Switches(Contract):
    """switches.json"""

    schema_version: Literal[1] = 1
    switches: list[SwitchAccount]

    def port(self, link: str, direction: DirectionName) -> SwitchPortAccount | None:
        """The port by which packets enter a direction of a link."""
        ports = [port for switch in self.switches for port in switch.ports]
        return next(
            (port for port in ports if (port.link, port.direction) == (link, direction)), None
        )


class QueueSample(Contract):
    """A row of queue_samples.parquet: what the queue of a switch's port was like for a packet, as
    it left."""

    t_s: float = Field(description="seconds since the run began, by the switch's clock")
    link: str
    direction: DirectionName
    depth_at_enqueue: int = Field(description="packets")
    depth_at_dequeue: int
    in_queue_us: int
