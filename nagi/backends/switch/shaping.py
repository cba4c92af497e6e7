# SPDX-License-Identifier: Apache-2.0
"""Divide a direction of a link between the emulator and a switch (p4/edge.p4).

Without a switch the emulator does everything. A switch shapes rate, queue, marking and loss, and
the emulator adds the delay. A switch loses packets as they leave its queue, so a lost packet takes
no time on the link; the emulator's losses at `egress` come after transmission.
"""

from __future__ import annotations

import math

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.impairments.losses import LOSS_PLANS
from nagi_contracts.impairments.markings import MarkingPlan
from nagi_contracts.plan import SHAPED_FIELDS, DirectionPlan
from nagi_contracts.records import compute_sha256
from nagi_p4.edge import MAX_WEIGHT_SHIFT

from nagi.backends.switch.targets import Target

EDGE = paths.P4 / "edge.json"
# A weight counts as a power of two if it differs by less: RED's usual 0.002 is taken as 2^-9.
_MAX_WEIGHT_ERROR = 0.05
SAMPLES_PER_S = 100  # approximate samples of a queue per second

_LEAVE_IT = "leave the direction to the emulator: `shaped_by: emulator`"


class UnsupportedShaping(Exception):
    """A switch cannot shape a direction as the setting `key` asks."""

    def __init__(self, key: str, message: str, cure: str) -> None:
        super().__init__(f"{key}: {message}; {cure}")
        self.key = key
        self.message = message
        self.cure = cure


def get_switch_share(
    direction: DirectionPlan, target: Target, *, is_own: bool = False
) -> DirectionPlan:
    """Return the share of a direction that its switch shapes.

    Args:
        direction: The direction as the experiment file describes it.
        target: The program that switches run.
        is_own: Whether the switch runs a user's own P4 program.

    Raises:
        UnsupportedShaping: If the switch does not support a setting of the direction.
    """
    loss = direction.loss
    if not target.shapes:
        raise UnsupportedShaping(
            "shaped_by",
            f"{target.title} cannot set rates and queues of a switch",
            f"{_LEAVE_IT}, or use --switch nagi",
        )
    if is_own:
        _require_only_queue(direction)
    if direction.rate_trace is not None:
        raise UnsupportedShaping(
            "rate_trace", "a switch's rate does not change", f"give `rate`, or {_LEAVE_IT}"
        )
    if direction.burst_bytes is not None:
        raise UnsupportedShaping(
            "burst", "a switch has no token bucket", f"remove it, or {_LEAVE_IT}"
        )
    if not loss.is_for_switches:
        names = ", ".join(
            plan.model_fields["model"].default for plan in LOSS_PLANS if plan.is_for_switches
        )
        raise UnsupportedShaping(
            "loss",
            f"a switch does not support the loss model {loss.model}",
            f"one of: {names}; or {_LEAVE_IT}",
        )
    if direction.queue is not None and not direction.queue.is_for_switches:
        raise UnsupportedShaping(
            "queue",
            f"a switch does not support the queue discipline {direction.queue.discipline}",
            f"give a size alone, or {_LEAVE_IT}",
        )
    if loss.model != "none" and loss.at == "ingress":
        raise UnsupportedShaping(
            "loss",
            "a switch loses packets as they leave its queue, not before it",
            f"remove `at: ingress`, or {_LEAVE_IT}",
        )
    if direction.rate_bps is None and direction.queue is None and loss.model == "none":
        raise UnsupportedShaping(
            "shaped_by", "there is nothing to shape", "give a rate or a loss, or remove it"
        )
    if target.counts_packets and direction.queue is not None and direction.queue.bytes is not None:
        raise UnsupportedShaping(
            "queue",
            f"{target.title}'s queues are limited in packets",
            "give it in packets, or use --switch nagi",
        )
    values = {name: getattr(direction, name) for name in SHAPED_FIELDS}
    return DirectionPlan(**values).model_copy(update={"mark": _round_weight(direction)})


def remove_switch_share(direction: DirectionPlan) -> DirectionPlan:
    """Return a direction without what a switch shapes: the share of the emulator."""
    defaults = DirectionPlan()
    return direction.model_copy(update={name: getattr(defaults, name) for name in SHAPED_FIELDS})


def find_sample_interval(rate_bps: int, packet_bytes: int) -> int:
    """Return the number of packets per sample of a queue, if packets arrive at the port's rate."""
    return max(1, round(rate_bps / (8 * packet_bytes) / SAMPLES_PER_S))


def hash_edge_program() -> str:
    """Return the SHA-256 of edge.p4's JSON.

    Raises:
        InputError: If there is no such file.
    """
    if not EDGE.exists():
        raise refuse(f"there is no {EDGE}", "restore it: it belongs to nagi")
    return compute_sha256(EDGE)


def _require_only_queue(direction: DirectionPlan) -> None:
    """Raise UnsupportedShaping if a direction asks for more than rate and queue."""
    for key, is_set in (
        ("loss", direction.loss.model != "none"),
        ("mark", direction.mark is not None),
    ):
        if is_set:
            raise UnsupportedShaping(
                key,
                "the switch runs your own program, and its ports shape rate and queue alone",
                f"remove it and let the program do it, or {_LEAVE_IT}",
            )


def _round_weight(direction: DirectionPlan) -> MarkingPlan | None:
    """Return a direction's marking with the weight rounded to a power of two, or None."""
    mark = direction.mark
    if mark is None:
        return None
    if mark.threshold_packets is None:
        raise UnsupportedShaping(
            "mark", "a switch needs a threshold in packets", "give the threshold in packets"
        )
    shift = min(MAX_WEIGHT_SHIFT, max(0, round(-math.log2(mark.weight))))
    weight = 2.0**-shift
    if abs(mark.weight / weight - 1) > _MAX_WEIGHT_ERROR:
        raise UnsupportedShaping(
            "mark",
            f"a switch's average has no weight of {mark.weight:g}",
            f"give a power of two, like {weight:g}",
        )
    return mark.model_copy(update={"weight": weight})
