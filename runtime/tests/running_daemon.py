# SPDX-License-Identifier: Apache-2.0
"""Runs one of nagi's daemons in the namespace `middle`, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self


class RunningDaemon:
    """A running daemon: a context manager that waits until it is ready, and kills it on exit.

    `output` has the lines that the daemon has printed so far.
    """

    def __init__(self, wire: Any, executable: str, config: Path) -> None:
        self.wire = wire
        self.output = ""
        self._name = Path(executable).name
        self.process = wire.start("middle", executable, "run", str(config))

    def __enter__(self) -> Self:
        while "ready" not in self.output:
            line = self.process.stdout.readline()
            assert line, f"{self._name} did not start: {self.output}"
            self.output += line
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, text: str) -> None:
        """Read the output until it contains `text`."""
        while text not in self.output:
            line = self.process.stdout.readline()
            assert line, f"{self._name} ended without saying {text!r}: {self.output}"
            self.output += line

    def wait_until_ended(self, timeout_s: float = 10.0) -> tuple[int, str]:
        """Wait until the daemon ends by itself, and return its exit status and its output."""
        rest, _ = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, self.output + rest

    def terminate(self, signal: str = "TERM") -> None:
        """Send the daemon a signal and wait until it has ended."""
        self.wire.run("middle", "pkill", f"-{signal}", "-x", self._name)
        self.process.wait(5)
