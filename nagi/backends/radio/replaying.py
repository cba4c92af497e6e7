# SPDX-License-Identifier: Apache-2.0
"""Make the settings with which nagi-link's model replays the losses and SNRs of radios."""

from __future__ import annotations

import numpy as np
from nagi_contracts.plan import DIRECTIONS, RunPlan

from nagi.records.direction_numbers import get_direction_number
from nagi.records.packets import Settings
from nagi.records.transmissions import RECEIVED, SNR_UNKNOWN, Transmissions, select_direction

_ENDLESS = 1 << 32  # numbers are modulo 2^32


def list_recorded_snr(transmissions: Transmissions) -> list[int]:
    """Return the SNR of a direction's transmissions by number, in 0.01 dB, for rate adaptation."""
    snr = np.full(
        int(transmissions["number"].astype(np.int64).max(initial=-1)) + 1, SNR_UNKNOWN, np.int64
    )
    snr[transmissions["number"]] = transmissions["snr"]
    values: list[int] = snr.tolist()
    return values


def make_replay_settings(plan: RunPlan, transmissions: Transmissions) -> Settings:
    """Make the settings with which the model replays the losses and SNRs of radios.

    `loss` loses the transmissions that the radio lost; `rate_adaptation` has the measured SNRs. The
    model counts each repetition by ARQ as another transmission.

    Returns:
        (link, direction) -> settings, for each direction of a radio.
    """
    settings: Settings = {}
    for link in plan.carried_by("radio"):
        for direction in DIRECTIONS:
            sent = select_direction(transmissions, get_direction_number(plan, link.name, direction))
            lost = np.unique(sent["number"][sent["outcome"] != RECEIVED])
            planned = link.direction(direction)
            settings[link.name, direction] = {
                "loss": {
                    "model": "trace",
                    "lost": lost.tolist(),
                    "length": _ENDLESS,
                    "at": planned.loss.at,
                }
            }
            if planned.rate_adaptation is not None:
                settings[link.name, direction]["rate_adaptation"] = {
                    **planned.rate_adaptation.model_dump(mode="json", exclude_none=True),
                    "recorded_snr": list_recorded_snr(sent),
                }
    return settings
