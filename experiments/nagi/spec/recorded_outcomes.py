# SPDX-License-Identifier: Apache-2.0
"""Outcomes of transmissions as a run recorded them (transmissions.parquet), as a link's losses."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from nagi_contracts.errors import InputError, choices, refuse, shown
from nagi_contracts.impairments.planning import RecordedOutcomes

MOST = 2_000_000  # transmissions: they are held in memory
MAGIC = b"PAR1"
_COLUMNS = ("link", "direction", "number", "start_ns", "end_ns", "outcome")
_RECEIVED = "received"


def is_parquet(path: Path) -> bool:
    """Whether a file is in Apache Parquet's format. False for what cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_outcomes(path: Path, link: str | None, direction: str | None) -> RecordedOutcomes:
    """What became of the transmissions of a direction. Where the record has several links or
    directions, these must be named. Raises InputError naming the file."""
    status = path.stat()
    version = (status.st_ino, status.st_size, status.st_mtime_ns)
    return _read(path, link, direction, version, _traffic_ns(path))


@lru_cache(maxsize=16)
def _read(
    path: Path,
    link: str | None,
    direction: str | None,
    version: tuple[int, int, int],
    traffic_ns: int | None,
) -> RecordedOutcomes:
    import pandas as pd  # takes long to import

    try:
        table = pd.read_parquet(path, columns=list(_COLUMNS))
    except Exception as error:  # whatever pyarrow raises for files that are cut off, or others
        raise _bad(
            path,
            f"no whole record of transmissions: {shown(str(error))}",
            "give transmissions.parquet of a run whose link was a radio or had ARQ",
        ) from None
    for column, wanted in (("link", link), ("direction", direction)):
        found = sorted(table[column].astype(str).unique())
        if wanted is None and len(found) > 1:
            raise _bad(
                path,
                f"the record has more than one {column}: {', '.join(found)}",
                f"say which, like `{column}: {found[0]}`",
            )
        if wanted is not None and wanted not in found:
            raise _bad(path, f"no {column} {shown(wanted)}", choices(wanted, found))
        if wanted is not None:
            table = table[table[column].astype(str) == wanted]
    if table.empty:
        raise _bad(path, "the record has no transmission", "give the record of another run")
    if len(table) > MOST:
        raise _bad(path, f"more than {MOST:,} transmissions", "give a shorter run")
    table = table.sort_values("number", kind="stable")
    numbers = table["number"].to_numpy(np.int64)
    _refuse_gaps(path, numbers)
    starts = table["start_ns"].to_numpy(np.int64)
    ends = table["end_ns"].to_numpy(np.int64)
    lost = (table["outcome"].astype(str) != _RECEIVED).to_numpy()
    if starts[0] < 0 or (np.diff(starts) <= 0).any() or (ends < starts).any():
        raise _bad(
            path, "transmissions that are not one after the other", "give the record of one run"
        )
    # The nearest start decides: runs differ by what a clock's readings take.
    begins = np.concatenate([[0], starts[:-1] + np.diff(starts) // 2])
    changes = np.concatenate([[True], lost[1:] != lost[:-1]])
    return RecordedOutcomes(
        lost=np.flatnonzero(lost).tolist(),
        length=len(lost),
        steps=[
            (int(at), float(is_lost))
            for at, is_lost in zip(begins[changes], lost[changes], strict=True)
        ],
        end_ns=int(max(ends[-1], starts[-1] + 1)),
        traffic_ns=traffic_ns,
    )


def _traffic_ns(record: Path) -> int | None:
    """When the traffic of the run began whose record this is; None outside of its directory."""
    path = record.with_name("plan.json")
    try:
        return round(float(json.loads(path.read_text())["timeline"]["traffic_s"]) * 1e9)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise _bad(
            path, "no plan of the run beside its record", "give a whole run directory"
        ) from None


def _refuse_gaps(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    """Every transmission of a run has a number, from 0: what has others is a part of a record."""
    missing = np.flatnonzero(numbers != np.arange(len(numbers)))
    if len(missing):
        raise _bad(
            path,
            f"transmission {int(missing[0])} is missing: a part of a record",
            "give the whole transmissions.parquet of a run",
        )


def _bad(path: Path, message: str, cure: str) -> InputError:
    return refuse(message, cure, file=str(path))
