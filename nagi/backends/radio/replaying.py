# SPDX-License-Identifier: Apache-2.0
"""Make settings with which nagi-link's model repeats the recorded losses and SNRs of radios."""

from __future__ import annotations

import numpy as np
from nagi_contracts.plan import DIRECTIONS, RunPlan

from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import Settings
from nagi.records.transmissions import RECEIVED, SNR_UNKNOWN, Transmissions, select_direction

_TRACE_LENGTH = 1 << 32  # transmissions; their numbers have 32 bits, so the trace never repeats


def list_recorded_snr(transmissions: Transmissions) -> list[int]:
    """Return the measured SNR of each transmission of a direction, in 0.01 dB.

    The index is the number of the transmission. The value is SNR_UNKNOWN for numbers without a
    record, and for transmissions whose SNR was not measured.

    Args:
        transmissions: The records of one direction.
    """
    snr = np.full(
        int(transmissions["number"].astype(np.int64).max(initial=-1)) + 1, SNR_UNKNOWN, np.int64
    )
    snr[transmissions["number"]] = transmissions["snr"]
    values: list[int] = snr.tolist()
    return values


def make_replay_settings(plan: RunPlan, transmissions: Transmissions) -> Settings:
    """Make settings with which nagi-link's model repeats the recorded losses and SNRs of radios.

    The setting `loss` is a trace of the numbers of the transmissions that the radio lost. The
    setting `rate_adaptation` contains the measured SNRs. Retransmissions by ARQ are numbered like
    other transmissions.

    Returns:
        (link, direction) -> settings that replace settings of the plan, for each direction of a
        radio.
    """
    settings: Settings = {}
    for link in plan.carried_by("radio"):
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            lost_numbers = np.unique(sent["number"][sent["outcome"] != RECEIVED])
            direction_plan = link.direction(direction)
            settings[link.name, direction] = {
                "loss": {
                    "model": "trace",
                    "lost": lost_numbers.tolist(),
                    "length": _TRACE_LENGTH,
                    "at": direction_plan.loss.at,
                }
            }
            if direction_plan.rate_adaptation is not None:
                settings[link.name, direction]["rate_adaptation"] = {
                    **direction_plan.rate_adaptation.model_dump(mode="json", exclude_none=True),
                    "recorded_snr": list_recorded_snr(sent),
                }
    return settings
