# SPDX-License-Identifier: Apache-2.0
"""Checks of programs that only some links need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nagi_contracts import __version__
from nagi_contracts.doctor import Status
from nagi_contracts.inspection import Inspection

from nagi.doctor.observations import Observations, StageFinding


def check_optional_program(
    observations: Observations,
    program: str,
    read_report: Callable[[Inspection], tuple[str | None, str | None]],
    users: str,
    cure: str,
) -> Iterator[StageFinding]:
    """Check a program of emulators that only some links need.

    Args:
        observations: What was observed at hosts.
        program: The name of the program.
        read_report: Returns its version, and the error if it does not run.
        users: A description of the links that need it, or "" if none does.
        cure: How to install it.
    """
    for host, inspection in observations.list_emulators():
        yield _check_program(host, program, read_report(inspection), users, cure)
    yield from observations.skip_uninspected()


def _check_program(
    host: str, program: str, report: tuple[str | None, str | None], users: str, cure: str
) -> StageFinding:
    version, error = (report[0] or "").split()[-1:], report[1]
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
