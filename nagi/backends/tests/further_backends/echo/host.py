# SPDX-License-Identifier: Apache-2.0
"""Run nagi-echo together with nagi-link. nagi-echo writes echo.json to the run's directory."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from nagi_agent.backends import Companion, HostPart
from nagi_agent.contracts import Json, RunPlan
from nagi_agent.job import Job
from nagi_agent.processes import end_process, start_process


class RunningEcho:
    """A process of nagi-echo.

    Args:
        program: path of nagi-echo.
        words: the words of the links, in the order of the links.
        directory: working directory of nagi-echo.
    """

    descriptors: tuple[int, ...] = ()

    def __init__(self, program: str, words: list[str], directory: str) -> None:
        self._process = start_process([program, *words], cwd=directory)

    def close_descriptors(self) -> None:
        pass

    def check(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError("nagi-echo has ended")

    def finish(self) -> None:
        status = end_process(self._process, signal.SIGTERM, 5)
        if status != 0:
            raise RuntimeError(f"nagi-echo ended with status {status}")

    def kill(self) -> None:
        end_process(self._process, signal.SIGKILL, 5)


class EchoHost(HostPart):
    """The host part of echo links: one nagi-echo for all of them."""

    def start_companions(
        self, configuration: Json, plan: RunPlan, job: Job, directory: str
    ) -> Iterator[Companion]:
        words = [link.parts["echo"]["says"] for link in plan.carried_by("echo")]
        if words:
            yield RunningEcho(job.backends["echo"]["program"], words, directory)


part = EchoHost()
