# SPDX-License-Identifier: Apache-2.0
"""Measure the silences in each transfer of campaigns, and write them to tcp-real-2001-handoff.csv.

    python silences.py results/tcp-real-2001-handoff ...     # replaces the rows of these campaigns

A silence is a gap of more than 0.2 s between arrivals of data at the receiver, which is longer than
any RTT and shorter than any timeout of these campaigns. results.parquet does not have silences, so
figures.py reads the CSV file.

The file has one row per run: seconds from the first arrival to the last, number of silences, and
their sum in seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from campaign_table import replace_campaigns

TABLE = Path(__file__).resolve().parent / "tcp-real-2001-handoff.csv"
_SILENCE_S = 0.2
_SYN_BYTES = 60  # larger packets have data


def measure_silences(run: Path) -> dict[str, Any]:
    """Return the row of the CSV file for a run directory, without the column `campaign`."""
    plan: dict[str, Any] = json.loads((run / "plan.json").read_text())
    columns = ["direction", "left_ns", "bytes", "fate"]
    packets = pd.read_parquet(run / "packets.parquet", columns=columns)
    is_data = (packets["direction"] == "forward") & (packets["bytes"] > _SYN_BYTES)
    arrivals = packets[is_data & (packets["fate"] == "delivered")]["left_ns"].sort_values()
    gaps = np.diff(arrivals) / 1e9
    silences = gaps[gaps > _SILENCE_S]
    return {
        **plan["point"],
        "repeat": plan["repeat"],
        "transfer_s": round(float(gaps.sum()), 3),
        "silences": len(silences),
        "silent_s": round(float(silences.sum()), 3),
    }


def main(campaigns: list[Path]) -> None:
    rows = [
        {"campaign": campaign.name} | measure_silences(run.parent)
        for campaign in campaigns
        for run in campaign.glob("runs/*/metrics.json")
    ]
    if rows:
        replace_campaigns(TABLE, pd.DataFrame(rows), ["campaign", "delay", "scheme", "repeat"])


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
