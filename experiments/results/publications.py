# SPDX-License-Identifier: Apache-2.0
"""Read the published campaigns of this directory.

A campaign NAME is in the directory NAME, or in several directories NAME-repeat*, each with some of
the repeats.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi_contracts.records import Campaign

HERE = Path(__file__).resolve().parent


def list_parts(name: str) -> list[Path]:
    """Return the directories of a campaign; empty if the campaign is not published."""
    directory = HERE / name
    return [directory] if directory.is_dir() else sorted(HERE.glob(f"{name}-repeat*/"))


def read_published_results(name: str) -> pd.DataFrame:
    """Read the results of all parts of a campaign as one table.

    Raises:
        ValueError: The campaign is not published.
    """
    return pd.concat([pd.read_parquet(part / "results.parquet") for part in list_parts(name)])


def read_published_campaign(name: str) -> Campaign:
    """Read campaign.json of a campaign's first part, and add the runs of the other parts.

    Raises:
        IndexError: The campaign is not published.
    """
    parts = [Campaign.read(part / "campaign.json") for part in list_parts(name)]
    return parts[0].model_copy(update={"runs": [run for part in parts for run in part.runs]})
