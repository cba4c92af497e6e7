# SPDX-License-Identifier: Apache-2.0
"""Compare the losses on channels with the probabilities of the plan."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.records import Information

from nagi.records.packets import CHANNEL_LOSS, DELIVERED, QUEUE_OVERFLOW, Records, get_fates
from nagi.records.transmissions import LOST, Transmissions
from nagi.verdict.rates import find_packets


def describe_losses(
    recorded: Records, direction: DirectionPlan, subject: str
) -> Iterator[Information]:
    """Yield the loss rate of a direction's channel, and the p-value of this rate.

    Nothing is yielded if losses depend on each other, if the planned probability of loss is 0, or
    if the channel got no packet.

    Args:
        recorded: The records of the direction's packets.
        direction: The plan of the direction.
        subject: The name of the direction, for the verdict.
    """
    fate = get_fates(recorded)
    is_offered = (fate == DELIVERED) | (fate == CHANNEL_LOSS)
    if direction.loss.at == "ingress":
        is_offered |= fate == QUEUE_OVERFLOW
    probabilities = _list_loss_probabilities(recorded["bytes"][is_offered], direction)
    if probabilities is not None:
        yield from describe_loss_rate(probabilities, int((fate == CHANNEL_LOSS).sum()), subject)


def describe_arq_losses(
    recorded: Records, direction: DirectionPlan, transmissions: Transmissions, subject: str
) -> Iterator[Information]:
    """Yield the loss rate of the transmissions of a direction with ARQ, and its p-value.

    Nothing is yielded if losses depend on each other, if the planned probability of loss is 0, or
    if there are no transmissions.

    Args:
        recorded: The records of the direction's packets.
        direction: The plan of the direction.
        transmissions: The transmissions of the direction.
        subject: The name of the direction, for the verdict.

    Raises:
        InputError: The packet of a transmission was not recorded.
    """
    sizes = recorded["bytes"][find_packets(transmissions, recorded)]
    probabilities = _list_loss_probabilities(sizes, direction)
    if probabilities is not None:
        lost = int((transmissions["outcome"] == LOST).sum())
        yield from describe_loss_rate(probabilities, lost, subject, "transmissions")


def describe_loss_rate(
    probabilities: npt.NDArray[np.float64], lost: int, subject: str, unit: str = "packets"
) -> Iterator[Information]:
    """Yield a loss rate and its two-sided p-value, by the normal approximation.

    Nothing is yielded if all probabilities are 0.

    Args:
        probabilities: The planned probability of loss of each packet; losses are independent.
        lost: The number of packets that were lost.
        subject: The direction or station where the packets were lost.
        unit: A noun for the description: packets or transmissions.
    """
    if not probabilities.any():
        return
    expected = float(probabilities.sum())
    deviation = math.sqrt(float((probabilities * (1 - probabilities)).sum()))
    if deviation == 0:
        p_value = 1.0 if lost == expected else 0.0
    else:
        # Half a packet is the continuity correction.
        distance = max(0.0, abs(lost - expected) - 0.5) / deviation
        p_value = 2 * (1 - NormalDist().cdf(distance))
    count = len(probabilities)
    yield Information(
        name="loss_rate",
        description=f"{unit} lost on the channel; {expected / count:.4%} was planned",
        value=lost / count * 100,
        unit="%",
        subject=subject,
    )
    yield Information(
        name="loss_p_value",
        description="probability of a deviation from the planned loss rate that is at least as "
        "large, not corrected for other runs",
        value=p_value,
        unit="",
        subject=subject,
    )


def _list_loss_probabilities(
    sizes: npt.NDArray[np.uint16], direction: DirectionPlan
) -> npt.NDArray[np.float64] | None:
    """Return each packet's probability of loss, given the packets' sizes in bytes.

    Return None if there are no packets, or if the loss model has no probability per packet.
    """
    distinct_sizes, index = np.unique(sizes, return_inverse=True)
    probabilities = [
        direction.loss.loss_probability(int(size), direction.overhead_bytes)
        for size in distinct_sizes
    ]
    if not probabilities or None in probabilities:
        return None
    return np.array(probabilities, np.float64)[index]
