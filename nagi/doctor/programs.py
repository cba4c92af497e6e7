# SPDX-License-Identifier: Apache-2.0
"""Checks of programs that only some links need."""

from __future__ import annotations

from collections.abc import Iterator

from nagi_contracts import __version__
from nagi_contracts.doctor import Status
from nagi_contracts.inspection import ProgramFacts

from nagi.doctor.observations import Observations, StageFinding


def check_optional_program(
    observations: Observations,
    backend: str,
    program: str,
    users: str,
    cure: str,
) -> Iterator[StageFinding]:
    """Check a program of emulators that only some links need.

    Args:
        observations: What was observed at hosts.
        backend: The backend whose program it is.
        program: The name of the program.
        users: A description of the links that need it, or "" if none does.
        cure: How to install it.
    """
    for host, inspection in observations.list_emulators():
        yield _check_program(host, program, inspection.read_program(backend), users, cure)
    yield from observations.skip_uninspected()


def _check_program(
    host: str, program: str, facts: ProgramFacts, users: str, cure: str
) -> StageFinding:
    version, error = (facts.version or "").split()[-1:], facts.error
    status_if_lacking: Status = "failure" if users else "warning"
    if error is not None:
        message = f"{program} does not run: {' '.join(error.split())}"
        return StageFinding([host], status_if_lacking, message, cure)
    if not version and users:
        return StageFinding([host], "failure", f"{users}, and there is no {program}", cure)
    if not version:
        return StageFinding([host], "ok", f"no {program} is installed")
    if version != [__version__]:
        message = f"its {program} is of version {version[0]}, nagi of {__version__}"
        return StageFinding([host], status_if_lacking, message, cure)
    return StageFinding([host], "ok", f"{program} {version[0]}")
