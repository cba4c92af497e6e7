# SPDX-License-Identifier: Apache-2.0
"""Run FPGAs on the emulator's host.

nagi-fpga simulates the core of one link, and works together with nagi-link. Boards carry all links
of a run, and replace nagi-link.
"""

from __future__ import annotations

from typing import Iterator

from nagi_agent.backends import Companion, HostPart, Running
from nagi_agent.contracts import Batch, Json, RunPlan
from nagi_agent.emulator import read_program_facts
from nagi_agent.job import Job

from nagi.backends.fpga.host import board_links, simulated_core
from nagi.backends.fpga.host.board_links import BoardLinks
from nagi.backends.fpga.host.simulated_core import SimulatedCore


class FpgaHost(HostPart):
    """The host part of FPGAs, which starts boards, or one nagi-fpga per simulated core."""

    def find_problems(self, batch: Batch) -> list[str]:
        if not batch.is_emulator:
            return []
        plans = [run.plan for run in batch.runs]
        programs = batch.backends.get("fpga", {})
        problem = simulated_core.find_problem(plans, programs.get("nagi_fpga"))
        return [
            *([] if problem is None else [problem]),
            *board_links.find_problems(plans, programs.get("images")),
        ]

    def read_facts(self, job: Job) -> Json:
        return read_program_facts(job, job.backends.get("fpga", {}).get("nagi_fpga"))

    def drives(self, plan: RunPlan, job: Job) -> bool:
        return job.is_emulator and bool(board_links.list_board_links(plan))

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        images = job.backends.get("fpga", {}).get("images")
        return BoardLinks(images, plan, epoch_s, directory, live=live)

    def start_companions(
        self, configuration: Json, plan: RunPlan, job: Job, directory: str
    ) -> Iterator[Companion]:
        """Start and yield one nagi-fpga per link with a simulated core.

        The file descriptor of its socket is added to the link in `configuration`.
        """
        configured_links = {link["name"]: link for link in configuration["links"]}
        program = job.backends.get("fpga", {}).get("nagi_fpga")
        for link in simulated_core.list_simulated(plan):
            if program is None:
                raise RuntimeError(
                    f"link {link.name} is an FPGA link, but the batch does not name nagi-fpga"
                )
            core = SimulatedCore(program, link.name, directory)
            (configured_links[link.name]["core"],) = core.descriptors
            yield core


part = FpgaHost()
