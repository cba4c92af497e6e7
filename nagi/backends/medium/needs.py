# SPDX-License-Identifier: Apache-2.0
"""What media need: nothing besides nagi-link, which every emulator has."""

from __future__ import annotations

from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Needs


class MediumNeeds(Needs):
    """Media lack nothing, but runs over media take a time of their own."""

    def classify_run(self, plan: RunPlan) -> str:
        return "media" if plan.media else ""


part = MediumNeeds()
