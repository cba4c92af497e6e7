# SPDX-License-Identifier: Apache-2.0
"""Find published campaigns in the directory of README.md.

A campaign is in one directory that has its name, or in several directories with some of its repeats
each.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi_contracts.records import Campaign

HERE = Path(__file__).resolve().parent


def list_parts(name: str) -> list[Path]:
    """List the directories of a campaign: the whole campaign if it is there, else its parts."""
    whole = HERE / name
    return [whole] if whole.is_dir() else sorted(HERE.glob(f"{name}-repeat*/"))


def published(name: str) -> pd.DataFrame:
    """Read results.parquet of all parts of a campaign."""
    return pd.concat([pd.read_parquet(part / "results.parquet") for part in list_parts(name)])


def campaign_of(name: str) -> Campaign:
    """Read campaign.json of a campaign, with the runs of all its parts."""
    found = [Campaign.read(part / "campaign.json") for part in list_parts(name)]
    return found[0].model_copy(update={"runs": [run for part in found for run in part.runs]})
