# SPDX-License-Identifier: Apache-2.0
"""Run programs that forward frames in a run: nagi-link, and others with a control socket."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from typing import Optional

from nagi_p4.unix_sockets import connect

from nagi_agent.commands import describe_exit_status
from nagi_agent.contracts import Json
from nagi_agent.processes import end_process, read_log_tail, start_process

START_TIMEOUT_S = 10.0  # setting up one interface takes about 0.1 s
END_TIMEOUT_S = 5.0


class Daemon:
    """A running program that has a configuration file, a log and a control socket.

    The program's working directory is the directory of its files. So the program can name its
    control socket by a short relative path, even if the path of the directory is too long for a
    Unix socket.

    Args:
        name: name of the program, of its configuration (`name`.json) and of its log (`name`.log).
        executable: path of the program.
        configuration: content of the configuration file.
        directory: directory of these files.
        socket: file name of the control socket; None for `name`.sock.
        timeout_s: time limit to start, in seconds; half of it is the limit to end.
        environment: variables to add to the agent's environment.
        pass_fds: file descriptors that the program inherits.
        user: if root starts the program, the program changes to this user when its files are open;
            None keeps root.
    """

    def __init__(
        self,
        name: str,
        executable: str,
        configuration: Json,
        directory: str,
        *,
        socket: Optional[str] = None,
        timeout_s: float = START_TIMEOUT_S,
        environment: Optional[dict[str, str]] = None,
        pass_fds: tuple[int, ...] = (),
        user: Optional[str] = None,
    ) -> None:
        self.name = name
        if user is not None and os.geteuid() == 0:
            configuration = {**configuration, "user": user}
        self.socket = os.path.join(directory, socket or name_control_socket(name))
        self._timeout_s = timeout_s
        self._log = os.path.join(directory, f"{name}.log")
        with open(os.path.join(directory, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(configuration, file, indent=1)
        with open(self._log, "wb") as log:
            self._process = start_process(
                [executable, "run", f"{name}.json"],
                stderr=log,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                pass_fds=pass_fds,
            )

    def begin(self) -> None:
        """Wait until the control socket accepts connections.

        Raises:
            RuntimeError: The program ended, or did not start in time.
        """
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline:
            try:
                connect(self.socket, self._timeout_s).close()
                return
            except OSError:
                pass
            if self._process.poll() is not None:
                break
            time.sleep(0.005)
        self.check()
        raise RuntimeError(f"{self.name} did not start: {self._read_log()}")

    def check(self) -> None:
        """Raise RuntimeError if the program has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} {self._describe_end()}: {self._read_log()}")

    def finish(self) -> None:
        """End the program by SIGTERM.

        Raises:
            RuntimeError: The program had ended before, or its exit status is not 0.
        """
        self.check()
        status = end_process(self._process, signal.SIGTERM, self._timeout_s / 2)
        self._remove_socket()
        if status != 0:
            raise RuntimeError(f"{self.name} {self._describe_end()}: {self._read_log()}")

    def kill(self) -> None:
        end_process(self._process, signal.SIGKILL, END_TIMEOUT_S)
        self._remove_socket()

    def _remove_socket(self) -> None:
        """Remove the control socket, which the user of the program may not be allowed to remove."""
        with suppress(FileNotFoundError):
            os.unlink(self.socket)

    def _describe_end(self) -> str:
        return describe_exit_status(self._process.returncode)

    def _read_log(self) -> str:
        return read_log_tail(self._log)


def name_control_socket(name: str) -> str:
    """Return the file name of a program's control socket."""
    return f"{name}.sock"
