# SPDX-License-Identifier: Apache-2.0
"""A capture's connections as NumPy arrays, without pandas: what `nagi metrics` is made of.

read() leaves the interpreter to other threads while it reads; read_each() reads several files at
once.
Memory, while reading: about 0.5 kB for a connection of which one direction was captured, 1 kB for
one of both, until it is closed and 60 s have passed in the capture; then 0.1 to 0.3 kB. More than
16 RTT samples of a direction take 1 to 10 kB until then, bytes that wait for acknowledgements 16
MiB at most over all, holes in sequence numbers 64 KiB a direction at most. The arrays take 8 bytes
a value: ask for the columns you need where there are millions of connections.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import nagi_captures_native
import numpy as np
import numpy.typing as npt
from nagi_contracts.errors import InputError, refuse

from nagi_captures.flow_columns import FLOW_COLUMNS

_Path = TypeVar("_Path", bound=Path | str)
_Found = TypeVar("_Found")
Columns = dict[str, npt.NDArray[Any]]

FRAGMENT = "later fragment"  # a reason in Totals.unused: has no ports, so no flow

STANDARD_INPUT = "-"

_PROTOCOLS = np.array([""] * 256, object)
_PROTOCOLS[[6, 17]] = ["tcp", "udp"]
_PLACES = np.array(["", "source", "between", "destination"], object)


@dataclass(frozen=True)
class Totals:
    """What a capture holds beside its connections."""

    packets: int  # records in the file, of whatever kind
    bytes: int  # their lengths on the wire, link layer included
    first_ns: int  # earliest and latest time of a packet; 0 if there is none
    last_ns: int
    packets_back: int  # packets with a time before that of the packet in front of them
    most_back_ns: int  # by how much at most
    damage: str | None  # one sentence (with file and byte), if the file is damaged
    unused: dict[str, int]  # packets that are in no flow, by reason
    contents: dict[
        str, int
    ]  # packets by what they are: TCP, UDP, ARP, PPPoE discovery ...; most first


@dataclass(frozen=True)
class Flows(Totals):
    """A capture's connections: a row a direction, row 2 x connection + direction."""

    columns: Columns  # of FLOW_COLUMNS, those that were asked for
    series: Columns | None  # of capture.SERIES_COLUMNS; None without interval_ns
    start_ns: int | None  # the measurement interval; None: open
    end_ns: int | None


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
        raise input_error(path, refused) from None
    return Flows(
        packets=found["packets"],
        bytes=found["bytes"],
        first_ns=found["first_ns"],
        last_ns=found["last_ns"],
        packets_back=found["packets_back"],
        most_back_ns=found["most_back_ns"],
        damage=f"{name_of(path)}: {found['damage']}" if found["damage"] else None,
        unused=found["unused"],
        contents=found["contents"],
        columns=_texts(found["flows"]),
        series=found.get("series"),
        start_ns=found["start_ns"],
        end_ns=found["end_ns"],
    )


def read_each(
    paths: Iterable[_Path], reader: Callable[[_Path], _Found]
) -> list[_Found | InputError]:
    """Reads captures on all processors; in place of one that cannot be read, its InputError."""

    def one(path: _Path) -> _Found | InputError:
        try:
            return reader(path)
        except InputError as error:
            return error

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        return list(threads.map(one, paths))


def name_of(path: Path | str) -> str:
    """What messages call a file."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def input_error(path: Path | str, refused: Exception) -> InputError:
    """A refusal of the native reader."""
    what, cure = refused.args
    return refuse(what, cure, file=name_of(path))


def _texts(columns: Columns) -> Columns:
    """Numbers that stand for texts, as texts: those of a value are one object."""
    addresses = np.array([*columns.pop("addresses"), None], object)[:-1]
    for name, texts in (
        ("protocol", _PROTOCOLS),
        ("source", addresses),
        ("destination", addresses),
        ("captured_at", _PLACES),
    ):
        if name in columns:
            columns[name] = texts[columns[name]]
    return columns
