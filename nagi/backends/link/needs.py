# SPDX-License-Identifier: Apache-2.0
"""The program that every run needs: nagi-link on the emulator's host.

nagi-link also carries the packets of radios and of simulated FPGAs, together with the programs of
these backends, and the packets of media.
"""

from __future__ import annotations

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import compute_sha256

from nagi.backends.interface import Needs


class LinkNeeds(Needs):
    """The need for nagi-link: without this program, no run can be planned."""

    is_always_needed = True

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        program = paths.executable("nagi-link")
        if not program.exists():
            raise refuse(f"there is no {program}", "build it: `make setup`")
        return {"nagi_link": compute_sha256(program)}


part = LinkNeeds()
