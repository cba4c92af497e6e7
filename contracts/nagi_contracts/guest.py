# SPDX-License-Identifier: Apache-2.0
"""What the virtual lab asks of a guest, and what it answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract
from nagi_contracts.batch import Batch

Action = Literal["check", "run"]


class Veth(Contract):
    """A pair of interfaces: one a node's, the other, its `peer`, the emulator's."""

    node: str
    name: str
    mac: str
    peer: str


class GuestInterface(Contract):
    name: str
    address: str | None = Field(None, description="with prefix length; none on the emulator")
    neighbours: dict[str, str] = Field({}, description="IP address -> MAC address, permanent")
    mtu: int | None = Field(None, description="null: as it is")


class GuestModule(Contract):
    """A congestion control of ours, as a kernel module."""

    file: str
    parameters: dict[str, int]


class GuestNode(Contract):
    interfaces: list[GuestInterface]
    batch: Batch


class GuestJob(Contract):
    """guest.json: what the first process of a guest is told."""

    schema_version: Literal[1] = 1
    action: Action
    veths: list[Veth]
    modules: list[GuestModule]
    nodes: dict[str, GuestNode] = Field(description="in this order; the emulator is one of them")
    start_at: float = Field(description="when the batch begins, by the guest's clock")
    answer: str = Field(description="file for the answer, which is written last")


class GuestAnswer(Contract):
    """answer.json"""

    schema_version: Literal[1] = 1
    problems: dict[str, list[str]] = Field(
        description="by node: what would keep the batch from running, or kept the agent from it"
    )
