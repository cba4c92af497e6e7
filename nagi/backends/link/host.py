# SPDX-License-Identifier: Apache-2.0
"""Start nagi-link on the emulator's host."""

from __future__ import annotations

import shutil

from nagi_agent.backends import HostPart, Running
from nagi_agent.contracts import Batch, RunPlan
from nagi_agent.emulator import Emulator
from nagi_agent.job import Job


class LinkHost(HostPart):
    """nagi-link, which carries all links and media unless another backend replaces it."""

    def find_problems(self, batch: Batch) -> list[str]:
        if batch.is_emulator and shutil.which(batch.nagi_link) is None:
            return [f"there is no {batch.nagi_link}; build it with `make`"]
        return []

    def drives(self, plan: RunPlan, job: Job) -> bool:
        return job.is_emulator

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        return Emulator(job, plan, epoch_s, directory, live=live)


part = LinkHost()
