# SPDX-License-Identifier: Apache-2.0
"""Programs of ours that move frames while a run goes on: nagi-link, nagi-sdr, nagi-switch, and
nagi-fpga beside nagi-link."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from typing import Optional

from nagi_p4.unix_sockets import connect

from nagi_agent.commands import status_in_words
from nagi_agent.contracts import Json
from nagi_agent.processes import end, log_of, start

START_TIMEOUT_S = 10.0  # an interface takes about 0.1 s
END_TIMEOUT_S = 5.0


class Daemon:
    """A running one. Its files are in `directory`, which is also where it runs: socket paths may
    not be long, file paths may. `name` is the program's, and theirs; `socket` the control socket's,
    if it is another; `timeout_s`: seconds in which it must have started, and half of them to end;
    `environment`: what it has of its own there; `pass_fds`: descriptors that it inherits; `user`:
    as whom it goes on once all is open, if root starts it."""

    def __init__(
        self,
        name: str,
        program: str,
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
        self.socket = os.path.join(directory, socket or control_socket(name))
        self._timeout_s = timeout_s
        self._log = os.path.join(directory, f"{name}.log")
        with open(os.path.join(directory, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(configuration, file, indent=1)
        with open(self._log, "wb") as log:
            self._process = start(
                [program, "run", f"{name}.json"],
                stderr=log,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                pass_fds=pass_fds,
            )

    def wait_until_ready(self) -> None:
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
        raise RuntimeError(f"{self.name} did not start: {self._said()}")

    def check(self) -> None:
        """Raises RuntimeError if it no longer runs."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} {self._end_in_words()}: {self._said()}")

    def stop(self) -> None:
        self.check()
        status = end(self._process, signal.SIGTERM, self._timeout_s / 2)
        self._remove_socket()
        if status != 0:
            raise RuntimeError(f"{self.name} {self._end_in_words()}: {self._said()}")

    def kill(self) -> None:
        end(self._process, signal.SIGKILL, END_TIMEOUT_S)
        self._remove_socket()

    def _remove_socket(self) -> None:
        """Remove the control socket: the user that it has become may not."""
        with suppress(FileNotFoundError):
            os.unlink(self.socket)

    def _end_in_words(self) -> str:
        return status_in_words(self._process.returncode)

    def _said(self) -> str:
        return log_of(self._log)


def control_socket(name: str) -> str:
    """What the control socket of a program is called."""
    return f"{name}.sock"
