# SPDX-License-Identifier: Apache-2.0
"""Extract windows and goodput over time of selected runs, and write them to achievement-2008.csv.

    python window_series.py results/achievement-2008 ...     # replaces the rows of these campaigns

results.parquet does not have these time series, so figures.py reads the CSV file.

The file has one row per second of a run: the sender's mean window in packets, acknowledged data /
capacity, and the shares of TCP_INFO samples in which the kernel was in recovery (TCP_CA_Recovery)
and after a timeout (TCP_CA_Loss).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
from campaign_table import replace_campaigns

TABLE = Path(__file__).resolve().parent / "achievement-2008.csv"
# Campaign -> points, given by values of some axes. The first repeats at these points are extracted.
_SELECTED_POINTS = {
    "achievement-2008": (
        {"error_rate": "0 %", "capacity": "40 Mb/s"},
        {"error_rate": "0.1 %", "capacity": "100 Mb/s", "scheme": "westwood"},
    ),
    "achievement-2008-uncapped": ({"error_rate": "0 %", "capacity": "100 Mb/s"},),
}
_RECOVERY, _LOSS = 3, 4  # tcp_ca_state of include/net/tcp.h


def make_second_rows(run: Path, names: dict[str, str], capacity_bps: float) -> pd.DataFrame:
    """Return the rows of a run, one per second.

    Args:
        run: The run directory.
        names: Campaign and point of the run: column of the CSV file -> value.
        capacity_bps: Rate of the bottleneck.
    """
    columns = ["t_s", "snd_cwnd", "bytes_acked", "ca_state"]
    samples = pd.read_parquet(run / "tcp_info.parquet", columns=columns).sort_values("t_s")
    second = samples["t_s"].floordiv(1).astype(int)
    by_second = samples.groupby(second)
    acked_bytes = by_second["bytes_acked"].last().diff().fillna(by_second["bytes_acked"].last())
    return pd.DataFrame(
        {
            **names,
            "second": by_second.size().index,
            "window_packets": by_second["snd_cwnd"].mean().round(1),
            "share": (acked_bytes * 8 / capacity_bps).round(4),
            "recovery": (samples["ca_state"] == _RECOVERY).groupby(second).mean().round(2),
            "loss": (samples["ca_state"] == _LOSS).groupby(second).mean().round(2),
        }
    )


def main(campaigns: list[Path]) -> None:
    rows_of_runs = [
        make_second_rows(
            run.parent, {"campaign": campaign.name} | row["point"], row["bottleneck_bps"]
        )
        for campaign in campaigns
        for run in campaign.glob("runs/*/metrics.json")
        for row in json.loads(run.read_text())["rows"][:1]
        if row["repeat"] == 0
        and any(p.items() <= row["point"].items() for p in _SELECTED_POINTS[campaign.name])
    ]
    if rows_of_runs:
        order = ["campaign", "error_rate", "capacity", "scheme", "second"]
        replace_campaigns(TABLE, pd.concat(rows_of_runs), order)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
