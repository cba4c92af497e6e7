# SPDX-License-Identifier: Apache-2.0
"""Read the outcomes of a run's transmissions (transmissions.parquet) as losses of a link."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from nagi_contracts.errors import InputError, format_value, refuse, suggest
from nagi_contracts.impairments.planning import RecordedOutcomes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MAX_TRANSMISSIONS = 2_000_000  # they are held in memory
MAGIC = b"PAR1"
_COLUMNS = ("link", "direction", "number", "start_ns", "end_ns", "outcome")
_RECEIVED = "received"


def is_parquet(path: Path) -> bool:
    """Return whether a file is in Apache Parquet's format; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_outcomes(path: Path, link: str | None, direction: str | None) -> RecordedOutcomes:
    """Read the outcomes of the transmissions of one direction of a link.

    If the file has not changed since an earlier call, it is not read again.

    Args:
        path: A run's transmissions.parquet.
        link: Name of the link; None if the record has one link.
        direction: Name of the direction; None if the record has one direction.

    Raises:
        InputError: If the file is not the whole record of a run, if the record does not have the
            link or direction, or if it has several and the argument is None.
    """
    status = path.stat()
    version = (status.st_ino, status.st_size, status.st_mtime_ns)
    return _read_cached_version(path, link, direction, version, _read_traffic_ns(path))


@lru_cache(maxsize=16)
def _read_cached_version(
    path: Path,
    link: str | None,
    direction: str | None,
    version: tuple[int, int, int],
    traffic_ns: int | None,
) -> RecordedOutcomes:
    """Read a record for read_outcomes(), from the cache if an earlier call had equal arguments.

    A change of the file changes `version`.
    """
    # NumPy and pandas take long to import.
    import numpy as np
    import pandas as pd

    try:
        table = pd.read_parquet(path, columns=list(_COLUMNS))
    except Exception as error:  # pyarrow raises many types for damaged files
        raise _make_error(
            path,
            f"not a complete record of transmissions: {format_value(str(error))}",
            "give transmissions.parquet of a run whose link was a radio or had ARQ",
        ) from None
    for column, name in (("link", link), ("direction", direction)):
        names = sorted(table[column].astype(str).unique())
        if name is None and len(names) > 1:
            raise _make_error(
                path,
                f"the record has more than one {column}: {', '.join(names)}",
                f"name one, such as `{column}: {names[0]}`",
            )
        if name is not None and name not in names:
            raise _make_error(path, f"no {column} {format_value(name)}", suggest(name, names))
        if name is not None:
            table = table[table[column].astype(str) == name]
    if table.empty:
        raise _make_error(path, "the record has no transmission", "give the record of another run")
    if len(table) > MAX_TRANSMISSIONS:
        raise _make_error(
            path, f"more than {MAX_TRANSMISSIONS:,} transmissions", "give a shorter run"
        )
    table = table.sort_values("number", kind="stable")
    numbers = table["number"].to_numpy(np.int64)
    _require_no_missing_numbers(path, numbers)
    starts = table["start_ns"].to_numpy(np.int64)
    ends = table["end_ns"].to_numpy(np.int64)
    is_lost = (table["outcome"].astype(str) != _RECEIVED).to_numpy()
    if starts[0] < 0 or (np.diff(starts) <= 0).any() or (ends < starts).any():
        raise _make_error(
            path, "transmissions overlap or are not in order", "give the record of one run"
        )
    # A transmission takes the outcome of the recorded transmission whose start is nearest, because
    # start times differ slightly between runs.
    begins = np.concatenate([[0], starts[:-1] + np.diff(starts) // 2])
    is_change = np.concatenate([[True], is_lost[1:] != is_lost[:-1]])
    return RecordedOutcomes(
        lost=np.flatnonzero(is_lost).tolist(),
        length=len(is_lost),
        steps=[
            (int(begin_ns), float(loss_share))
            for begin_ns, loss_share in zip(begins[is_change], is_lost[is_change], strict=True)
        ],
        end_ns=int(max(ends[-1], starts[-1] + 1)),
        traffic_ns=traffic_ns,
    )


def _read_traffic_ns(record: Path) -> int | None:
    """Return the start of the recorded run's traffic, in ns since the start of the run.

    Return None if there is no plan.json beside `record`.

    Raises:
        InputError: If plan.json is wrong.
    """
    path = record.with_name("plan.json")
    try:
        return round(float(json.loads(path.read_text())["timeline"]["traffic_s"]) * 1e9)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise _make_error(
            path, "no valid plan of the recorded run", "give a whole run directory"
        ) from None


def _require_no_missing_numbers(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    """Check that no transmission is missing. A run numbers its transmissions from 0.

    Raises:
        InputError: If a number is missing, because the file is then only a part of a record.
    """
    import numpy as np

    missing = np.flatnonzero(numbers != np.arange(len(numbers)))
    if len(missing):
        raise _make_error(
            path,
            f"transmission {int(missing[0])} is missing in the record",
            "give the whole transmissions.parquet of a run",
        )


def _make_error(path: Path, message: str, cure: str) -> InputError:
    return refuse(message, cure, file=str(path))
