# SPDX-License-Identifier: Apache-2.0
"""Flows of data between two hosts, the programs that make them, and captures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PrivateAttr

from nagi_contracts.applications import AnyPlan, Traffic
from nagi_contracts.applications.base import UDP_HEADER
from nagi_contracts.base import Contract, PlainName, is_empty, is_false, is_none
from nagi_contracts.plan.link import LinkDirection

NUMBER_MARK = "."  # separates a flow's name from its number if `count` made several flows


class FromFile(Contract):
    """A part of a plan that identifies a file by its content, and remembers the file's path."""

    _source: Path | None = PrivateAttr(None)

    @property
    def source(self) -> Path:
        """The file's path, on the machine that made the plan."""
        assert self._source is not None
        return self._source

    def set_source(self, source: Path) -> Self:
        """Set the path of the file, and return this part."""
        self._source = source
        return self


class CommandFile(FromFile):
    """A file or directory of the user's, which both ends of a flow find in their directory."""

    name: str
    sha256: str = Field(
        description="SHA-256 of the file's content, or of a directory's names, modes and contents"
    )

    @property
    def key(self) -> str:
        """The key of the file in a batch; files with equal content may have several names."""
        return f"{self.sha256}/{self.name}"


class CommandPlan(Contract):
    """The user's own applications for a flow, as command lines that run without a shell."""

    client: list[str] = Field(
        description="command started at the flow's start, at the end without the server"
    )
    server: list[str] | None = Field(
        None, description="command started in phase serve that listens on the flow's port"
    )
    listens: Literal["sender", "receiver"] = Field(
        "receiver", description="end of the flow that owns the port"
    )
    files: list[CommandFile] = Field([], exclude_if=is_empty)


class SchemeObjectPlan(FromFile):
    """A congestion control in an eBPF object, from nagi (hosts/tcp) or the user.

    Agents bring the object with them, and register it under a new name for each run.
    """

    object: str = Field(description="name of the object among the agent's files")
    sha256: str
    events: bool = Field(description="whether the scheme reports events of its connections")
    parameters: dict[str, int] = Field(description="all parameters of the scheme with their values")


class FlowPlan(Contract):
    """A flow of data from one host to another.

    Traffic `bulk` is a single TCP connection. Otherwise the flow is all TCP and UDP that a command
    or an application sends between the two hosts to and from the flow's port.
    """

    name: PlainName
    sender: str
    receiver: str
    sender_address: str
    receiver_address: str
    port: int
    scheme: str
    congestion_control: str = Field(
        description="the kernel's name of the congestion control; for a scheme object, its name in "
        "records"
    )
    scheme_object: SchemeObjectPlan | None = Field(None, exclude_if=is_none)
    receiver_control: str | None = Field(
        None,
        exclude_if=is_none,
        description="congestion control of the receiver's end, if it matters to the scheme",
    )
    receiver_object: SchemeObjectPlan | None = Field(
        None, exclude_if=is_none, description="scheme object of receiver_control"
    )
    traffic: Traffic = Field(description="bulk, command, or the application's name")
    program: Literal["nagi-traffic"] | None = Field(
        None,
        exclude_if=is_none,
        description="for bulk traffic: the program that sends; null: iperf",
    )
    command: CommandPlan | None = Field(
        None, exclude_if=is_none, description="for traffic `command`: the user's applications"
    )
    application: AnyPlan | None = Field(
        None, exclude_if=is_none, description="for an application of nagi-traffic: its settings"
    )
    background: bool = Field(
        False, exclude_if=is_false, description="cross traffic, which means leave out"
    )
    payload_bytes: int = Field(description="payload of a full-size segment (MSS)")
    packet_bytes: int = Field(description="IP bytes of a full-size segment")
    max_window: int | None = Field(
        None, description="upper limit of the congestion window in packets; null: none"
    )
    start_s: float
    end_s: float
    path: list[LinkDirection]
    back: list[LinkDirection] = Field(
        [],
        exclude_if=is_empty,
        description="path from the receiver to the sender, if routes over media differ by "
        "direction; empty: the path reversed",
    )
    bottleneck_bps: int = Field(
        description="smallest configured rate on the path: of a trace its mean, of a medium its "
        "data rate"
    )
    base_rtt_s: float = Field(
        description="propagation delay of both directions: of a trace the smallest delay, of a hop "
        "over a medium the time of an undisturbed exchange, of a full-size packet one way and of "
        "an ACK without options the other way"
    )

    @property
    def max_datagram_bytes(self) -> int:
        """The payload of the largest UDP datagram that is not fragmented."""
        ip_header = 40 if ":" in self.sender_address else 20
        return self.packet_bytes - ip_header - UDP_HEADER

    @property
    def uses_iperf(self) -> bool:
        """True if iperf sends and receives the flow's data."""
        return self.traffic == "bulk" and self.program is None

    def full_payload(self, *, sends_datagrams: bool) -> int:
        """Return the payload of a full-size packet in bytes.

        Args:
            sends_datagrams: Whether a command sends datagrams. They hold more than its segments,
                whose header is larger. Other traffic ignores it.
        """
        is_datagram = self.traffic == "command" and sends_datagrams
        return self.max_datagram_bytes if is_datagram else self.payload_bytes

    def path_back(self) -> list[LinkDirection]:
        """Return the path from the receiver to the sender."""
        return self.back or [direction.reversed() for direction in reversed(self.path)]

    def objects(self) -> dict[str, SchemeObjectPlan]:
        """Return the scheme objects of both ends by the name of their congestion control."""
        ends = {
            self.congestion_control: self.scheme_object,
            self.receiver_control or "": self.receiver_object,
        }
        return {name: scheme for name, scheme in ends.items() if scheme is not None}

    @property
    def group(self) -> str:
        """The entry of the experiment file that made the flow: its name without the number."""
        return self.name.partition(NUMBER_MARK)[0]

    @property
    def listens(self) -> Literal["sender", "receiver"]:
        """The end of the flow that owns `port`."""
        if self.traffic == "request_response":
            return "sender"
        return "receiver" if self.command is None else self.command.listens

    @property
    def listener(self) -> str:
        """The node that owns `port`."""
        return self.sender if self.listens == "sender" else self.receiver


class CapturePlan(Contract):
    node: PlainName
    link: PlainName
    file: PlainName
    snap_bytes: int = 128
