# SPDX-License-Identifier: Apache-2.0
"""Parquet files of runs and campaigns, read with checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from nagi_contracts.errors import excerpt, refuse

# A small file with very many rows could fill the memory, so it is refused. Real files do not have
# as many rows per byte, because rows differ in their times and compress worse than identical rows.
_ALWAYS_ALLOWED_ROWS = 1_000_000
_MAX_ROWS_PER_BYTE = 20


def read_parquet(
    path: Path, columns: list[str] | None = None, *, cure: str | None = None
) -> pd.DataFrame:
    """Return the table in a Parquet file, or some of its columns.

    Args:
        path: The file.
        columns: Names of columns; None means all.
        cure: The cure for messages; None means to restore the file or run the campaign again.

    Raises:
        InputError: The file is damaged, lacks a column, or has more rows than a file of its
            size can have.
    """
    try:
        with pq.ParquetFile(path) as file:
            rows = file.metadata.num_rows
        if rows > max(_ALWAYS_ALLOWED_ROWS, path.stat().st_size * _MAX_ROWS_PER_BYTE):
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
    """Check the columns of a table from an untrusted file.

    Args:
        table: The table.
        kinds: Kind of each required column: "text", or "number" (rows may have no number).
        path: The file, for messages.
        cure: The cure, for messages.

    Raises:
        InputError: A column is missing or has values of another kind.
    """
    for name, kind in kinds.items():
        if name not in table.columns:
            raise refuse(
                f"it has no column {name}; was it written by an earlier version?",
                cure,
                file=str(path),
            )
        column = table[name]
        if kind == "text":
            fits = all(isinstance(value, str) for value in column)
        else:
            fits = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
        if not fits:
            raise refuse(
                f"its column {name} has values that are not of kind {kind}", cure, file=str(path)
            )
