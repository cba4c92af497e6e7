# SPDX-License-Identifier: Apache-2.0
"""Reading of a capture's connections without pandas, for `nagi metrics`.

read() returns all connections as NumPy arrays. read_rows() returns the connections with the largest
values in one column as Python dicts, without NumPy, because importing NumPy takes longer than
reading a gigabyte. Both functions release the interpreter lock while they read, so that
read_in_parallel() can read several files at once.

Memory while reading: 0.8 kB for a connection with only a SYN, up to 2.5 kB for one with data in
both directions, until it is closed and 60 s have passed in the capture; then 0.1 to 0.3 kB. In
addition, until a connection has ended: 1 to 10 kB per direction with more than 16 RTT samples, and
at most 64 KiB for holes in its sequence numbers. Over all connections: at most 40 MiB for segments
that wait for their acknowledgements. Arrays take 8 bytes per value: select columns if there are
millions of connections. Measured: 793 MiB for 1,000,000 SYNs, 97 MiB for 112,000 connections of 12
packets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import nagi_captures_native
from nagi_contracts.errors import InputError, refuse

from nagi_captures.flow_columns import FLOW_COLUMNS

if TYPE_CHECKING:
    import numpy.typing as npt

Columns: TypeAlias = "dict[str, npt.NDArray[Any]]"  # name of the column -> its values
_Result = TypeVar("_Result")

# A reason in Totals.unused: the packet has no ports, so it can be assigned to no connection.
FRAGMENT = "later fragment"

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Totals:
    """The counts and times of a capture as a whole."""

    packets: int  # records of any kind in the file
    bytes: int  # total length of these records on the wire, link layer included
    first_ns: int  # earliest and latest time of a packet; 0 if there is none
    last_ns: int
    packets_back: int  # packets with a time before the time of the previous packet
    max_back_ns: int  # the largest difference between such times
    frames_of_several: int  # frames with several packets (A-MSDU), of which only the first is read
    packets_without_time: int  # simple packets of pcapng; they get the time of the previous packet
    damage: str | None  # one sentence with file and byte; None if the file is not damaged
    unused: dict[str, int]  # reason -> packets that belong to no connection
    # protocol (TCP, UDP, ARP, PPPoE discovery ...) -> packets, the most frequent protocol first
    contents: dict[str, int]
    start_ns: int | None  # begin of the measurement interval; None is the begin of the capture
    end_ns: int | None  # end of the measurement interval; None is the end of the capture


@dataclass(frozen=True)
class Flows(Totals):
    """The connections of a capture, one row per direction: row 2 x connection + direction."""

    columns: Columns  # the selected columns of FLOW_COLUMNS
    series: Columns | None  # capture.SERIES_COLUMNS; None if read() got no interval_ns


@dataclass(frozen=True)
class Rows(Totals):
    """The connections of a capture with the largest values in one column, largest first."""

    connections: int  # number of all connections in the capture
    # Both directions of each connection in consecutive rows. Keys are those of FLOW_COLUMNS; values
    # are plain Python, with None for NaN.
    rows: list[dict[str, Any]]


def read(
    path: Path | str,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    relative: bool = False,
    interval_ns: int | None = None,
    columns: Sequence[str] | None = None,
    tunnels: bool = False,
) -> Flows:
    """Read a capture once and return its connections as arrays.

    Args:
        path: The capture; "-" is standard input.
        start_ns: Begin of the measurement interval [start, end), for the columns that depend on it,
            in ns since the Unix epoch; None is the begin of the capture.
        end_ns: End of the measurement interval; None is the end of the capture.
        relative: Whether start_ns and end_ns are relative to the time of the first packet.
        interval_ns: Length of the intervals of `series`; None leaves `series` out of the result.
        columns: Names in FLOW_COLUMNS; None means all.
        tunnels: Whether to read the packets within GRE, VXLAN, Geneve, GTP-U and IP-in-IP in place
            of the tunnels' packets.

    Raises:
        InputError: The file is no capture or cannot be read.
        ValueError: An argument is invalid.
    """
    if interval_ns is not None and interval_ns <= 0:
        raise ValueError(f"interval_ns is {interval_ns}; it must be positive")
    names = list(FLOW_COLUMNS) if columns is None else list(columns)
    for name in names:
        if name not in FLOW_COLUMNS:
            raise ValueError(f"no column {name}; one of {', '.join(FLOW_COLUMNS)}")
    try:
        contents = nagi_captures_native.scan(
            os.fsencode(path), start_ns, end_ns, interval_ns or 0, relative, names, tunnels
        )
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    flows, series = contents.pop("flows"), contents.pop("series", None)
    return Flows(**_name_damage(path, contents), columns=_replace_codes(flows), series=series)


def read_rows(
    path: Path | str,
    *,
    by: str = "first_time_bytes",
    limit: int = 40,
    start_ns: int | None = None,
    end_ns: int | None = None,
    relative: bool = False,
    tunnels: bool = False,
) -> Rows:
    """Read a capture and return the connections with the largest values in one column.

    The connection with the largest value comes first; connections of equal values keep their order
    in the capture. Each connection has two rows, one per direction.

    Args:
        path: The capture; "-" is standard input.
        by: The column. The larger value of a connection's two directions counts.
        limit: The largest number of connections to return.
        start_ns: Begin of the measurement interval, see read().
        end_ns: End of the measurement interval, see read().
        relative: Whether start_ns and end_ns are relative to the time of the first packet.
        tunnels: Whether to read packets within tunnels, see read().

    Raises:
        InputError: The file is no capture or cannot be read.
        ValueError: `by` is no column of whole numbers.
    """
    try:
        contents = nagi_captures_native.rows(
            os.fsencode(path), start_ns, end_ns, relative, tunnels, by, limit
        )
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    return Rows(**_name_damage(path, contents))


def read_in_parallel(
    reader: Callable[[Path | str], _Result], paths: Iterable[Path | str]
) -> list[_Result | InputError]:
    """Read several captures at once, in threads.

    Args:
        reader: A function that reads one capture, such as read(), read_rows() or capture.scan().
        paths: The captures.

    Returns:
        For each capture, in the order of `paths`, the result of `reader` or the InputError that it
        raised.
    """

    def read_one(path: Path | str) -> _Result | InputError:
        try:
            return reader(path)
        except InputError as error:
            return error

    paths = list(paths)
    if len(paths) < 2:
        return list(map(read_one, paths))  # not in a thread: only the main thread gets signals
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(read_one, paths))


def display_name(path: Path | str) -> str:
    """Return the name of a file for messages: its path, or "standard input"."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def to_input_error(path: Path | str, refusal: Exception) -> InputError:
    """Return the InputError for a `Refused` that the native reader raised."""
    problem, cure = refusal.args
    return refuse(problem, cure, file=display_name(path))


def _name_damage(path: Path | str, contents: dict[str, Any]) -> dict[str, Any]:
    """Return `contents` with the file's name at the start of the text about the damage.

    `contents["damage"]` becomes None if the file is not damaged.
    """
    damage = contents["damage"]
    return contents | {"damage": f"{display_name(path)}: {damage}" if damage else None}


def _replace_codes(columns: Columns) -> Columns:
    """Replace the numbers in `columns` by the texts that the numbers stand for.

    The entry "addresses", the list of all addresses, is removed from `columns`.
    """
    import numpy as np

    addresses = np.array([*columns.pop("addresses"), None], object)[:-1]
    protocols = np.array([{6: "tcp", 17: "udp"}.get(number) for number in range(256)], object)
    capture_points = np.array(["", "source", "between", "destination"], object)
    for name, texts in (
        ("protocol", protocols),
        ("source", addresses),
        ("destination", addresses),
        ("captured_at", capture_points),
    ):
        if name in columns:
            columns[name] = texts[columns[name]]
    return columns
