# SPDX-License-Identifier: Apache-2.0
"""Parquet files that a run leaves."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from nagi_contracts.base import RENAMED, refuse_old_name
from nagi_contracts.errors import excerpt, refuse


def read_parquet(path: Path, columns: list[str] | None = None) -> pd.DataFrame:
    """The table in a run's file, or some columns of it. Raises InputError if it is damaged, or has
    columns by their old names."""
    try:
        old = [name for name in pq.read_schema(path).names if name in RENAMED]
        if old:
            raise refuse_old_name(old[0], (old[0],), path)
        return pd.read_parquet(path, columns=columns)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = excerpt(str(error).removeprefix("Could not open Parquet input source "))
        raise refuse(
            f"cannot read the table: {reason}",
            f"restore the file, or remove {path.parent} and run the campaign again",
            file=str(path),
        ) from None
