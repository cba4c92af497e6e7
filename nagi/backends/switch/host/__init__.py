# SPDX-License-Identifier: Apache-2.0
"""Run switches on the hosts of nodes, where they forward packets instead of the kernel."""

from __future__ import annotations

from nagi_agent.backends import HostPart, Running
from nagi_agent.contracts import Batch, Json, RunPlan
from nagi_agent.job import Job

from nagi.backends.switch.host import bmv2_service, cpu_port, switches


class SwitchHost(HostPart):
    """The host part of switches. The plan of a run selects the target, such as nagi-switch."""

    commands = {"bmv2": bmv2_service.main}  # noqa: RUF012
    undo = cpu_port.UNDO

    def find_problems(self, batch: Batch) -> list[str]:
        problem = None if batch.is_emulator else switches.find_problem(batch)
        return [] if problem is None else [problem]

    def read_facts(self, job: Job) -> Json:
        if job.is_emulator:
            return {}
        installed = switches.list_installed(job)
        return {target: facts.to_json() for target, facts in installed.items()}

    def drives(self, plan: RunPlan, job: Job) -> bool:
        return switches.find_switch(plan, job.node) is not None

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        return switches.start_switch(job, plan, directory, epoch_s, live=live)


part = SwitchHost()
