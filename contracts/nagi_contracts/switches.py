# SPDX-License-Identifier: Apache-2.0
"""What switches say of a run: switches.json, and the samples of their queues."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract
from nagi_contracts.links import Lateness, PortAccount
from nagi_contracts.plan import DirectionName, SwitchTarget


def drops_file(node: str) -> str:
    """What the drop log of a switch is called in a run directory."""
    return f"{node}.drops.pcapng"


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
    counters: Counters
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
    counters: PortCounters
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
        "bmv2 those that edge.p4 counts"
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
