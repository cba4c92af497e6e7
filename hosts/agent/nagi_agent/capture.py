# SPDX-License-Identifier: Apache-2.0
"""Captures: tcpdump, nanosecond stamps, headers only, as an ordinary user with CAP_NET_RAW."""

from __future__ import annotations

import os
import re
import signal
import time

from nagi_agent.commands import status_in_words
from nagi_agent.contracts import CaptureCount
from nagi_agent.processes import end, log_of, start, unprivileged

_BUFFER_KIB = 32768  # what may pile up while tcpdump is not scheduled
_VIRTUAL_BUFFER_KIB = 4096
_START_TIMEOUT_S = 2.0
_END_TIMEOUT_S = 5.0
_FILE_HEADER, _RECORD_HEADER = 24, 16  # bytes


class Capture:
    """One running capture of an interface into a file. `virtual`: where no packets come while
    tcpdump runs. A megabyte is written at once: a system call a page takes the processor from
    what is measured."""

    def __init__(
        self, interface: str, path: str, snap_bytes: int, user: str, *, virtual: bool = False
    ) -> None:
        self._interface = interface
        self._path = path
        self._log = path + ".log"
        command = [
            *unprivileged(user, "net_raw"),
            "stdbuf",
            "--output=1M",
            "tcpdump",
            "-i",
            interface,
            "-n",
            "--no-promiscuous-mode",
            "--time-stamp-precision=nano",
            "-s",
            str(snap_bytes),
            "-B",
            str(_VIRTUAL_BUFFER_KIB if virtual else _BUFFER_KIB),
            "-w",
            "-",
        ]
        # The files are opened here, so that tcpdump needs no right to.
        with open(path, "wb") as file, open(self._log, "wb") as log:
            self._process = start(command, stdout=file, stderr=log)

    def wait_until_running(self) -> None:
        """Returns when tcpdump listens. Raises RuntimeError if it does not."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            said = log_of(self._log)
            if "listening on" in said:
                return
            self._check()
            time.sleep(0.01)
        raise RuntimeError(f"tcpdump on {self._interface} did not start: {log_of(self._log)}")

    def _check(self) -> None:
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(
                f"tcpdump on {self._interface} {status_in_words(status)}: {log_of(self._log)}"
            )

    def stop(self) -> CaptureCount:
        """Ends the capture. Returns tcpdump's own count of packets and drops."""
        self._check()
        end(self._process, signal.SIGINT, _END_TIMEOUT_S)
        said = log_of(self._log, lines=5)
        counts = {}
        for key, words in (
            ("captured", "packets? captured"),
            ("received", "packets? received by filter"),
            ("dropped", "packets? dropped by kernel"),
        ):
            match = re.search(rf"(\d+) {words}", said)
            if match is None:
                raise RuntimeError(f"tcpdump on {self._interface} gave no counts: {said}")
            counts[key] = int(match[1])
        size = os.path.getsize(self._path)
        if size < _FILE_HEADER + _RECORD_HEADER * counts["captured"]:  # tcpdump does not look
            raise RuntimeError(
                f"tcpdump on {self._interface} captured {counts['captured']} packets, but wrote "
                f"{size} bytes; is the disk full?"
            )
        return CaptureCount(file=os.path.basename(self._path), **counts)

    def kill(self) -> None:
        end(self._process, signal.SIGKILL, _END_TIMEOUT_S)
