# SPDX-License-Identifier: Apache-2.0
"""Links between two nodes, and directions of links and media as parts of a path."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from nagi_contracts.base import Contract, PlainName, is_empty, is_none
from nagi_contracts.plan.direction import OTHER_DIRECTION, DirectionName, DirectionPlan
from nagi_contracts.plan.fpga import FpgaPlan
from nagi_contracts.plan.radio import RadioPlan


class LinkEnd(Contract):
    node: str
    address: str = Field(description="the node's IP address on this link, with prefix length")


class LinkPlan(Contract):
    """A link; direction forward goes from its first end to its second.

    The directions are those of the emulator. What a switch shapes stands at the switch's port.
    """

    name: PlainName
    id: int = Field(description="identifies the link in random draws")
    ends: tuple[LinkEnd, LinkEnd]
    forward: DirectionPlan
    backward: DirectionPlan
    radio: RadioPlan | None = Field(
        None, exclude_if=is_none, description="the radio if nagi-sdr carries the link; else null"
    )
    fpga: FpgaPlan | None = Field(
        None, exclude_if=is_none, description="the FPGA if its core carries the link; else null"
    )
    parts: dict[PlainName, dict[str, Any]] = Field(
        {},
        exclude_if=is_empty,
        description="plan of a further backend that carries the link: name of the backend -> plan",
    )
    mtu: int | None = Field(
        None,
        exclude_if=is_none,
        description="MTU of the interfaces at both ends in IP bytes; null: unchanged, 1500",
    )

    @property
    def backend(self) -> str:
        """The name of the backend that carries the link."""
        if self.radio is not None:
            return "radio"
        if self.fpga is not None:
            return "fpga"
        return next(iter(self.parts), "link")

    def direction(self, direction: DirectionName) -> DirectionPlan:
        return self.forward if direction == "forward" else self.backward

    @property
    def records_transmissions(self) -> bool:
        """True if the emulator records the outcome of every transmission on the link."""
        directions = (self.forward, self.backward)
        return self.radio is not None or any(direction.arq is not None for direction in directions)


class LinkDirection(Contract):
    """A direction of a link, or a hop over a medium from one station to another."""

    link: str = Field(description="for a hop: the medium")
    direction: DirectionName = Field(description="for a hop: forward")
    sender: str | None = Field(None, exclude_if=is_none, description="for a hop: its sender")
    receiver: str | None = Field(None, exclude_if=is_none, description="for a hop: its receiver")

    @property
    def is_hop(self) -> bool:
        """True if this is a hop over a medium."""
        return self.sender is not None

    def reversed(self) -> LinkDirection:
        """Return the opposite direction of the link, or the hop back."""
        if self.is_hop:
            return self.model_copy(update={"sender": self.receiver, "receiver": self.sender})
        return self.model_copy(update={"direction": OTHER_DIRECTION[self.direction]})
