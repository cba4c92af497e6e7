# SPDX-License-Identifier: Apache-2.0
"""A capture's connections without pandas: what `nagi metrics` is made of.

read() gives all of them as NumPy arrays, read_rows() those with most of something as plain rows,
without NumPy, whose import takes longer than to read a gigabyte. Both leave the interpreter to
other threads while they read; on_all_processors() reads several files at once.

Memory while reading: 0.8 kB for a connection that is a SYN only, up to 2.5 kB for one with data in
both directions, until it is closed and 60 s have passed in the capture; then 0.1 to 0.3 kB.
Besides, until a connection leaves, 1 to 10 kB a direction with more than 16 RTT samples, and 64 KiB
at most for holes in its sequence numbers; over all connections 40 MiB at most for segments that
wait for their acknowledgements. Arrays take 8 bytes a value: ask for the columns you need where
there are millions of connections. Measured: 1,000,000 SYNs 793 MiB, 112,000 connections of 12
packets 97 MiB.
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

Columns: TypeAlias = "dict[str, npt.NDArray[Any]]"
_Found = TypeVar("_Found")

FRAGMENT = "later fragment"  # a reason in Totals.unused: has no ports, so no flow

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Totals:
    """What a capture holds beside its connections."""

    packets: int  # records in the file, of whatever kind
    bytes: int  # their lengths on the wire, link layer included
    first_ns: int  # earliest and latest time of a packet; 0 if there is none
    last_ns: int
    packets_back: int  # packets with a time before that of the packet in front of them
    max_back_ns: int  # by how much at most
    frames_of_several: int  # frames with packets beyond the first, which are not read (A-MSDU)
    packets_without_time: int  # pcapng's simple packets: they have that of the packet before them
    damage: str | None  # one sentence (with file and byte), if the file is damaged
    unused: dict[str, int]  # packets that are in no flow, by reason
    # packets by what they are: TCP, UDP, ARP, PPPoE discovery ...; most first
    contents: dict[str, int]
    start_ns: int | None  # the measurement interval; None: open
    end_ns: int | None


@dataclass(frozen=True)
class Flows(Totals):
    """A capture's connections: a row a direction, row 2 x connection + direction."""

    columns: Columns  # of FLOW_COLUMNS, those that were asked for
    series: Columns | None  # of capture.SERIES_COLUMNS; None without interval_ns


@dataclass(frozen=True)
class Rows(Totals):
    """The connections of a capture that have most of something."""

    connections: int  # how many there are in all
    # Both directions of each, one after the other; keys are those of FLOW_COLUMNS, values plain
    # Python, None for NaN
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
    """Reads a capture once; `path` may be "-", standard input.

    start_ns, end_ns: the measurement interval [start, end) for the columns that say so; None is
    the beginning or the end of the capture. relative: they count from the first packet.
    interval_ns: also make `series`. columns: names in FLOW_COLUMNS; None: all.
    tunnels: take packets out of GRE, VXLAN, Geneve, GTP-U and IP-in-IP.

    Raises InputError.
    """
    if interval_ns is not None and interval_ns <= 0:
        raise ValueError(f"interval_ns is {interval_ns}; it must be positive")
    names = list(FLOW_COLUMNS) if columns is None else list(columns)
    for name in names:
        if name not in FLOW_COLUMNS:
            raise ValueError(f"no column {name}; one of {', '.join(FLOW_COLUMNS)}")
    try:
        found = nagi_captures_native.scan(
            os.fsencode(path), start_ns, end_ns, interval_ns or 0, relative, names, tunnels
        )
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    flows, series = found.pop("flows"), found.pop("series", None)
    return Flows(**_totals(path, found), columns=_texts(flows), series=series)


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
    """Reads a capture for the `limit` connections with most in the column `by`, of their two
    directions the larger. Else as read().

    Raises InputError; ValueError if `by` is no column of whole numbers.
    """
    try:
        found = nagi_captures_native.rows(
            os.fsencode(path), start_ns, end_ns, relative, tunnels, by, limit
        )
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    return Rows(**_totals(path, found))


def read_in_parallel(
    reader: Callable[[Path | str], _Found], paths: Iterable[Path | str]
) -> list[_Found | InputError]:
    """What `reader` (read(), read_rows(), capture.scan() ...) gives of several captures, at once;
    in place of one that cannot be read its InputError."""

    def one(path: Path | str) -> _Found | InputError:
        try:
            return reader(path)
        except InputError as error:
            return error

    paths = list(paths)
    if len(paths) < 2:
        return list(map(one, paths))  # a signal reaches this thread alone
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(one, paths))


def display_name(path: Path | str) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def to_input_error(path: Path | str, refused: Exception) -> InputError:
    """A refusal of the native reader."""
    what, cure = refused.args
    return refuse(what, cure, file=display_name(path))


def _totals(path: Path | str, found: dict[str, Any]) -> dict[str, Any]:
    damage = found["damage"]
    return found | {"damage": f"{display_name(path)}: {damage}" if damage else None}


def _texts(columns: Columns) -> Columns:
    """Numbers that stand for texts, as texts: those of a value are one object."""
    import numpy as np

    addresses = np.array([*columns.pop("addresses"), None], object)[:-1]
    protocols = np.array([{6: "tcp", 17: "udp"}.get(number) for number in range(256)], object)
    places = np.array(["", "source", "between", "destination"], object)
    for name, texts in (
        ("protocol", protocols),
        ("source", addresses),
        ("destination", addresses),
        ("captured_at", places),
    ):
        if name in columns:
            columns[name] = texts[columns[name]]
    return columns
