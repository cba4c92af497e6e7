# SPDX-License-Identifier: Apache-2.0
"""The needs of links that are radios: GNU Radio and nagi-sdr on the emulator's host."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from nagi_contracts.inspection import Inspection
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import compute_sha256

from nagi.backends.availability import Availability, judge_program
from nagi.backends.interface import Needs
from nagi.backends.radio.program import (
    INSTALL,
    check_library,
    list_installed_paths,
    locate_nagi_sdr,
)
from nagi.labs.shape import EMULATOR
from nagi.spec.experiment import Experiment

INSTALL_THERE = f"{INSTALL} there, or set its path as `nagi_sdr`"
_PROCESSORS = 2  # kept busy by one simulated radio at 2 Mb/s in each direction


class RadioNeeds(Needs):
    """The needs of links that are radios. These links are the users."""

    predicates = ("is a radio", "are radios")

    def is_needed_by(self, experiment: Experiment) -> bool:
        return any(link.emulator == "sdr" for link in experiment.links.values())

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        return list(dict.fromkeys(link.name for plan in plans for link in plan.carried_by("radio")))

    def check_availability(self) -> Availability:
        library = check_library()
        if not library.ok:
            return Availability(False, library.detail, INSTALL)
        if not locate_nagi_sdr().is_file():
            return Availability(False, f"there is no {locate_nagi_sdr()}", INSTALL)
        return Availability(True)

    def check_availability_on(self, inspection: Inspection) -> Availability:
        if inspection.node != EMULATOR:
            return Availability(True)
        return judge_program("nagi-sdr", inspection.read_program("radio"), INSTALL_THERE)

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        return {"nagi_sdr": _compute_checksum() if is_local else None}

    def count_processors(self, plan: RunPlan) -> float:
        return _PROCESSORS * len(plan.carried_by("radio"))

    def classify_run(self, plan: RunPlan) -> str:
        return "radios" if plan.carried_by("radio") else ""


def _compute_checksum() -> str | None:
    """Return a SHA-256 over nagi-sdr and all files that it needs, or None without nagi-sdr."""
    if not locate_nagi_sdr().is_file():
        return None
    program, *further_paths = list_installed_paths()
    prefix = program.parent.parent
    installed_files = {
        file
        for path in further_paths
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.is_file()
    }
    files = [program, *sorted(path for path in installed_files if path.suffix != ".pyc")]
    checksums = [[str(path.relative_to(prefix)), compute_sha256(path)] for path in files]
    return hashlib.sha256(json.dumps(checksums).encode()).hexdigest()


part = RadioNeeds()
