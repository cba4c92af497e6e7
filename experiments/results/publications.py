# SPDX-License-Identifier: Apache-2.0
"""What is published beside README.md: a campaign in a directory of its name, or in parts, each of
some of its repeats.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi_contracts.records import Campaign

HERE = Path(__file__).resolve().parent


def parts(name: str) -> list[Path]:
    """The directories of a campaign; the whole alone, where there is one."""
    whole = HERE / name
    return [whole] if whole.is_dir() else sorted(HERE.glob(f"{name}-repeat*/"))


def published(name: str) -> pd.DataFrame:
    """results.parquet of a campaign, of all of its parts."""
    return pd.concat([pd.read_parquet(part / "results.parquet") for part in parts(name)])


def campaign_of(name: str) -> Campaign:
    """campaign.json of a campaign, with the runs of all of its parts."""
    found = [Campaign.read(part / "campaign.json") for part in parts(name)]
    return found[0].model_copy(update={"runs": [run for part in found for run in part.runs]})
