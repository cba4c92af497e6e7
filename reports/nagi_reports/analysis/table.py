# SPDX-License-Identifier: Apache-2.0
"""The table of results of a campaign, results.parquet."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from nagi_contracts.records import Campaign, Manifest
from nagi_contracts.results import Metrics, ResultRow, list_metrics

from nagi_reports.analysis.recorded import (
    METRICS,
)
from nagi_reports.fairness import add_harm


def build_table(out: Path, campaign: Campaign) -> pd.DataFrame:
    """Return the table of results of a campaign, and write it to results.parquet.

    Runs without metrics.json have no rows.

    Args:
        out: The directory of the campaign.
        campaign: The campaign.

    Raises:
        InputError: The size of a run's file differs from the size in the run's manifest.
    """
    for run in campaign.runs:
        directory = out / "runs" / run.run_id
        if (directory / METRICS).exists() and (directory / "manifest.json").exists():
            manifest = Manifest.read(directory / "manifest.json")
            manifest.require_files(directory, only_sizes=True, allow_missing=True)
    table = read_table(out, campaign)
    table.to_parquet(out / "results.parquet", index=False)
    return table


def read_table(out: Path, campaign: Campaign) -> pd.DataFrame:
    """Return the table of results of a campaign: the rows of all metrics.json, with harm added.

    Rows are in the order of the campaign's runs. Runs without metrics.json have no rows. The axes'
    values are in columns `point.AXIS`.
    """
    rows = []
    for run in campaign.runs:
        metrics = out / "runs" / run.run_id / METRICS
        if metrics.exists():
            for row in Metrics.read(metrics).rows:
                values = row.model_dump()
                point = values.pop("point")
                rows.append(values | {f"point.{axis}": value for axis, value in point.items()})
    columns = [name for name in ResultRow.model_fields if name != "point"]
    columns += [f"point.{axis}" for axis in (campaign.runs[0].point if campaign.runs else {})]
    table = pd.DataFrame(rows, columns=columns)
    # pandas would give the type "object" to metrics without any value.
    empty_metrics = [name for name in list_metrics() if table[name].isna().all()]
    return add_harm(table.astype(dict.fromkeys(empty_metrics, "float64")), campaign)
