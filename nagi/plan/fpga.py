# SPDX-License-Identifier: Apache-2.0
"""Find out whether this machine can simulate the FPGA core, which carries links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import compute_sha256

from nagi.plan.schemes import Availability

INSTALL = "build it: `make fpga-simulation`"
INSTALL_THERE = "install it there, or set its path as `nagi_fpga`"


def list_simulated(plans: Iterable[RunPlan]) -> list[str]:
    """Return the names of the links of `plans` whose FPGA core is simulated, each once."""
    return list(dict.fromkeys(link.name for plan in plans for link in plan.simulated_fpgas()))


def describe_links(links: Sequence[str]) -> str:
    """Return a clause for messages, such as `link wireless is an FPGA's`."""
    predicate = "is an FPGA's" if len(links) == 1 else "are FPGAs'"
    return f"link{'' if len(links) == 1 else 's'} {', '.join(links)} {predicate}"


def require_real_hosts(plans: Iterable[RunPlan], lab: str) -> None:
    """Raise InputError if links are on boards and `lab` has no cables to boards."""
    links = list(dict.fromkeys(link.name for plan in plans for link in plan.on_boards()))
    if links and lab != "physical":
        raise refuse(
            f"{describe_links(links)} on a board, and the {lab} lab has none",
            "give the hosts that are cabled to it: --inventory FILE, or write `by: simulated`",
            key=f"links.{links[0]}.fpga.by",
        )


def locate_nagi_fpga() -> Path:
    return paths.executable("nagi-fpga")


def compute_checksum() -> str | None:
    """Return the checksum of this machine's simulated core, or None without nagi-fpga."""
    return compute_sha256(locate_nagi_fpga()) if locate_nagi_fpga().is_file() else None


def check_availability() -> Availability:
    """Return whether this machine can simulate an FPGA core."""
    if not locate_nagi_fpga().is_file():
        return Availability(False, f"there is no {locate_nagi_fpga()}", INSTALL)
    return Availability(True)
