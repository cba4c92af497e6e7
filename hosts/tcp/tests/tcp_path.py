# SPDX-License-Identifier: Apache-2.0
"""A TCP connection of the kernel's over an emulated link, and what can be seen of it from outside.

Hosts are set up as the profile `ns2` of hosts/profiles.yaml says. Segments leave one by one, and
every one is acknowledged at once, so that the n-th packet on the link is the same in every run. The
minimum RTO is 0.5 s instead of 0.2, so that a busy machine causes none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from emulated import Emulator, lay_wire
from nagi.plan.schemes import base_sysctls, profiles, schemes
from nagi.records.packets import QUEUE_OVERFLOW, get_fates, read_records
from nagi_contracts.paths import executable, scheme_object

NAGI_TCP = str(executable("nagi-tcp"))
# The interpreter behind this environment, which other users may not enter.
PYTHON = str(Path(sys.executable).resolve())
PORT = 9000
SEGMENT = 1448  # payload bytes, with timestamps
FIRST_DATA = 2  # index on the link, after SYN and ACK

OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)

_SEND = """
import json, socket, struct, sys, time
name, seconds, total = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
connection = socket.socket()
connection.setsockopt(socket.IPPROTO_TCP, 13, name.encode())  # TCP_CONGESTION
connection.connect(("10.0.0.2", 9000))
connection.setblocking(False)
def read_info():
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232)
begun, sent, rows = time.monotonic(), 0, []
while time.monotonic() - begun < seconds:
    if sent < total:
        try:
            sent += connection.send(bytes(min(65536, total - sent)))
        except BlockingIOError:
            pass
    # The kernel reads the window before it locks the socket, so a timer that expires in between
    # leaves an old window beside a new state: take a reading that the next one repeats.
    info, following = b"", read_info()
    while info != following:
        info, following = following, read_info()
    words = struct.unpack_from("=24I", info, 8)
    row = [info[1], *(words[i] for i in (18, 17, 4, 5, 6, 7, 23, 15))]
    if not rows or row[:-1] != rows[-1][1:-1]:
        rows.append([time.monotonic(), *row])
    if sent == total and words[4] == 0:
        break
    time.sleep(0.001)
print(json.dumps(rows))
# A reset ends it on both sides, so that the next run has the link to itself.
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
connection.close()
"""
_RECEIVE = """
import os, socket
listener = socket.create_server(("10.0.0.2", 9000))
print(os.getpid(), flush=True)
connection, _ = listener.accept()
try:
    while connection.recv(1 << 20):
        pass
except ConnectionResetError:
    pass
listener.accept()
"""


@dataclass(frozen=True)
class Row:
    """TCP_INFO of the sender, whenever it had changed (looked at every millisecond)."""

    at: float  # CLOCK_MONOTONIC, seconds
    state: int
    window: int
    threshold: int
    unacknowledged: int
    sacked: int
    lost: int
    retransmitted: int
    retransmissions: int
    rtt_us: int


@dataclass(frozen=True)
class Observed:
    rows: list[Row]
    events: list[dict[str, Any]]  # what nagi-tcp wrote; empty for the kernel's own schemes
    sent: npt.NDArray[np.float64]  # when data packets came to the link, as Row.at
    overflows: int  # packets that found the link's queue full
    merged: int  # ACKs that the sender's kernel has merged with others while its socket was busy

    def with_events(self, written: Path) -> Observed:
        lines = written.read_text().splitlines()
        return replace(self, events=[json.loads(line) for line in lines])

    def of_kind(self, *kinds: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] in kinds]

    def episodes(self, state: int) -> list[list[Row]]:
        """The rows of each time the connection was in a state of the kernel's."""
        found: list[list[Row]] = []
        before = None
        for row in self.rows:
            if row.state == state:
                if before != state:
                    found.append([])
                found[-1].append(row)
            before = row.state
        assert found, f"never in state {state}"
        return found

    def in_recovery(self, episode: int = 0) -> Row:
        """What held in the `episode`-th recovery. For the lost segment a larger window is granted,
        for a moment, so it is the row with the smallest."""
        return min(self.episodes(RECOVERY)[episode], key=lambda row: row.window)

    def before(self, at: float) -> Row:
        return [row for row in self.rows if row.at < at][-1]

    def settled(self, after: float) -> Row:
        """The first row after `after` in which nothing is being repaired."""
        for row in self.rows:
            if row.at > after and row.state == OPEN and row.unacknowledged:
                return row
        raise AssertionError("never open again")

    def rounds(self, begin: float, round_trip: float, count: int) -> list[int]:
        """How many packets were sent in each of `count` round trips from `begin` on."""
        edges = begin + round_trip * np.arange(count + 1)
        return [int(number) for number in np.histogram(self.sent, edges)[0]]


@contextmanager
def held(
    program: str | Path, name: str, *arguments: str, sets: Sequence[str] = ()
) -> Iterator[subprocess.Popen[str]]:
    """A scheme that the kernel has under `name` meanwhile. `program`: its name, or an object."""
    given = program if isinstance(program, Path) else scheme_object(program)
    parameters = [each for setting in sets for each in ("--set", setting)]
    process = subprocess.Popen(
        [NAGI_TCP, "hold", str(given), "--as", name, *parameters, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line == f"{name} ready\n", line + process.stderr.read()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=10)


def unique(prefix: str) -> str:
    """A name for the kernel that no other test has."""
    return f"{prefix[:7]}_{os.getpid()}"


class TcpPath:
    """Namespaces `left` and `right`, and in between whatever link a run asks for."""

    def __init__(self, namespaces: Any) -> None:
        self._namespaces = namespaces
        lay_wire(namespaces)
        profile = profiles()["ns2"]
        for name in ("left", "right"):
            sysctls = base_sysctls() | dict(profile.sysctls) | dict(schemes()["tahoe"].sysctls)
            settings = [f"{key}={value}" for key, value in sysctls.items()]
            namespaces.run(name, "sysctl", "-qw", *settings)
            route = f"ip route replace 10.0.0.0/24 dev eth0 initcwnd {profile.initial_window}"
            namespaces.run(name, *route.split(), "quickack", "1", "rto_min", "500ms")
            namespaces.run(name, "ip", "link", "set", "eth0", "gso_max_segs", "1")

    def run(
        self,
        name: str,
        *,
        forward: dict[str, Any],
        seconds: float,
        segments: int,
    ) -> Observed:
        """Sends `segments` from left to right by the congestion control `name`, for `seconds` at
        most. `forward`: the link's configuration that way; back there is its delay alone."""
        with tempfile.TemporaryDirectory() as place:
            directory = Path(place)
            packets = directory / "packets.bin"
            backward = {"delay_ns": forward["delay_ns"]}
            epoch, begun = time.time_ns(), time.monotonic_ns()
            merged = self._merged()
            with Emulator(
                self._namespaces,
                directory,
                forward=forward,
                backward=backward,
                packets=str(packets),
                epoch_realtime_ns=epoch,
            ) as emulator:
                arguments = (name, str(seconds), str(segments * SEGMENT))
                with self._receiver():
                    said = self._namespaces.run("left", PYTHON, "-c", _SEND, *arguments)
                emulator.stop()
            merged = self._merged() - merged
            records = read_records(packets)
        there = records[(records["direction"] == 0) & (records["bytes"] > 100)]
        return Observed(
            rows=[Row(*row) for row in json.loads(said)],
            events=[],
            sent=(there["arrived_ns"] + begun) / 1e9,
            overflows=int((get_fates(there) == QUEUE_OVERFLOW).sum()),
            merged=merged,
        )

    def _merged(self) -> int:
        names, values = self._namespaces.run("left", "cat", "/proc/net/netstat").splitlines()[:2]
        return int(dict(zip(names.split(), values.split(), strict=True))["TCPBacklogCoalesce"])

    @contextmanager
    def _receiver(self) -> Iterator[None]:
        process = self._namespaces.start("right", PYTHON, "-c", _RECEIVE)
        try:
            number = process.stdout.readline().strip()
            assert number.isdecimal(), number + process.stdout.read()
            yield
        finally:
            self._namespaces.run(None, "kill", "-KILL", number)
            process.communicate()
            # What is left of the connection is reset, or the next run would begin with its packets.
            deadline = time.monotonic() + 10
            while self._namespaces.run("right", "cat", "/proc/net/tcp").count("\n") > 1:
                assert time.monotonic() < deadline, "the connection does not end"
                time.sleep(0.02)
