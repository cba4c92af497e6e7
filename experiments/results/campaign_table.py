# SPDX-License-Identifier: Apache-2.0
"""Update CSV files in the directory of README.md, whose rows name their campaign."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


def replace_campaigns(path: Path, found: pd.DataFrame, order: list[str]) -> None:
    """Replace the rows of the same campaigns in `path`, and sort all rows by `order`."""
    if path.exists():
        known = pd.read_csv(path)
        found = pd.concat([known[~known["campaign"].isin(found["campaign"])], found])
    found.sort_values(order).to_csv(path, index=False, lineterminator="\n")
