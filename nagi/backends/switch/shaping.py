# SPDX-License-Identifier: Apache-2.0
"""Divide the settings of a link's direction between the emulator and a switch (p4/edge.p4).

A switch applies rate, queue, marking and loss. The emulator applies the delay. Without a switch,
the emulator applies all settings.

A switch loses packets when they leave its queue, so a lost packet takes no transmission time. The
emulator's losses at `egress` come after the transmission.
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
# The largest relative error with which a weight is rounded to a power of two. Thus RED's usual
# weight of 0.002 becomes 2^-9.
_MAX_WEIGHT_ERROR = 0.05
SAMPLES_PER_S = 100  # approximate number of samples of a queue per second

_USE_EMULATOR = "let the emulator shape the direction: `shaped_by: emulator`"


class UnsupportedShaping(Exception):
    """An error that a switch does not support a setting of a direction.

    Args:
        key: The key of the setting.
        message: What is not supported.
        cure: What the user can do.
    """

    def __init__(self, key: str, message: str, cure: str) -> None:
        super().__init__(f"{key}: {message}; {cure}")
        self.key = key
        self.message = message
        self.cure = cure


def get_switch_share(
    direction: DirectionPlan, target: Target, *, has_user_program: bool = False
) -> DirectionPlan:
    """Return the settings of a direction that its switch applies: rate, queue, marking and loss.

    Args:
        direction: The direction with all its settings.
        target: The target of switches, such as nagi-switch.
        has_user_program: Whether the switch runs a user's P4 program, and not edge.p4.

    Raises:
        UnsupportedShaping: The switch does not support a setting of the direction.
    """
    loss = direction.loss
    if not target.shapes:
        raise UnsupportedShaping(
            "shaped_by",
            f"{target.title} cannot set rates and queues of a switch",
            f"{_USE_EMULATOR}, or use --switch nagi",
        )
    if has_user_program:
        _require_only_queue(direction)
    if direction.rate_trace is not None:
        raise UnsupportedShaping(
            "rate_trace",
            "a switch supports only a constant rate",
            f"give `rate`, or {_USE_EMULATOR}",
        )
    if direction.burst_bytes is not None:
        raise UnsupportedShaping(
            "burst", "a switch has no token bucket", f"remove it, or {_USE_EMULATOR}"
        )
    if not loss.is_for_switches:
        names = ", ".join(
            plan.model_fields["model"].default for plan in LOSS_PLANS if plan.is_for_switches
        )
        raise UnsupportedShaping(
            "loss",
            f"a switch does not support the loss model {loss.model}",
            f"one of: {names}; or {_USE_EMULATOR}",
        )
    if direction.queue is not None and not direction.queue.is_for_switches:
        raise UnsupportedShaping(
            "queue",
            f"a switch does not support the queue discipline {direction.queue.discipline}",
            f"give only a size, or {_USE_EMULATOR}",
        )
    if loss.model != "none" and loss.at == "ingress":
        raise UnsupportedShaping(
            "loss",
            "a switch loses packets when they leave its queue, not before the queue",
            f"remove `at: ingress`, or {_USE_EMULATOR}",
        )
    if direction.rate_bps is None and direction.queue is None and loss.model == "none":
        raise UnsupportedShaping(
            "shaped_by",
            "the direction has no rate, queue or loss to shape",
            "give a rate or a loss, or remove `shaped_by`",
        )
    if target.counts_packets and direction.queue is not None and direction.queue.bytes is not None:
        raise UnsupportedShaping(
            "queue",
            f"{target.title}'s queues are limited in packets",
            "give the limit in packets, or use --switch nagi",
        )
    values = {name: getattr(direction, name) for name in SHAPED_FIELDS}
    return DirectionPlan(**values).model_copy(update={"mark": _round_weight(direction)})


def remove_switch_share(direction: DirectionPlan) -> DirectionPlan:
    """Return a direction without the settings that a switch applies, for the emulator."""
    defaults = DirectionPlan()
    return direction.model_copy(update={name: getattr(defaults, name) for name in SHAPED_FIELDS})


def find_sample_interval(rate_bps: int, packet_bytes: int) -> int:
    """Return n (1 or more) so that every n-th packet makes about SAMPLES_PER_S samples per second.

    Args:
        rate_bps: The rate of the port. Packets are assumed to leave at this rate.
        packet_bytes: The size of packets.
    """
    return max(1, round(rate_bps / (8 * packet_bytes) / SAMPLES_PER_S))


def hash_edge_program() -> str:
    """Return the SHA-256 of the JSON to which edge.p4 is compiled.

    Raises:
        InputError: The JSON is missing.
    """
    if not EDGE.exists():
        raise refuse(f"there is no {EDGE}", "restore this file of nagi")
    return compute_sha256(EDGE)


def _require_only_queue(direction: DirectionPlan) -> None:
    """Raise UnsupportedShaping if a direction has losses or marking."""
    for key, is_set in (
        ("loss", direction.loss.model != "none"),
        ("mark", direction.mark is not None),
    ):
        if is_set:
            raise UnsupportedShaping(
                key,
                "the switch runs your own program, and its ports apply only rate and queue",
                f"remove `{key}` and implement it in the program, or {_USE_EMULATOR}",
            )


def _round_weight(direction: DirectionPlan) -> MarkingPlan | None:
    """Return the marking of a direction, with its weight rounded to a power of two.

    Return None if the direction has no marking.

    Raises:
        UnsupportedShaping: The weight is not close to a power of two, or the threshold is in bytes.
    """
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
            f"a switch supports only weights that are powers of two, not {mark.weight:g}",
            f"give a power of two, such as {weight:g}",
        )
    return mark.model_copy(update={"weight": weight})
