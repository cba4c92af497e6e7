# SPDX-License-Identifier: Apache-2.0
"""The files by which the virtual lab starts a guest (virtual machine) and gets its answer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract
from nagi_contracts.batch import Batch

Action = Literal["check", "run"]


class Veth(Contract):
    """A pair of virtual interfaces: `name` belongs to a node, `peer` to the emulator."""

    node: str
    name: str
    mac: str
    peer: str


class GuestInterface(Contract):
    """The settings of one interface of a node in a guest."""

    name: str
    address: str | None = Field(None, description="with prefix length; null on the emulator")
    neighbours: dict[str, str] = Field(
        {}, description="permanent neighbour entries: IP address -> MAC address"
    )
    mtu: int | None = Field(None, description="null: unchanged")


class GuestModule(Contract):
    """One of nagi's congestion controls as a kernel module."""

    file: str
    parameters: dict[str, int]


class GuestNode(Contract):
    """A node that a guest contains, or the emulator, and the batch of its agent."""

    interfaces: list[GuestInterface]
    batch: Batch


class GuestJob(Contract):
    """guest.json: what the first process of a guest must set up and run."""

    schema_version: Literal[1] = 1
    action: Action
    veths: list[Veth]
    modules: list[GuestModule]
    nodes: dict[str, GuestNode] = Field(
        description="node -> its interfaces and its batch; one of the nodes is the emulator"
    )
    start_at: float = Field(
        description="start of the batch, in seconds since the epoch by the guest's clock"
    )
    answer: str = Field(description="path of the guest's answer, the last file that it writes")


class GuestAnswer(Contract):
    """answer.json: the problems that a guest reports."""

    schema_version: Literal[1] = 1
    problems: dict[str, list[str]] = Field(
        description="node -> problems that would prevent the batch, or that stopped the agent"
    )
