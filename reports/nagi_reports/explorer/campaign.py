# SPDX-License-Identifier: Apache-2.0
"""What the page shows of a campaign: a row a flow a run, as in results.parquet, and the choices
that there are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
from nagi_contracts.errors import refuse
from nagi_contracts.records import Campaign, CampaignRun, Verdict
from nagi_contracts.results import metrics_of_results

from nagi_reports import analysis
from nagi_reports.parquet import read_parquet
from nagi_reports.summary import Axis

# Results whose unit is not at the end of their names.
_LABELS = {"agi": "AGI", "agi_ceiling": "AGI that headers permit", "mos": "MOS"}
_UNITS = {"_bps": ("Mb/s", 1e-6), "_s": ("s", 1.0), "_bytes": ("bytes", 1.0)}


def read_results(out: Path, campaign: Campaign) -> pd.DataFrame:
    """The table of results: of the runs as they are now, or, where a campaign was published without
    them, results.parquet. Raises InputError if there is neither, or it is damaged."""
    if (out / "runs").is_dir():
        return analysis.read_table(out, campaign)
    results = out / "results.parquet"
    if not results.exists():
        raise refuse(
            "neither runs nor results.parquet are here", "give the --out of `nagi run`",
            file=str(out),
        )  # fmt: skip
    table = read_parquet(results)
    expected = ["run_id", "flow", "status", "repeat", "scheme", "background"]
    expected += [f"point.{axis}" for axis in (campaign.runs[0].point if campaign.runs else {})]
    absent = [name for name in expected if name not in table.columns]
    if absent:
        raise refuse(
            f"it has no column {absent[0]}", "it is not of this campaign, or was damaged: make it "
            "again with `nagi analyze`", file=str(results),
        )  # fmt: skip
    return table


def collect_campaign_data(out: Path, campaign: Campaign, with_data: set[str]) -> dict[str, Any]:
    """What campaign.js draws. with_data: the runs that have a file of their own."""
    table = read_results(out, campaign)
    axes = [_axis(campaign, name) for name in (campaign.runs[0].point if campaign.runs else {})]
    known = [name for name in metrics_of_results() if name in table and table[name].notna().any()]
    columns = {
        name: [_number(value * _unit(name)[1]) for value in table[name].astype("float64")]
        for name in known
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
                "unit": _unit(name)[0],
                "what": metrics_of_results()[name],
            }
            for name in known
        ],
        "runs": [_run(out, run, run.run_id in with_data, table) for run in campaign.runs],
        "rows": {
            "run": table["run_id"].astype(str).tolist(),
            "flow": table["flow"].astype(str).tolist(),
            "scheme": table["scheme"].astype(str).tolist(),
            "background": table["background"].fillna(False).astype(bool).tolist(),
            "values": columns,
        },
    }


def label_column(column: str) -> str:
    """A column of results as a page calls it, without its unit."""
    if column in _LABELS:
        return _LABELS[column]
    for suffix in _UNITS:
        column = column.removesuffix(suffix)
    words = column.split("_")
    upper = {"rtt", "agi", "fct", "tcp"}
    return " ".join(word.upper() if word in upper else word for word in words)


def _unit(column: str) -> tuple[str, float]:
    """The unit in which a page shows a column, and by what to multiply its values."""
    found = (unit for suffix, unit in _UNITS.items() if column.endswith(suffix))
    return next(found, ("", 1.0))


def _axis(campaign: Campaign, name: str) -> dict[str, Any]:
    axis = Axis(name, list(dict.fromkeys(run.point[name] for run in campaign.runs)))
    numbers, unit = axis.to_numbers()
    return {
        "name": name,
        "label": axis.in_words,
        "values": axis.values,
        # Without a unit they are positions only.
        "numbers": numbers if unit else None,
        "unit": unit,
    }


def _run(out: Path, run: CampaignRun, has_data: bool, table: pd.DataFrame) -> dict[str, Any]:
    path = out / "runs" / run.run_id / "verdict.json"
    if path.exists():
        verdict = Verdict.read(path)
        status, reasons = str(verdict.status), verdict.reasons
    else:
        mine = table.loc[table["run_id"] == run.run_id, "status"]
        status, reasons = (str(mine.iloc[0]) if len(mine) else "missing"), []
    return {
        "id": run.run_id,
        "point": run.point,
        "repeat": run.repeat + 1,
        "status": status,
        "reasons": reasons,
        "data": has_data,
    }


def _number(value: float) -> float | None:
    """As JSON can have it."""
    return float(f"{value:.9g}") if math.isfinite(value) else None
