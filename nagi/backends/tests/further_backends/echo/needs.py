# SPDX-License-Identifier: Apache-2.0
"""The needs of echo links: the program nagi-echo, which is in this folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nagi.backends.availability import Availability
from nagi.backends.interface import Needs
from nagi.spec.experiment import Experiment
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import compute_sha256

PROGRAM = Path(__file__).parent / "nagi-echo"


class EchoNeeds(Needs):
    """The needs of echo links. These links are the users."""

    predicates = ("is an echo", "are echoes")

    def is_needed_by(self, experiment: Experiment) -> bool:
        return any(link.emulator == "echo" for link in experiment.links.values())

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        return list(dict.fromkeys(link.name for plan in plans for link in plan.carried_by("echo")))

    def check_availability(self) -> Availability:
        if os.access(PROGRAM, os.X_OK):
            return Availability(True)
        return Availability(
            False, f"there is no {PROGRAM.name}, or it is not executable", "write it"
        )

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        return {"echo": compute_sha256(PROGRAM) if PROGRAM.is_file() else None}


part = EchoNeeds()
