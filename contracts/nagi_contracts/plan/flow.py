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
    """The base class of plan objects that name a file by its content's hash.

    The path of the file is not a field, so that it is not written and does not change ids.
    """

    _source: Path | None = PrivateAttr(None)

    @property
    def source(self) -> Path:
        """The path of the file on the machine that made the plan. It must have been set."""
        assert self._source is not None
        return self._source

    def set_source(self, source: Path) -> Self:
        """Set the path of the file, and return this object."""
        self._source = source
        return self


class CommandFile(FromFile):
    """A user's file or directory, which client and server find in their working directories."""

    name: str
    sha256: str = Field(
        description="SHA-256 of the file's content, or of a directory's names, modes and contents"
    )

    @property
    def key(self) -> str:
        """The key of the file in a batch: content and name, as one content can have two names."""
        return f"{self.sha256}/{self.name}"


class CommandPlan(Contract):
    """The user's own applications for a flow, as command lines that run without a shell."""

    client: list[str] = Field(
        description="command started at the flow's start, on the host that does not listen"
    )
    server: list[str] | None = Field(
        None,
        description="command started in phase serve, which listens on the flow's port; null: no "
        "server",
    )
    listens: Literal["sender", "receiver"] = Field(
        "receiver", description="end of the flow that listens on the flow's port"
    )
    files: list[CommandFile] = Field([], exclude_if=is_empty)


class SchemeObjectPlan(FromFile):
    """A congestion control in an eBPF object, of nagi (hosts/tcp) or of the user.

    The agent contains the object, and registers it under a new name for each run.
    """

    object: str = Field(description="name of the object among the agent's files")
    sha256: str
    events: bool = Field(description="whether the scheme reports events of its connections")
    parameters: dict[str, int] = Field(description="all parameters of the scheme with their values")


class FlowPlan(Contract):
    """A flow of data from one host to another host.

    With traffic `bulk`, the flow is one TCP connection. With other traffic, the flow consists of
    all TCP and UDP packets between the two hosts to or from the flow's port.
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
        description="congestion control at the receiver; null: the scheme does not need one",
    )
    receiver_object: SchemeObjectPlan | None = Field(
        None, exclude_if=is_none, description="scheme object with receiver_control"
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
        False,
        exclude_if=is_false,
        description="whether the flow is cross traffic, which is left out of mean values",
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
        description="path from the receiver to the sender, if it differs from the reversed `path` "
        "(possible over media); otherwise empty",
    )
    bottleneck_bps: int = Field(
        description="smallest configured rate on the path; a trace counts with its mean, a medium "
        "with its data rate"
    )
    base_rtt_s: float = Field(
        description="sum of the propagation delays of both directions. A delay trace counts with "
        "its smallest delay. A hop over a medium counts with the duration of an undisturbed "
        "exchange, of a full-size packet on the path, of an ACK without options on the way back"
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
            sends_datagrams: Whether the flow's command sends UDP datagrams, whose header is smaller
                than that of TCP segments. It has no effect if the traffic is not `command`.
        """
        is_datagram = self.traffic == "command" and sends_datagrams
        return self.max_datagram_bytes if is_datagram else self.payload_bytes

    def path_back(self) -> list[LinkDirection]:
        """Return the path from the receiver to the sender."""
        return self.back or [direction.reversed() for direction in reversed(self.path)]

    def objects(self) -> dict[str, SchemeObjectPlan]:
        """Return name of the congestion control -> its scheme object, at both ends of the flow.

        Congestion controls of the kernel are left out.
        """
        ends = {
            self.congestion_control: self.scheme_object,
            self.receiver_control or "": self.receiver_object,
        }
        return {name: scheme for name, scheme in ends.items() if scheme is not None}

    @property
    def group(self) -> str:
        """The name of the flow's entry in the experiment file: the flow's name without number."""
        return self.name.partition(NUMBER_MARK)[0]

    @property
    def listening_end(self) -> Literal["sender", "receiver"]:
        """The end of the flow that listens on `port`."""
        if self.traffic == "request_response":
            return "sender"
        return "receiver" if self.command is None else self.command.listens

    @property
    def listener(self) -> str:
        """The node that listens on `port`."""
        return self.sender if self.listening_end == "sender" else self.receiver


class CapturePlan(Contract):
    """A capture at a node's interface to a link or medium."""

    node: PlainName
    link: PlainName
    file: PlainName
    snap_bytes: int = 128
