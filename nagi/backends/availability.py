# SPDX-License-Identifier: Apache-2.0
"""The answer to whether something that runs need is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Availability:
    """The answer to whether something can run here.

    If it cannot, it has the reason and the cure. If it can, it may have a reservation and its cure.
    """

    available: bool
    reason: str = ""
    cure: str = ""


def judge_program(program: str, version: str | None, error: str | None, cure: str) -> Availability:
    """Return whether a host has a program.

    Args:
        program: Its name.
        version: The version that the host's agent reports, or None without the program.
        error: The reason why an installed program fails, or None.
        cure: How to install it there.
    """
    if version is not None:
        return Availability(True)
    reason = " ".join((error or f"there is no {program}").split())
    return Availability(False, reason, cure)
