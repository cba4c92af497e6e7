# SPDX-License-Identifier: Apache-2.0
"""Runs nagi-fpga, which simulates the core of a link's FPGA, for one link of a run. nagi-link has
the other end of its socket, tells it all that it needs, and ends it by closing that."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from typing import Optional

from nagi_agent.commands import status_in_words
from nagi_agent.contracts import RunPlan
from nagi_agent.processes import end, log_of, start

NAME = "nagi-fpga"
_END_TIMEOUT_S = 5.0


class SimulatedCore:
    """A running one. Its log is in `directory`, which is also where it runs."""

    def __init__(self, program: str, link: str, directory: str) -> None:
        self._link = link
        self._log = os.path.join(directory, f"{NAME}.{link}.log")
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with its, open(self._log, "wb") as log:
            self._process = start(
                [program, "run", "--link", link, "--socket", str(its.fileno())],
                stderr=log,
                cwd=directory,
                pass_fds=(its.fileno(),),
            )

    def problem(self) -> Optional[str]:
        """How it ended, if it has before nagi-link did."""
        status = self._process.poll()
        if not status:
            return None
        return f"link {self._link}: {NAME} {status_in_words(status)}: {log_of(self._log)}"

    def stop(self) -> None:
        """Waits for its end, which the end of nagi-link brings. Raises RuntimeError if it ended in
        another way."""
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.returncode != 0:
            raise RuntimeError(self.problem())

    def kill(self) -> None:
        self.socket.close()
        end(self._process, signal.SIGKILL, _END_TIMEOUT_S)


def problem_with(plans: list[RunPlan], nagi_fpga: Optional[str]) -> Optional[str]:
    """What of the plans' simulated cores cannot be had here, with the cure."""
    names = list(dict.fromkeys(link.name for plan in plans for link in plan.simulated_fpgas()))
    if not names or (nagi_fpga is not None and shutil.which(nagi_fpga) is not None):
        return None
    are = f"link {names[0]} is an FPGA's"
    if len(names) > 1:
        are = f"links {', '.join(names)} are FPGAs'"
    return f"{are}, and there is no {nagi_fpga or NAME}; build it with `make fpga-simulation`"
