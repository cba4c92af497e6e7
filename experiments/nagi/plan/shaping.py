# SPDX-License-Identifier: Apache-2.0
"""Who imposes what on a direction of a link: the emulator all of it, or a switch (p4/edge.p4) rate,
queue, marking and loss, and the emulator what is left, the delay.

A switch loses packets as they leave its queue, and what it loses takes no time on the link; the
emulator's losses at `egress` come after transmission.
"""

from __future__ import annotations

import math

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.impairments.losses import LOSS_PLANS
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.plan import SHAPED_FIELDS, DirectionPlan, SwitchTarget
from nagi_contracts.records import sha256_of
from nagi_p4.edge import MAX_WEIGHT_SHIFT

EDGE = paths.P4 / "edge.json"
_NEAR = 0.05  # so near a power of two a weight counts as one: 0.002, RED's usual one, is 2^-9
SAMPLES_PER_S = 100  # of a queue, about

_LEAVE_IT = "leave the direction to the emulator: `shaped_by: emulator`"


class Impossible(Exception):
    """A switch cannot impose what is asked of a direction: which key, why, and what would do."""

    def __init__(self, key: str, what: str, cure: str) -> None:
        super().__init__(f"{key}: {what}; {cure}")
        self.key = key
        self.what = what
        self.cure = cure


def of_switch(whole: DirectionPlan, target: SwitchTarget, *, is_own: bool = False) -> DirectionPlan:
    """The switch's part of a direction; `is_own`: it runs a program of the user's. Raises
    Impossible."""
    loss = whole.loss
    if target == "p4runtime":
        raise Impossible(
            "shaped_by",
            "P4Runtime sets no rates and queues of a switch",
            f"{_LEAVE_IT}, or use --switch nagi",
        )
    if is_own:
        _check_own(whole)
    if whole.rate_trace is not None:
        raise Impossible(
            "rate_trace", "a switch's rate does not change", f"give `rate`, or {_LEAVE_IT}"
        )
    if whole.burst_bytes is not None:
        raise Impossible("burst", "a switch has no token bucket", f"remove it, or {_LEAVE_IT}")
    if not loss.is_for_switches:
        known = ", ".join(
            plan.model_fields["model"].default for plan in LOSS_PLANS if plan.is_for_switches
        )
        raise Impossible(
            "loss",
            f"a switch does not know the loss model {loss.model}",
            f"one of: {known}; or {_LEAVE_IT}",
        )
    if whole.queue is not None and not whole.queue.is_for_switches:
        raise Impossible(
            "queue",
            f"a switch does not know the queue discipline {whole.queue.discipline}",
            f"give a size alone, or {_LEAVE_IT}",
        )
    if loss.model != "none" and loss.at == "ingress":
        raise Impossible(
            "loss",
            "a switch loses packets as they leave its queue, not before it",
            f"remove `at: ingress`, or {_LEAVE_IT}",
        )
    if whole.rate_bps is None and whole.queue is None and loss.model == "none":
        raise Impossible(
            "shaped_by", "there is nothing to impose", "give a rate or a loss, or remove it"
        )
    if target == "bmv2" and whole.queue is not None and whole.queue.bytes is not None:
        raise Impossible(
            "queue",
            "bmv2's queues are limited in packets",
            "give it in packets, or use --switch nagi",
        )
    part = {name: getattr(whole, name) for name in SHAPED_FIELDS}
    return DirectionPlan(**part).model_copy(update={"mark": _mark(whole)})


def of_emulator(whole: DirectionPlan) -> DirectionPlan:
    """What is left to the emulator."""
    bare = DirectionPlan()
    return whole.model_copy(update={name: getattr(bare, name) for name in SHAPED_FIELDS})


def sample_every(rate_bps: int, packet_bytes: int) -> int:
    """Of how many packets one is a sample of the queue, when they come at the port's rate."""
    return max(1, round(rate_bps / (8 * packet_bytes) / SAMPLES_PER_S))


def sha256_of_edge() -> str:
    """Raises InputError if it is not there."""
    if not EDGE.exists():
        raise refuse(f"there is no {EDGE}", "restore it: it belongs to nagi")
    return sha256_of(EDGE)


def _check_own(whole: DirectionPlan) -> None:
    """Raises Impossible if it asks for what edge.p4 does."""
    for key, asked in (("loss", whole.loss.model != "none"), ("mark", whole.mark is not None)):
        if asked:
            raise Impossible(
                key,
                "the switch runs a program of your own, and rate and queue alone are its ports'",
                f"remove it and let the program do it, or {_LEAVE_IT}",
            )


def _mark(whole: DirectionPlan) -> MarkingPlan | None:
    mark = whole.mark
    if mark is None:
        return None
    if mark.threshold_packets is None:
        raise Impossible(
            "mark", "a switch marks over a number of packets", "give the threshold in packets"
        )
    shift = min(MAX_WEIGHT_SHIFT, max(0, round(-math.log2(mark.weight))))
    weight = 2.0**-shift
    if abs(mark.weight / weight - 1) > _NEAR:
        raise Impossible(
            "mark",
            f"a switch's average has no weight of {mark.weight:g}",
            f"give a power of two, like {weight:g}",
        )
    return mark.model_copy(update={"weight": weight})
