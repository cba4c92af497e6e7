# SPDX-License-Identifier: Apache-2.0
"""A client of nagi-fpga, in place of nagi-link (daemon/fpga_protocol.hpp)."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from nagi_contracts import __version__
from nagi_contracts.paths import executable

CONFIGURE, ADVANCE, COUNT, REFUSED = 1, 2, 3, 4
TICK_NS = 8
NEVER = 2**63 - 1
COUNTERS = [
    "offered",
    "offered_bytes",
    "delivered",
    "delivered_bytes",
    "queue_overflows",
    "channel_losses",
    "marked",
    "transmitted",
    "transmitted_bytes",
    "transmitting_ns",
    "max_waiting",
    "memory_overflows",
    "late_releases",
    "max_late_ns",
]


class Refused(Exception):
    """nagi-fpga refused a request."""


@dataclass(frozen=True)
class Arrival:
    at_ns: int
    direction: int
    frame: bytes


@dataclass(frozen=True)
class Departure:
    """The core's record of a packet, and its frame if it was delivered."""

    arrived_ns: int
    left_ns: int
    index: int
    identity: int
    late_ns: int
    ip_bytes: int
    direction: int
    fate: int
    ecn: int
    marked: bool
    frame: bytes


class FpgaSession:
    """A running nagi-fpga."""

    def __init__(self) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        command = [executable("nagi-fpga"), "run", "--link", "l", "--socket", str(its.fileno())]
        with its:
            self.process = subprocess.Popen(
                command, pass_fds=(its.fileno(),), stderr=subprocess.PIPE, text=True
            )

    def __enter__(self) -> FpgaSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        try:
            self.process.communicate(timeout=10)
        finally:
            self.process.kill()

    def configure(
        self, forward: dict[str, Any], backward: dict[str, Any], *, seed: int = 1, link: int = 0,
        version: str = __version__,
    ) -> dict[str, Any]:  # fmt: skip
        configuration = {
            "version": version,
            "protocol": 1,
            "link": link,
            "seed": seed,
            "forward": forward,
            "backward": backward,
        }
        answer: dict[str, Any] = json.loads(
            self.request(CONFIGURE, json.dumps(configuration).encode())
        )
        return answer

    def advance(self, to_ns: int, arrivals: list[Arrival]) -> tuple[int, list[Departure]]:
        """Advance time, and return the instant of the next event and the departures."""
        request = struct.pack("<qII", to_ns, len(arrivals), 0)
        for arrival in arrivals:
            request += struct.pack("<qHB5x", arrival.at_ns, len(arrival.frame), arrival.direction)
            request += arrival.frame
        answer = self.request(ADVANCE, request)
        next_ns, count = struct.unpack_from("<qI4x", answer)
        offset, departures = 16, []
        for _ in range(count):
            *values, length, direction, fate, ecn, marked = struct.unpack_from(
                "<qqIIIHHBBBB4x", answer, offset
            )
            offset += 40
            frame = answer[offset : offset + length]
            departures.append(Departure(*(*values, direction, fate, ecn, bool(marked), frame)))
            offset += length
        assert offset == len(answer)
        return next_ns, departures

    def count(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the counters of forward and backward."""
        values = struct.unpack("<28Q", self.request(COUNT, b""))
        forward, backward = values[:14], values[14:]
        return dict(zip(COUNTERS, forward, strict=True)), dict(zip(COUNTERS, backward, strict=True))

    def request(self, kind: int, body: bytes) -> bytes:
        self._socket.sendall(struct.pack("<II", kind, len(body)) + body)
        answered, length = struct.unpack("<II", self._read(8))
        answer = self._read(length)
        if answered == REFUSED:
            raise Refused(answer.decode())
        assert answered == kind
        return answer

    def _read(self, length: int) -> bytes:
        read = b""
        while len(read) < length:
            more = self._socket.recv(length - len(read))
            assert more, "nagi-fpga ended"
            read += more
        return read
