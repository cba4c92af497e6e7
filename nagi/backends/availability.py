# SPDX-License-Identifier: Apache-2.0
"""Whether a host has what runs need, with the reason and the cure if it has not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nagi_contracts.inspection import ProgramFacts


@dataclass(frozen=True)
class Availability:
    """The answer to whether a program or device can be used.

    If not, there are a reason and a cure. If it can be used, they may describe a limitation.
    """

    available: bool
    reason: str = ""
    cure: str = ""


def judge_program(program: str, facts: ProgramFacts, cure: str) -> Availability:
    """Return whether a host has a program.

    Args:
        program: The name of the program.
        facts: The report of the host's agent about the program.
        cure: How to install the program there.
    """
    if facts.version is not None:
        return Availability(True)
    reason = " ".join((facts.error or f"there is no {program}").split())
    return Availability(False, reason, cure)
