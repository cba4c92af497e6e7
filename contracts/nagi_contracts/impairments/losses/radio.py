# SPDX-License-Identifier: Apache-2.0
"""Losses of a radio link, which follow from its receiver."""

from __future__ import annotations

from typing import Literal

from nagi_contracts.impairments.losses.base import LossPlanBase


class RadioLossPlan(LossPlanBase):
    """Transmissions that the link's radio does not receive; no losses are sampled."""

    model: Literal["radio"] = "radio"

    def describe(self) -> str:
        return "what the radio does not receive"
