# SPDX-License-Identifier: Apache-2.0
"""Sends numbered packets from the host `left` to the host `right`, for tests."""

from __future__ import annotations

import subprocess
from typing import Any

_SEND = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range({count}):
    s.sendto(i.to_bytes(4, "big") + bytes({size} - 32), ("{to}", 9000))
    time.sleep({gap})
"""
_RECEIVE = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("{to}", 9000))
print("ready", flush=True)
s.settimeout({timeout_s})
got = []
try:
    while True:
        data = s.recv(2000)
        got.append((int.from_bytes(data[:4], "big"), time.clock_gettime(time.CLOCK_MONOTONIC)))
except TimeoutError:
    pass
for number, at in got:
    print(number, at)
"""


class Numbered:
    """Sends and receives numbered packets; `to` is the address of `right`."""

    def __init__(self, wire: Any, to: str) -> None:
        self._wire = wire
        self._to = to

    def start_receiver(self, timeout_s: float = 1.0) -> subprocess.Popen[str]:
        """Start a receiver, which prints a line per packet `timeout_s` after the last one."""
        program = _RECEIVE.format(to=self._to, timeout_s=timeout_s)
        process: subprocess.Popen[str] = self._wire.start("right", "python3", "-c", program)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    def send(self, count: int, gap: float, size: int = 1000) -> None:
        program = _SEND.format(to=self._to, count=count, gap=gap, size=size)
        self._wire.run("left", "python3", "-c", program)

    def exchange(
        self, count: int, gap: float, size: int = 1000, timeout_s: float = 1.0
    ) -> list[tuple[int, float]]:
        """Send packets, and return number and arrival (CLOCK_MONOTONIC, s) of those received."""
        receiver = self.start_receiver(timeout_s)
        self.send(count, gap, size)
        lines, _ = receiver.communicate(timeout=60)
        return [
            (int(number), float(at)) for number, at in (line.split() for line in lines.splitlines())
        ]
