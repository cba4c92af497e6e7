# SPDX-License-Identifier: Apache-2.0
"""The need of every run: nagi-link on its emulator.

nagi-link also carries the packets of radios, of simulated FPGAs and of media, together with the
programs of these.
"""

from __future__ import annotations

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget
from nagi_contracts.records import compute_sha256

from nagi.backends.interface import Needs


class LinkNeeds(Needs):
    """The need of nagi-link, without which nothing is planned."""

    is_always_needed = True

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        program = paths.executable("nagi-link")
        if not program.exists():
            raise refuse(f"there is no {program}", "build it: `make setup`")
        return {"nagi_link": compute_sha256(program)}


part = LinkNeeds()
