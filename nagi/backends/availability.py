# SPDX-License-Identifier: Apache-2.0
"""The availability of programs and devices that runs need, with reason and cure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nagi_contracts.inspection import ProgramFacts


@dataclass(frozen=True)
class Availability:
    """The answer to whether a program or device can be used and, if not, the reason and the cure.

    Attributes:
        available: Whether the program or device can be used.
        reason: Why it cannot be used. If it can be used, a limitation, or empty.
        cure: What the user can do about `reason`.
    """

    available: bool
    reason: str = ""
    cure: str = ""


def judge_program(program: str, facts: ProgramFacts, cure: str) -> Availability:
    """Return the availability of a program on a host.

    The program is available if its version is known.

    Args:
        program: The name of the program.
        facts: The report of the host's agent about the program.
        cure: How to install the program on the host.
    """
    if facts.version is not None:
        return Availability(True)
    reason = " ".join((facts.error or f"there is no {program}").split())
    return Availability(False, reason, cure)
