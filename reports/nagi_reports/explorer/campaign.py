# SPDX-License-Identifier: Apache-2.0
"""The data of a campaign for the page: one row of results per flow of each run, and the axes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign, CampaignRun, Verdict
from nagi_contracts.results import list_metrics

from nagi_reports import analysis
from nagi_reports.parquet import read_parquet
from nagi_reports.summary import Axis

# Labels of columns of results; other labels are made from the column's name.
_LABELS = {"agi": "AGI", "agi_ceiling": "AGI that headers permit", "mos": "MOS"}
# End of a column's name -> unit on the page, factor to this unit.
_UNITS = {"_bps": ("Mb/s", 1e-6), "_s": ("s", 1.0), "_bytes": ("bytes", 1.0)}


def read_results(out: Path, campaign: Campaign) -> pd.DataFrame:
    """Read the table of results from the runs or, without runs, from results.parquet.

    Raises:
        InputError: There are neither runs nor results.parquet, or a file is damaged.
    """
    if (out / "runs").is_dir():
        return analysis.read_table(out, campaign)
    results = out / "results.parquet"
    if not results.exists():
        raise refuse(
            "has neither runs nor results.parquet", "give the --out of `nagi run`",
            file=str(out),
        )  # fmt: skip
    table = read_parquet(results)
    expected = ["run_id", "flow", "status", "repeat", "scheme", "background"]
    expected += [f"point.{axis}" for axis in (campaign.runs[0].point if campaign.runs else {})]
    absent = [name for name in expected if name not in table.columns]
    if absent:
        raise refuse(
            f"it has no column {absent[0]}", "it is of another campaign or damaged; write it again "
            "with `nagi analyze`", file=str(results),
        )  # fmt: skip
    return table


def collect_campaign_data(out: Path, campaign: Campaign, ids_with_data: set[str]) -> dict[str, Any]:
    """Return the data that campaign.js draws.

    The form is {"axes": [...], "metrics": [...], "runs": [...], "rows": {COLUMN: [...]}, ...}.

    Args:
        out: The directory of the campaign.
        campaign: The campaign.
        ids_with_data: Ids of the runs whose data file the page can load.

    Raises:
        InputError: There are no results, or a file is damaged.
    """
    table = read_results(out, campaign)
    axes = [
        _describe_axis(campaign, name) for name in (campaign.runs[0].point if campaign.runs else {})
    ]
    metrics = [name for name in list_metrics() if name in table and table[name].notna().any()]
    columns = {
        name: [
            _to_json_number(value * _choose_display_unit(name)[1])
            for value in table[name].astype("float64")
        ]
        for name in metrics
    }
    return {
        "title": campaign.title,
        "reference": campaign.reference,
        "experiment": campaign.experiment,
        "variant": campaign.variant,
        "lab": campaign.lab,
        "build": campaign.build.id,
        "x": campaign.x,
        "series": campaign.series,
        "panels": campaign.panels,
        "axes": axes,
        "metrics": [
            {
                "name": name,
                "label": label_column(name),
                "unit": _choose_display_unit(name)[0],
                "what": list_metrics()[name],
            }
            for name in metrics
        ],
        "runs": [
            _describe_run(out, run, run.run_id in ids_with_data, table) for run in campaign.runs
        ],
        "rows": {
            "run": table["run_id"].astype(str).tolist(),
            "flow": table["flow"].astype(str).tolist(),
            "scheme": table["scheme"].astype(str).tolist(),
            "background": table["background"].fillna(False).astype(bool).tolist(),
            "values": columns,
        },
    }


def label_column(column: str) -> str:
    """Return the label of a column of results on the page, without the unit."""
    if column in _LABELS:
        return _LABELS[column]
    for suffix in _UNITS:
        column = column.removesuffix(suffix)
    parts = column.split("_")
    acronyms = {"rtt", "agi", "fct", "tcp"}
    return " ".join(word.upper() if word in acronyms else word for word in parts)


def _choose_display_unit(column: str) -> tuple[str, float]:
    """Return the unit in which a page shows a column, and the factor for its values."""
    units = (unit for suffix, unit in _UNITS.items() if column.endswith(suffix))
    return next(units, ("", 1.0))


def _describe_axis(campaign: Campaign, name: str) -> dict[str, Any]:
    """Return an axis with its values, as texts and as numbers."""
    axis = Axis(name, list(dict.fromkeys(run.point[name] for run in campaign.runs)))
    numbers, unit = axis.to_numbers()
    return {
        "name": name,
        "label": axis.phrase,
        "values": axis.values,
        # Without a unit, the numbers are only positions.
        "numbers": numbers if unit else None,
        "unit": unit,
    }


def _describe_run(
    out: Path, run: CampaignRun, has_data: bool, table: pd.DataFrame
) -> dict[str, Any]:
    """Return the data of a run for the page's table: point, repeat, status and reasons.

    The status of a run without verdict and results is "missing".
    """
    path = out / "runs" / run.run_id / "verdict.json"
    if path.exists():
        verdict = Verdict.read(path)
        status, reasons = str(verdict.status), verdict.reasons
    else:
        statuses = table.loc[table["run_id"] == run.run_id, "status"]
        status, reasons = (str(statuses.iloc[0]) if len(statuses) else "missing"), []
    return {
        "id": run.run_id,
        "point": run.point,
        "repeat": run.repeat + 1,
        "status": status,
        "reasons": reasons,
        "data": has_data,
    }


def _to_json_number(value: float) -> float | None:
    return float(f"{value:.9g}") if math.isfinite(value) else None
