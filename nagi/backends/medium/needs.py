# SPDX-License-Identifier: Apache-2.0
"""The needs of media: no program in addition to nagi-link, which every emulator has."""

from __future__ import annotations

from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Needs


class MediumNeeds(Needs):
    """The needs of media: no program in addition to nagi-link."""

    def classify_run(self, plan: RunPlan) -> str:
        return "media" if plan.media else ""


part = MediumNeeds()
