# SPDX-License-Identifier: Apache-2.0
"""Links that an FPGA's core carries: what its simulation needs here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import sha256_of

from nagi.plan.schemes import Availability

INSTALL = "build it: `make fpga-simulation`"
INSTALL_THERE = "install it there, or say where it is as `nagi_fpga`"


def names(plans: Iterable[RunPlan]) -> list[str]:
    """The links of `plans` whose core is simulated, each once."""
    return list(dict.fromkeys(link.name for plan in plans for link in plan.simulated_fpgas()))


def of_links(links: Sequence[str]) -> str:
    """`link wireless is an FPGA's`."""
    are = "is an FPGA's" if len(links) == 1 else "are FPGAs'"
    return f"link{'' if len(links) == 1 else 's'} {', '.join(links)} {are}"


def require_real_hosts(plans: Iterable[RunPlan], lab: str) -> None:
    """Raises InputError if links are on boards, and `lab` has no cables."""
    links = list(dict.fromkeys(link.name for plan in plans for link in plan.on_boards()))
    if links and lab != "physical":
        raise refuse(
            f"{of_links(links)} on a board, and the {lab} lab has none",
            "give the hosts that are cabled to it: --inventory FILE, or write `by: simulated`",
            key=f"links.{links[0]}.fpga.by",
        )


def nagi_fpga() -> Path:
    return paths.executable("nagi-fpga")


def checksum() -> str | None:
    """Stands for the simulated core of this machine; None if there is no nagi-fpga."""
    return sha256_of(nagi_fpga()) if nagi_fpga().is_file() else None


def availability() -> Availability:
    """Whether an FPGA's core can be simulated on this machine."""
    if not nagi_fpga().is_file():
        return Availability(False, f"there is no {nagi_fpga()}", INSTALL)
    return Availability(True)
