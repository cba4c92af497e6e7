# SPDX-License-Identifier: Apache-2.0
"""The answer to whether something that runs need is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nagi_contracts.inspection import ProgramFacts


@dataclass(frozen=True)
class Availability:
    """The answer to whether something can run here.

    If it cannot, it has the reason and the cure. If it can, it may have a reservation and its cure.
    """

    available: bool
    reason: str = ""
    cure: str = ""


def judge_program(program: str, facts: ProgramFacts, cure: str) -> Availability:
    """Return whether a host has a program.

    Args:
        program: Its name.
        facts: What the host's agent reports of it.
        cure: How to install it there.
    """
    if facts.version is not None:
        return Availability(True)
    reason = " ".join((facts.error or f"there is no {program}").split())
    return Availability(False, reason, cure)
