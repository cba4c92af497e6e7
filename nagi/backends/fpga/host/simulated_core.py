# SPDX-License-Identifier: Apache-2.0
"""Run nagi-fpga, which simulates the core of the FPGA that carries one link of a run.

nagi-fpga and nagi-link communicate over a pair of sockets. nagi-link configures nagi-fpga, and
ends nagi-fpga by closing its socket.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import Optional

from nagi_agent.commands import describe_exit_status
from nagi_agent.contracts import LinkPlan, RunPlan
from nagi_agent.emulator import find_missing_program
from nagi_agent.processes import end_process, read_log_tail, start_process

NAME = "nagi-fpga"
_END_TIMEOUT_S = 5.0


class SimulatedCore:
    """A process of nagi-fpga.

    Args:
        program: path of nagi-fpga.
        link: name of the link that the core carries.
        directory: working directory of nagi-fpga, in which its log is written.

    Attributes:
        descriptors: the file descriptor of the socket that nagi-link inherits.
    """

    def __init__(self, program: str, link: str, directory: str) -> None:
        self._link = link
        self._log = os.path.join(directory, f"{NAME}.{link}.log")
        self._socket, core_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.descriptors: tuple[int, ...] = (self._socket.fileno(),)
        with core_socket, open(self._log, "wb") as log:
            self._process = start_process(
                [program, "run", "--link", link, "--socket", str(core_socket.fileno())],
                stderr=log,
                cwd=directory,
                pass_fds=(core_socket.fileno(),),
            )

    def close_descriptors(self) -> None:
        self._socket.close()

    def check(self) -> None:
        """Raise RuntimeError if nagi-fpga has ended with an exit status other than 0."""
        status = self._process.poll()
        if status:
            description = describe_exit_status(status)
            raise RuntimeError(
                f"link {self._link}: {NAME} {description}: {read_log_tail(self._log)}"
            )

    def finish(self) -> None:
        """Wait until nagi-fpga ends. Call after nagi-link has ended.

        Raises:
            RuntimeError: The exit status of nagi-fpga is not 0, or it had to be killed.
        """
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self.check()

    def kill(self) -> None:
        self._socket.close()
        end_process(self._process, signal.SIGKILL, _END_TIMEOUT_S)


def list_simulated(plan: RunPlan) -> list[LinkPlan]:
    """Return the links whose core nagi-fpga simulates."""
    return [
        link
        for link in plan.carried_by("fpga")
        if link.fpga is not None and link.fpga.by == "simulated"
    ]


def find_problem(plans: list[RunPlan], nagi_fpga: Optional[str]) -> Optional[str]:
    """Return the message that nagi-fpga is missing, with the cure.

    Return None if nagi-fpga exists, or no link of the plans has a simulated core.

    Args:
        plans: the runs to check.
        nagi_fpga: path of nagi-fpga, or None if the batch does not name it.
    """
    return find_missing_program(
        (link for plan in plans for link in list_simulated(plan)),
        ("is an FPGA link", "are FPGA links"),
        nagi_fpga,
        NAME,
        "build it with `make fpga-simulation`",
    )
