# SPDX-License-Identifier: Apache-2.0
"""One of nagi's daemons in the namespace `middle`, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self


class RunningDaemon:
    """Runs from entry, when it is ready, to exit, when it is killed if it has not been stopped.
    `said`: what it printed until it was ready."""

    def __init__(self, wire: Any, executable: str, config: Path) -> None:
        self.wire = wire
        self.said = ""
        self._name = Path(executable).name
        self.process = wire.start("middle", executable, "run", str(config))

    def __enter__(self) -> Self:
        while "ready" not in self.said:
            line = self.process.stdout.readline()
            assert line, f"{self._name} did not start: {self.said}"
            self.said += line
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def wait_for(self, text: str) -> None:
        """Read what it prints until that has `text`, which has to come."""
        while text not in self.said:
            line = self.process.stdout.readline()
            assert line, f"{self._name} ended without saying {text!r}: {self.said}"
            self.said += line

    def ended(self, timeout_s: float = 10.0) -> tuple[int, str]:
        """Wait until it has ended by itself; return its exit status and what it printed."""
        rest, _ = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, self.said + rest

    def end(self, how: str = "TERM") -> None:
        """Sends it a signal and waits until it has ended."""
        self.wire.run("middle", "pkill", f"-{how}", "-x", self._name)
        self.process.wait(5)
