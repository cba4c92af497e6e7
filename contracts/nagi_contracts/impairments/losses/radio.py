# SPDX-License-Identifier: Apache-2.0
"""Losses of a radio link, which its receiver decides."""

from __future__ import annotations

from typing import Literal

from nagi_contracts.impairments.losses.base import LossPlanBase


class RadioLossPlan(LossPlanBase):
    """Losses of the transmissions that the link's radio does not receive; none are sampled."""

    model: Literal["radio"] = "radio"

    def describe(self) -> str:
        return "what the radio does not receive"
