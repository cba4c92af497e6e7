# SPDX-License-Identifier: Apache-2.0
"""Update the CSV files of this directory, whose column `campaign` names the campaign of a row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def replace_campaigns(path: Path, rows: pd.DataFrame, order: list[str]) -> None:
    """Write rows of campaigns to a CSV file, in place of earlier rows of these campaigns.

    Args:
        path: The file, which is created if it does not exist.
        rows: The new rows.
        order: Columns by which to sort all rows of the file.
    """
    if path.exists():
        old_rows = pd.read_csv(path)
        rows = pd.concat([old_rows[~old_rows["campaign"].isin(rows["campaign"])], rows])
    rows.sort_values(order).to_csv(path, index=False, lineterminator="\n")
