# SPDX-License-Identifier: Apache-2.0
"""node.json, which each agent writes about a run, and flows.json, the final states of all flows."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import (
    RUN_CURE,
    Contract,
    Date,
    PlainNameOrEmpty,
    is_empty,
    is_none,
    is_true,
)


class CaptureCount(Contract):
    """The packet counts that tcpdump prints for a capture."""

    file: str
    captured: int = Field(description="packets in the file")
    received: int = Field(description="packets seen by the kernel's capture")
    dropped: int = Field(description="packets that the kernel dropped because its buffer was full")


class ClientEnd(Contract):
    """The end of a flow's client program before the end of the traffic phase.

    Bulk traffic has no client in this sense.
    """

    flow: str
    ended_s: float = Field(
        description="instant of the first sample of TCP_INFO after the end, in seconds since the "
        "run began"
    )
    status: int = Field(description="exit status of the client; the run fails unless it is 0")


class FlowRecord(Contract):
    """The final state of a flow in the kernel of its sender."""

    flow: str
    congestion_control: str | None = Field(description="null: no TCP connection was seen")
    tcp_info: dict[str, int] = Field(
        description="field of struct tcp_info -> value; if the flow has several connections, of "
        "the connection with most acknowledged bytes"
    )
    connections: int | None = Field(
        None, description="number of TCP connections in the samples; null for bulk traffic"
    )
    ended_s: float | None = Field(
        None,
        description="instant at which the client ended; null: it ended with the traffic phase, or "
        "the flow is bulk traffic",
    )
    status: int | None = Field(
        None, description="exit status of the client; null if ended_s is null"
    )


class HostFacts(Contract):
    """The hardware and software of a host."""

    kernel: str
    machine: str
    processors: int
    python: str
    programs: dict[str, str] = Field(description="program -> its version")
    boot_id: str | None = Field(
        None, description="nodes with the same id are on one machine, and have the same clock"
    )


class Noise(Contract):
    """Activity of a host that may have disturbed a run during its traffic.

    If the run failed before the end of the traffic, the measurement covers the time until the
    failure. Shares are from 0 to 1. Values that the host does not provide are null.
    """

    interval_s: float = Field(description="length of the measurement")
    stolen: float | None = Field(
        description="share of all processors' time that a hypervisor gave to others (steal in "
        "proc_stat(5))"
    )
    busy: float | None = Field(
        description="share of all processors' time in programs of ordinary priority, the kernel "
        "and interrupts; includes the run's own programs"
    )
    nice: float | None = Field(
        description="share of all processors' time in programs at nice 1 to 19, which give way to "
        "others"
    )
    cpu_some: float | None = Field(
        description="share of the time in which a program waited for a processor (pressure stall "
        "information); includes programs at nice 1 to 19"
    )
    memory_some: float | None = Field(
        description="share of the time in which a program waited for memory"
    )
    memory_full: float | None = Field(
        description="share of the time in which all runnable programs waited for memory"
    )
    io_some: float | None = Field(
        description="share of the time in which a program waited for input or output"
    )
    io_full: float | None = Field(
        description="share of the time in which all runnable programs waited for input or output"
    )
    throttled: int | None = Field(
        description="number of periods in which the CPU limit of the agent's cgroup or of a parent "
        "cgroup stopped processes (nr_throttled in cgroup v2's cpu.stat)"
    )
    throttled_s: float | None = Field(
        description="time for which the CPU limit stopped processes, summed over all processors"
    )
    frequency_throttled: int | None = Field(
        description="how often heat slowed processors down, summed over all processors"
    )


class NodeRecord(Contract):
    """node.json: the records that the agent of one node makes of a run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    node: str
    status: Literal["ok", "failed"]
    error: str | None
    began_realtime_s: Date
    in_time: bool = Field(
        True,
        exclude_if=is_true,
        description="whether the agent was ready at the planned start of the run",
    )
    late_s: float = Field(description="largest delay of the agent at the start of a phase")
    facts: HostFacts
    sysctls: dict[str, str]
    offloads: dict[str, list[str]] = Field(
        description="interface -> harmful offloads that were switched on"
    )
    memory_pressures: int | None = Field(
        None,
        exclude_if=is_none,
        description="how often TCP ran short of memory (TCPMemoryPressures) during the run; null: "
        "the node has no such counter, or it was not read",
    )
    captures: list[CaptureCount]
    flows: list[FlowRecord]
    ended: list[ClientEnd] = Field(
        [], exclude_if=is_empty, description="clients that ended before the traffic phase"
    )
    processors_busy: float | None = Field(
        description="at the emulator: share of all processors' time that was not idle, 0 to 1; no "
        "check uses it"
    )
    noise: Noise | None = Field(
        None, exclude_if=is_none, description="null in virtual time, where noise has no meaning"
    )
    notices: list[str]


class Flows(Contract):
    """flows.json: all flows of a run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    flows: list[FlowRecord]
