# SPDX-License-Identifier: Apache-2.0
"""Count the outcomes of transmissions on radio links, and compute the mean measured SNR."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from nagi_contracts.plan import DIRECTIONS, RadioPlan, RunPlan
from nagi_contracts.records import Information

from nagi.records.direction_numbers import get_direction_number
from nagi.records.transmissions import (
    HEADER_ERROR,
    NOT_DETECTED,
    PAYLOAD_ERROR,
    RECEIVER_BUSY,
    UNANSWERED,
    Transmissions,
    get_snr_db,
    select_direction,
)
from nagi.verdict.values import Value

_CAUSES = {
    "radio_not_detected": (NOT_DETECTED, "transmissions that the receiver did not detect"),
    "radio_header_errors": (HEADER_ERROR, "transmissions whose header could not be read"),
    "radio_payload_errors": (PAYLOAD_ERROR, "transmissions whose payload had errors"),
}
_CAUSES_OF_HALF_DUPLEX = {
    "radio_receiver_busy": (
        RECEIVER_BUSY,
        "transmissions that arrived while the receiver was transmitting",
    ),
}


def count_unanswered(plan: RunPlan, transmissions: Transmissions) -> Iterator[Value]:
    """Yield (count, direction) for each direction of a radio.

    The count is the number of transmissions whose outcome the radio did not report. A transmission
    counts only if its packet was due before the end of the captures, because the radio may have
    been stopped during later transmissions.
    """
    capture_end_ns = round(plan.timeline.capture_end_s * 1e9)
    for link in plan.carried_by("radio"):
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            is_due = sent["end_ns"] + link.direction(direction).delay_ns < capture_end_ns
            count = int((is_due & (sent["outcome"] == UNANSWERED)).sum())
            yield float(count), f"{link.name} {direction}"


def describe_transmissions(plan: RunPlan, transmissions: Transmissions) -> Iterator[Information]:
    """Yield the numbers of transmissions and losses, and the mean measured SNR of each direction.

    Losses are counted by cause. The SNR is the mean of the measured power ratios, in dB. It is left
    out if the receiver measured none.
    """
    for link in plan.carried_by("radio"):
        assert link.radio is not None
        causes = _CAUSES | (_CAUSES_OF_HALF_DUPLEX if _is_half_duplex(link.radio) else {})
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            channel = link.radio.channel(direction)
            subject = f"{link.name} {direction}"
            counts = {
                "radio_transmissions": ("transmissions", len(sent)),
                **{
                    name: (description, int((sent["outcome"] == outcome).sum()))
                    for name, (outcome, description) in causes.items()
                },
            }
            for name, (description, count) in counts.items():
                yield Information(
                    name=name,
                    description=description,
                    value=count,
                    unit="transmissions",
                    subject=subject,
                )
            snr_db = get_snr_db(sent)
            measured_db = snr_db[~np.isnan(snr_db)]
            if len(measured_db):
                mean_db = 10 * math.log10(float(np.mean(10 ** (measured_db / 10))))
                yield Information(
                    name="radio_snr",
                    description="mean SNR of the transmissions for which the receiver measured it"
                    + (f"; configured: {channel.snr_db:g} dB" if channel else ""),
                    value=round(mean_db, 4),
                    unit="dB",
                    subject=subject,
                )


def _is_half_duplex(radio: RadioPlan) -> bool:
    return radio.uhd is not None and radio.uhd.duplex == "half"
