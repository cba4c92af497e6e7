# SPDX-License-Identifier: Apache-2.0
"""The capture reader in C++ (python/). reading.py and capture.py document its functions."""

from typing import Any

class Refused(Exception):
    """The error for a file that is no capture or cannot be read; `args` are (problem, cure)."""

def scan(
    path: bytes,
    start_ns: int | None,
    end_ns: int | None,
    interval_ns: int,
    relative: bool,
    columns: list[str],
    tunnels: bool,
) -> dict[str, Any]: ...
def rows(
    path: bytes,
    start_ns: int | None,
    end_ns: int | None,
    relative: bool,
    tunnels: bool,
    by: str,
    limit: int,
) -> dict[str, Any]: ...
def trace(
    path: bytes, connection: int, direction: int, tunnels: bool
) -> dict[str, dict[str, Any]]: ...
def match(
    sent: bytes,
    received: bytes,
    start_ns: int | None,
    end_ns: int | None,
    complete: bool,
    sent_clock: list[tuple[int, int]],
    received_clock: list[tuple[int, int]],
) -> dict[str, Any]: ...

class PacketReader:
    def __init__(self, path: bytes, rows: int) -> None: ...
    def next(self) -> dict[str, Any] | None: ...
