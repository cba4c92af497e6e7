# SPDX-License-Identifier: Apache-2.0
"""The needs of FPGA links: nagi-fpga, which simulates the core, or a board cabled to real hosts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.inspection import Inspection
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import compute_sha256

from nagi.backends.availability import Availability, judge_program
from nagi.backends.fpga.spec import is_simulated
from nagi.backends.interface import Needs
from nagi.labs.names import PHYSICAL
from nagi.labs.shape import EMULATOR
from nagi.spec.experiment import Experiment

INSTALL = "build it: `make fpga-simulation`"
INSTALL_THERE = "install it there, or set its path as `nagi_fpga`"
_PROCESSORS = 1  # kept busy by one simulated core at 10 Mb/s


class FpgaNeeds(Needs):
    """The needs of FPGA links. Only links whose core is simulated are users, not boards."""

    predicates = ("is an FPGA link", "are FPGA links")

    def is_needed_by(self, experiment: Experiment) -> bool:
        return any(is_simulated(link) for link in experiment.links.values())

    def list_users(self, plans: Iterable[RunPlan]) -> list[str]:
        return _list_links(plans, "simulated")

    def check_availability(self) -> Availability:
        if not _locate_nagi_fpga().is_file():
            return Availability(False, f"there is no {_locate_nagi_fpga()}", INSTALL)
        return Availability(True)

    def check_availability_on(self, inspection: Inspection) -> Availability:
        if inspection.node != EMULATOR:
            return Availability(True)
        return judge_program("nagi-fpga", inspection.read_program("fpga"), INSTALL_THERE)

    def require_lab(self, plans: Iterable[RunPlan], lab: str) -> None:
        """Raise InputError if boards carry links of `plans` and `lab` is not the physical lab."""
        links = _list_links(plans, "board")
        if links and lab != PHYSICAL:
            raise refuse(
                f"{self.describe(links)} on a board, and the {lab} lab has no boards",
                "give the hosts that are cabled to the board: --inventory FILE, or write "
                "`by: simulated`",
                key=f"links.{links[0]}.fpga.by",
            )

    def hash_programs(self, is_local: bool, switch: SwitchTarget) -> dict[str, str | None]:
        program = _locate_nagi_fpga()
        return {"nagi_fpga": compute_sha256(program) if is_local and program.is_file() else None}

    def count_processors(self, plan: RunPlan) -> float:
        return _PROCESSORS * len(_list_links([plan], "simulated"))

    def classify_run(self, plan: RunPlan) -> str:
        return "fpgas" if plan.carried_by("fpga") else ""


def _list_links(plans: Iterable[RunPlan], by: str) -> list[str]:
    """Return the names of the FPGA links with the given value of `fpga.by`, without repetitions.

    Args:
        plans: The runs.
        by: `simulated` or `board`.
    """
    links = (link for plan in plans for link in plan.carried_by("fpga"))
    return list(dict.fromkeys(link.name for link in links if link.fpga and link.fpga.by == by))


def _locate_nagi_fpga() -> Path:
    return paths.executable("nagi-fpga")


part = FpgaNeeds()
