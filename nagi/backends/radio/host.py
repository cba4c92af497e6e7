# SPDX-License-Identifier: Apache-2.0
"""Run radios on the emulator's host: the agent starts nagi-sdr, and nagi-sdr starts nagi-link."""

from __future__ import annotations

import os
from typing import Optional

from nagi_agent.backends import HostPart, Running
from nagi_agent.contracts import Batch, Json, RunPlan
from nagi_agent.emulator import (
    Emulator,
    drop_nulls,
    find_missing_program,
    read_program_facts,
    record_transmissions,
)
from nagi_agent.job import Job

NAME = "nagi-sdr"
# Long enough for several processes that import GNU Radio at the same time on a busy machine.
START_TIMEOUT_S = 60.0
ACCOUNT = "radios.json"


class RadioHost(HostPart):
    """nagi-sdr, which carries all links of a run if at least one of them is a radio."""

    def find_problems(self, batch: Batch) -> list[str]:
        if not batch.is_emulator:
            return []
        problem = find_problem([run.plan for run in batch.runs], find_program(batch.backends))
        return [] if problem is None else [problem]

    def read_facts(self, job: Job) -> Json:
        return read_program_facts(job, find_program(job.backends))

    def drives(self, plan: RunPlan, job: Job) -> bool:
        return job.is_emulator and bool(plan.carried_by("radio"))

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        program = find_program(job.backends)
        if program is None:
            raise RuntimeError("a link is a radio, but the batch does not name nagi-sdr")
        if job.virtual:
            # A guest's files belong to the user who started the guest. nagi-sdr gives up the
            # privileges of the guest's root, and must be able to create files in the directory
            # after that.
            os.chmod(directory, 0o777)
        return Emulator(
            job,
            plan,
            epoch_s,
            directory,
            live=live,
            name=NAME,
            program=program,
            timeout_s=START_TIMEOUT_S,
            environment={"NAGI_LINK": job.nagi_link},
        )

    def configure(self, configuration: Json, plan: RunPlan, job: Job) -> None:
        """Add the settings of radios to their links, and let nagi-link record transmissions."""
        radios = {link.name: link.radio for link in plan.links if link.radio is not None}
        if not radios:
            return
        record_transmissions(configuration)
        if any(radio.get("by") == "uhd" for radio in radios.values()):
            configuration["radio_account"] = ACCOUNT
        for link in configuration["links"]:
            if link["name"] in radios:
                link["radio"] = drop_nulls(radios[link["name"]])


def find_program(programs: dict[str, Json]) -> Optional[str]:
    """Return the path of nagi-sdr, or None if the batch does not name it.

    Args:
        programs: `backends` of the batch: backend -> its programs.
    """
    path: Optional[str] = programs.get("radio", {}).get("nagi_sdr")
    return path


def find_problem(plans: list[RunPlan], nagi_sdr: Optional[str]) -> Optional[str]:
    """Return the message that nagi-sdr is missing, with the cure.

    Return None if nagi-sdr exists, or no link of the plans is a radio.

    Args:
        plans: the runs to check.
        nagi_sdr: path of nagi-sdr, or None if the batch does not name it.
    """
    return find_missing_program(
        (link for plan in plans for link in plan.carried_by("radio")),
        ("is a radio", "are radios"),
        nagi_sdr,
        NAME,
        "install GNU Radio and nagi-sdr with `make sdr`",
    )


part = RadioHost()
