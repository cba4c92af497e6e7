# SPDX-License-Identifier: Apache-2.0
"""Losses of a radio: it receives a transmission, or it does not."""

from __future__ import annotations

from typing import Literal

from nagi_contracts.impairments.losses.base import LossPlanBase


class RadioLossPlan(LossPlanBase):
    """What the link's radio does not receive; no losses are sampled."""

    model: Literal["radio"] = "radio"

    def describe(self) -> str:
        return "what the radio does not receive"
