# SPDX-License-Identifier: Apache-2.0
"""Links between two nodes, and references to directions of links and media, as in paths."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from nagi_contracts.base import Contract, PlainName, is_empty, is_none
from nagi_contracts.plan.direction import OTHER_DIRECTION, DirectionName, DirectionPlan
from nagi_contracts.plan.fpga import FpgaPlan
from nagi_contracts.plan.radio import RadioPlan


class LinkEnd(Contract):
    """One end of a link: a node's interface."""

    node: str
    address: str = Field(description="the node's IP address on this link, with prefix length")


class LinkPlan(Contract):
    """A link. Direction forward goes from its first end to its second end.

    `forward` and `backward` are the emulator's settings. Settings that a switch applies in place of
    the emulator are at the switch's port (SwitchPortPlan).
    """

    name: PlainName
    id: int = Field(description="identifies the link in random draws")
    ends: tuple[LinkEnd, LinkEnd]
    forward: DirectionPlan
    backward: DirectionPlan
    radio: RadioPlan | None = Field(
        None, exclude_if=is_none, description="the radio, if nagi-sdr emulates the link"
    )
    fpga: FpgaPlan | None = Field(
        None, exclude_if=is_none, description="the FPGA, if an FPGA core emulates the link"
    )
    parts: dict[PlainName, dict[str, Any]] = Field(
        {},
        exclude_if=is_empty,
        description="if a further backend emulates the link: name of the backend -> its plan",
    )
    mtu: int | None = Field(
        None,
        exclude_if=is_none,
        description="MTU of the interfaces at both ends in IP bytes; null: 1500, not changed",
    )

    @property
    def backend(self) -> str:
        """The name of the backend that emulates the link; `link` stands for nagi-link."""
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

    link: str = Field(description="name of the link; for a hop, name of the medium")
    direction: DirectionName = Field(description="for a hop: always forward")
    sender: str | None = Field(
        None, exclude_if=is_none, description="for a hop: the node that sends; null for a link"
    )
    receiver: str | None = Field(
        None, exclude_if=is_none, description="for a hop: the node that receives; null for a link"
    )

    @property
    def is_hop(self) -> bool:
        """True if this is a hop over a medium."""
        return self.sender is not None

    def reversed(self) -> LinkDirection:
        """Return the other direction of the link, or the hop from receiver to sender."""
        if self.is_hop:
            return self.model_copy(update={"sender": self.receiver, "receiver": self.sender})
        return self.model_copy(update={"direction": OTHER_DIRECTION[self.direction]})
