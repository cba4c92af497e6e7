# SPDX-License-Identifier: Apache-2.0
"""Losses by a Poisson process: an event during a transmission loses the packet."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, model_validator

from nagi_contracts.bounds import get_number_range
from nagi_contracts.errors import BadValue
from nagi_contracts.impairments.losses.base import MODEL, LossPlanBase, LossSettings, format_percent
from nagi_contracts.impairments.planning import Planning
from nagi_contracts.units import PacketSize, Share


class PoissonLossPlan(LossPlanBase):
    """A Poisson process in time; an event during a packet's transmission loses the packet."""

    model: Literal["poisson"] = "poisson"
    packet_loss_rate: float = Field(description="share of full-size packets that is lost")
    packet_bytes: int = Field(description="IP bytes of a full-size packet")

    def loss_probability(self, size: int, overhead: int) -> float:
        full_size = self.packet_bytes + overhead
        return -math.expm1((size + overhead) / full_size * math.log1p(-self.packet_loss_rate))

    def describe(self) -> str:
        if not self.packet_loss_rate:
            return "none"
        return f"Poisson in time, {format_percent(self.packet_loss_rate)} of full-size packets"


class PoissonLoss(LossSettings):
    """A Poisson process in time; an event during a packet's transmission loses the packet."""

    model: Literal["poisson"] = Field(description=MODEL)
    rate: Share = Field(description="the share of full-size packets that is lost, below 1")
    packet: PacketSize | None = Field(
        None,
        description="IP bytes of a full-size packet; default: the packet size of the link's flows",
    )

    @model_validator(mode="after")
    def _check_rate(self) -> PoissonLoss:
        if self.rate.value > get_number_range("packet_loss_rate")[1]:
            raise BadValue(
                "a Poisson process cannot lose every packet", "give a rate below 1", "rate"
            )
        return self

    def to_plan(self, planning: Planning) -> PoissonLossPlan:
        """Return the plan.

        Raises:
            InputError: The link has no constant rate, or the packet size is unknown.
        """
        if planning.rate_changing_key:
            planning.refuse(
                f"Poisson loss on a link with a {planning.rate_changing_key}",
                "give the link a constant rate, or use loss model markov or bernoulli",
            )
        if planning.constant_rate_bps is None:
            planning.refuse("Poisson loss on a link without a rate", "give the link a rate")
        packet = self.packet.value if self.packet else planning.packet_bytes
        if packet is None:
            planning.refuse(
                "Poisson loss without a packet size: no flow crosses this link",
                "add the size of a full-size packet: `packet: 1500 bytes`",
            )
        return PoissonLossPlan(packet_loss_rate=self.rate.value, packet_bytes=packet, at=self.at)
