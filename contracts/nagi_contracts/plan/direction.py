# SPDX-License-Identifier: Apache-2.0
"""One direction of a link: rate, delay, queue and impairments."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from nagi_contracts.base import Contract, is_none, is_true
from nagi_contracts.impairments.effects import EffectPlans
from nagi_contracts.impairments.jitters import JitterPlan
from nagi_contracts.impairments.losses import LossPlan
from nagi_contracts.impairments.losses.none import NoLossPlan
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.impairments.queues import QueuePlan
from nagi_contracts.traces import OpportunityTrace, StepTrace

DirectionName = Literal["forward", "backward"]
DIRECTIONS: tuple[DirectionName, DirectionName] = get_args(DirectionName)
OTHER_DIRECTION: dict[DirectionName, DirectionName] = {"forward": "backward", "backward": "forward"}
ETHERNET_MTU = 1500  # largest IP packet in bytes on a link without a setting of the MTU


class ArqPlan(Contract):
    """Automatic repeat request (ARQ): the link sends lost transmissions again."""

    retries: int = Field(description="maximum number of retransmissions of a packet")
    feedback_ns: int = Field(
        description="time from the end of a transmission until the sender knows whether the "
        "transmission was lost"
    )


class ModePlan(Contract):
    """The rate and overhead of one modulation and code rate in the link model."""

    rate_bps: int = Field(description="rate at which the packet's bits are sent")
    overhead_bytes: int = Field(
        description="bytes that each transmission has in addition to its packet, sent at this rate"
    )


class RateAdaptationPlan(Contract):
    """The algorithm that chooses the mode of each transmission of a radio, by the ARQ feedback."""

    kind: Literal["snr_table", "minstrel"]
    modes: list[ModePlan] = Field(
        description="modes by increasing rate, in the same order as the radio's modes"
    )
    min_snr_db: list[float] | None = Field(
        None, exclude_if=is_none, description="for snr_table: the smallest SNR of each mode"
    )


class DirectionPlan(EffectPlans):
    """One direction of a link, in the format of nagi-link's configuration without null values.

    Fields that were added after version 0.1 are written only if they are in use, so that plans
    without these fields keep their ids and seeds.
    """

    rate_bps: int | None = None
    burst_bytes: int | None = Field(
        None,
        exclude_if=is_none,
        description="depth of the token bucket that fills at rate_bps; null: no token bucket",
    )
    rate_trace: StepTrace | OpportunityTrace | None = Field(
        None, exclude_if=is_none, description="a rate that changes; replaces rate_bps"
    )
    overhead_bytes: int = 0
    delay_ns: int = 0
    delay_trace: StepTrace | None = Field(
        None, exclude_if=is_none, description="a delay that changes; replaces delay_ns"
    )
    jitter: JitterPlan | None = Field(None, exclude_if=is_none)
    keep_order: bool = Field(
        True,
        exclude_if=is_true,
        description="whether packets leave in the order of their arrival even if delays differ",
    )
    queue: QueuePlan | None = None
    mark: MarkingPlan | None = Field(None, exclude_if=is_none)
    loss: LossPlan = NoLossPlan()
    arq: ArqPlan | None = Field(None, exclude_if=is_none)
    rate_adaptation: RateAdaptationPlan | None = Field(
        None,
        exclude_if=is_none,
        description="if not null, rate_bps and overhead_bytes are values of the fastest mode",
    )

    # Without a return type, the published schema stays that of the fields.
    @model_serializer(mode="wrap")
    def _write_one_delay(self, handler: SerializerFunctionWrapHandler):  # type: ignore[no-untyped-def]
        """Leave out delay_ns if there is a delay trace, as nagi-link accepts only one of them."""
        written = handler(self)
        if self.delay_trace is not None:
            del written["delay_ns"]
        return written

    @property
    def mean_rate_bps(self) -> int | None:
        """The rate in bit/s, or the mean of the rate trace, at least 1; None if unlimited."""
        if self.rate_trace is not None:
            return max(1, self.rate_trace.mean)
        return self.rate_bps

    @property
    def has_steady_delay(self) -> bool:
        """True if the delay after transmission is the same for all packets."""
        return self.delay_trace is None and self.jitter is None and self.reordering is None

    @property
    def min_delay_ns(self) -> int:
        """The propagation delay in ns without jitter, or the smallest delay of the delay trace."""
        return min(self._delays_ns)

    @property
    def max_delay_ns(self) -> int:
        """The propagation delay in ns without jitter, or the largest delay of the delay trace."""
        return max(self._delays_ns)

    @property
    def _delays_ns(self) -> list[int]:
        if self.delay_trace is not None:
            return [delay for _, delay in self.delay_trace.steps]
        return [self.delay_ns]


# The fields of a direction that a switch can shape in place of the emulator.
SHAPED_FIELDS = ("rate_bps", "overhead_bytes", "queue", "mark", "loss")
