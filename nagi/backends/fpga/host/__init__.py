# SPDX-License-Identifier: Apache-2.0
"""FPGAs on the emulator's host: simulated cores run beside nagi-link, boards run in its place."""

from __future__ import annotations

from typing import Iterator

from nagi_agent.backends import Companion, HostPart, Running
from nagi_agent.contracts import Batch, Json, RunPlan
from nagi_agent.emulator import read_optional_version
from nagi_agent.job import Job

from nagi.backends.fpga.host import board_links, simulated_core
from nagi.backends.fpga.host.board_links import BoardLinks
from nagi.backends.fpga.host.simulated_core import SimulatedCore


class FpgaHost(HostPart):
    """Boards carry all links of a run, or none. nagi-fpga simulates the core of a single link."""

    def find_problems(self, batch: Batch) -> list[str]:
        if not batch.is_emulator:
            return []
        plans = [run.plan for run in batch.runs]
        problem = simulated_core.find_problem(plans, batch.nagi_fpga)
        return [
            *([] if problem is None else [problem]),
            *board_links.find_problems(plans, batch.fpga_images),
        ]

    def read_facts(self, job: Job) -> Json:
        version, error = read_optional_version(job, job.nagi_fpga)
        return {"nagi_fpga": version, "nagi_fpga_error": error}

    def drives(self, plan: RunPlan, job: Job) -> bool:
        return job.is_emulator and bool(board_links.list_on_boards(plan))

    def start(
        self, job: Job, plan: RunPlan, begins: float, directory: str, *, live: bool = False
    ) -> Running:
        return BoardLinks(job.fpga_images, plan, begins, directory, live=live)

    def start_companions(
        self, configuration: Json, plan: RunPlan, job: Job, directory: str
    ) -> Iterator[Companion]:
        configured = {link["name"]: link for link in configuration["links"]}
        for link in simulated_core.list_simulated(plan):
            if job.nagi_fpga is None:
                raise RuntimeError("a link is an FPGA's, and the batch names no nagi-fpga")
            core = SimulatedCore(job.nagi_fpga, link.name, directory)
            (configured[link.name]["core"],) = core.descriptors
            yield core


part = FpgaHost()
