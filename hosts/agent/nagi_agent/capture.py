# SPDX-License-Identifier: Apache-2.0
"""Capture packet headers with nanosecond timestamps.

tcpdump captures, as an ordinary user with the capability CAP_NET_RAW.
"""

from __future__ import annotations

import os
import re
import signal
import time

from nagi_agent.commands import describe_exit_status
from nagi_agent.contracts import CaptureCount
from nagi_agent.processes import build_setpriv_prefix, end_process, read_log_tail, start_process

_BUFFER_KIB = 32768  # for packets that arrive while tcpdump is not scheduled
_VIRTUAL_BUFFER_KIB = 4096
_START_TIMEOUT_S = 2.0
_END_TIMEOUT_S = 5.0
_FILE_HEADER, _RECORD_HEADER = 24, 16  # bytes


class Capture:
    """A running capture of an interface into a file.

    tcpdump writes 1 MB at a time, because one system call per page would take processor time from
    the programs that are measured.

    Args:
        interface: the interface to capture.
        path: the capture file; the log of tcpdump is `path`.log.
        snap_bytes: bytes to keep of each frame.
        user: the user that runs tcpdump.
        virtual: whether the run is in virtual time. No packets arrive while tcpdump runs then, so a
            small buffer suffices.
    """

    def __init__(
        self, interface: str, path: str, snap_bytes: int, user: str, *, virtual: bool = False
    ) -> None:
        self._interface = interface
        self._path = path
        self._log = path + ".log"
        command = [
            *build_setpriv_prefix(user, "net_raw"),
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
        # The agent opens the files, so tcpdump needs no permission to create them.
        with open(path, "wb") as file, open(self._log, "wb") as log:
            self._process = start_process(command, stdout=file, stderr=log)

    def wait_until_running(self) -> None:
        """Wait until tcpdump captures. Raise RuntimeError if tcpdump ends or starts too slowly."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if "listening on" in read_log_tail(self._log):
                return
            self._check()
            time.sleep(0.01)
        raise RuntimeError(
            f"tcpdump on {self._interface} did not start: {read_log_tail(self._log)}"
        )

    def _check(self) -> None:
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(
                f"tcpdump on {self._interface} {describe_exit_status(status)}: "
                f"{read_log_tail(self._log)}"
            )

    def stop(self) -> CaptureCount:
        """End the capture, and return the counts of packets and drops that tcpdump prints.

        Raises:
            RuntimeError: tcpdump had ended before, printed no counts, or wrote fewer bytes than the
                packets that it counted need.
        """
        self._check()
        end_process(self._process, signal.SIGINT, _END_TIMEOUT_S)
        summary = read_log_tail(self._log, lines=5)
        counts = {}
        for key, words in (
            ("captured", "packets? captured"),
            ("received", "packets? received by filter"),
            ("dropped", "packets? dropped by kernel"),
        ):
            match = re.search(rf"(\d+) {words}", summary)
            if match is None:
                raise RuntimeError(f"tcpdump on {self._interface} printed no counts: {summary}")
            counts[key] = int(match[1])
        size = os.path.getsize(self._path)
        # tcpdump does not check whether its output was written.
        if size < _FILE_HEADER + _RECORD_HEADER * counts["captured"]:
            raise RuntimeError(
                f"tcpdump on {self._interface} captured {counts['captured']} packets, but wrote "
                f"{size} bytes; is the disk full?"
            )
        return CaptureCount(file=os.path.basename(self._path), **counts)

    def kill(self) -> None:
        end_process(self._process, signal.SIGKILL, _END_TIMEOUT_S)
