# SPDX-License-Identifier: Apache-2.0
"""The stage of a program that only links of one backend need, such as nagi-sdr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from nagi_contracts import __version__
from nagi_contracts.doctor import Status
from nagi_contracts.inspection import ProgramFacts
from nagi_contracts.plan import RunPlan

from nagi.backends.interface import Needs, Stage
from nagi.doctor.observations import Observations, StageFinding


class ProgramStage(Stage):
    """A stage that checks a program of emulators, which only links of one backend need.

    Attributes:
        needs: The needs of the backend, which list the links that need the program.
        program: The name of the program.
        install: The cure that installs the program on this machine.
        install_there: The cure that installs the program on another host.
    """

    needs: Needs
    program: str
    install: str
    install_there: str

    def collect_needs(self, plans: Sequence[RunPlan]) -> tuple[Any, ...]:
        """Return the names of the links that need the program."""
        return tuple(self.needs.list_users(plans))

    def check(self, observations: Observations) -> Iterator[StageFinding]:
        """Check that each emulator has the program in nagi's version.

        If the experiment does not need the program, or there is no experiment, a missing program is
        `ok`, and a program that does not run or has another version is a warning.
        """
        links = observations.list_needs(self.name)
        need = self.needs.describe(links) if links else ""
        cure = self.install if observations.is_local else self.install_there
        for host, inspection in observations.list_emulators():
            facts = inspection.read_program(self.name)
            yield _check_program(host, self.program, facts, need, cure)
        yield from observations.skip_uninspected()


def _check_program(
    host: str, program: str, facts: ProgramFacts, need: str, cure: str
) -> StageFinding:
    """Return the finding about a program on a host.

    Args:
        host: The host.
        program: The name of the program.
        facts: The program's version or error, as the agent reported them.
        need: A clause on the links that need the program, such as `link wireless is a radio`; "" if
            no link needs it.
        cure: The cure if the program does not work.
    """
    version, error = (facts.version or "").split()[-1:], facts.error
    status_if_lacking: Status = "failure" if need else "warning"
    if error is not None:
        message = f"{program} does not run: {' '.join(error.split())}"
        return StageFinding([host], status_if_lacking, message, cure)
    if not version and need:
        return StageFinding([host], "failure", f"{need}, and there is no {program}", cure)
    if not version:
        return StageFinding([host], "ok", f"no {program} is installed")
    if version != [__version__]:
        message = f"the host has {program} {version[0]}, but this is nagi {__version__}"
        return StageFinding([host], status_if_lacking, message, cure)
    return StageFinding([host], "ok", f"{program} {version[0]}")
