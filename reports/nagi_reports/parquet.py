# SPDX-License-Identifier: Apache-2.0
"""Parquet files that a run leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from nagi_contracts.base import RENAMED, refuse_old_name
from nagi_contracts.errors import excerpt, refuse

# Identical rows compress to almost nothing; real rows differ in their times.
_ALWAYS_ROWS = 1_000_000
_MAX_ROWS_PER_BYTE = 20


def read_parquet(
    path: Path, columns: list[str] | None = None, *, cure: str | None = None
) -> pd.DataFrame:
    """Return the table in a file of a run, or some columns of it; `cure`: what helps if it is
    damaged, if that is not to run its run again. Raises InputError if it is damaged, lacks a
    column, has columns by their old names, or more rows than a file of its size has."""
    try:
        with pq.ParquetFile(path) as file:
            old = [name for name in file.schema_arrow.names if name in RENAMED]
            rows = file.metadata.num_rows
        if old:
            raise refuse_old_name(old[0], (old[0],), path)
        if rows > max(_ALWAYS_ROWS, path.stat().st_size * _MAX_ROWS_PER_BYTE):
            raise ValueError(f"{rows:,} rows, more than a file of its size has")
        return pd.read_parquet(path, columns=columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = excerpt(str(error).removeprefix("Could not open Parquet input source "))
        raise refuse(
            f"cannot read the table: {reason}",
            cure or f"restore the file, or remove {path.parent} and run the campaign again",
            file=str(path),
        ) from None


def require_kinds(table: pd.DataFrame, kinds: Mapping[str, str], path: Path, cure: str) -> None:
    """Raise InputError if a column of a table that may be a stranger's is missing or is not of its
    kind, "text" or "number". Numbers may be missing in rows, texts may not."""
    for name, kind in kinds.items():
        if name not in table.columns:
            raise refuse(
                f"it has no column {name}: is it of an earlier version?", cure, file=str(path)
            )
        column = table[name]
        if kind == "text":
            fits = all(isinstance(value, str) for value in column)
        else:
            fits = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
        if not fits:
            raise refuse(f"its column {name} has values that are no {kind}", cure, file=str(path))
