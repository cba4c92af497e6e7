# SPDX-License-Identifier: Apache-2.0
"""node.json and flows.json: what one agent records of its part of a run."""

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
    """A client that ended before the traffic phase did; bulk traffic has none."""

    flow: str
    ended_s: float = Field(
        description="when the next sample of TCP_INFO noticed the end; seconds since the run began"
    )
    status: int = Field(description="its exit status; the run fails unless it is 0")


class FlowRecord(Contract):
    """The last state of a flow in its sender's kernel."""

    flow: str
    congestion_control: str | None = Field(description="null: no TCP connection was seen")
    tcp_info: dict[str, int] = Field(
        description="struct tcp_info by field name; of several connections, the one with the most "
        "bytes acknowledged"
    )
    connections: int | None = Field(
        None, description="number of TCP connections in the samples; null for bulk traffic"
    )
    ended_s: float | None = Field(
        None,
        description="when the client ended; null: with the traffic phase, or bulk traffic",
    )
    status: int | None = Field(None, description="exit status of a client with ended_s")


class HostFacts(Contract):
    kernel: str
    machine: str
    processors: int
    python: str
    programs: dict[str, str]
    boot_id: str | None = Field(None, description="hosts with equal ids share their clock")


class Noise(Contract):
    """Activity of a host that may have disturbed a run during its traffic.

    For a run that failed earlier, it covers the time until then. Shares are 0 to 1; null values
    are those that the host does not provide.
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
        description="number of periods in which a limit of the agent's cgroup, or of one above it, "
        "stopped its processes (nr_throttled in cgroup v2's cpu.stat)"
    )
    throttled_s: float | None = Field(
        description="time for which the limit stopped processes, summed over all processors"
    )
    frequency_throttled: int | None = Field(
        description="how often heat slowed processors down, summed over all processors"
    )


class NodeRecord(Contract):
    """node.json: what one agent records of its part of a run."""

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
        description="whether the agent was ready when the run was to begin",
    )
    late_s: float = Field(description="largest delay with which the agent began a phase")
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
        [], exclude_if=is_empty, description="clients that ended before the traffic did"
    )
    processors_busy: float | None = Field(
        description="at the emulator: share of all processors' time that was not idle, 0 to 1; for "
        "information"
    )
    noise: Noise | None = Field(
        None, exclude_if=is_none, description="null in virtual time, where it has no meaning"
    )
    notices: list[str]


class Flows(Contract):
    """flows.json: all flows of a run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    flows: list[FlowRecord]
