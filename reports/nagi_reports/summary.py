# SPDX-License-Identifier: Apache-2.0
"""A campaign's results arranged as the experiment requests: curves over x, panels, NAGI.

Only valid runs enter a mean. A run with several flows counts with the mean of its flows. Every mean
has its number of runs and, for two runs or more, its 95 % confidence interval (Student's t).

NAGI compares series, so it is computed over the same values of x for all series of a panel: the
values at which every series has a valid run. A series without any valid run in the panel has no
NAGI, and does not limit these values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
from nagi_contracts.records import Campaign
from nagi_contracts.units import Bitrate, Duration, Level, Share

from nagi_reports.metrics import nagi
from nagi_reports.statistics import Mean, average_by_run, drop_background, mean

__all__ = [
    "Axis",
    "Curve",
    "Mean",
    "Panel",
    "Summary",
    "average_runs",
    "average_topologies",
    "find_shared_positions",
    "summarise",
]


_ACRONYMS = {"snr": "SNR"}


def average_runs(rows: pd.DataFrame, column: str) -> Mean | None:
    """Return the mean of a column over runs, or None if no run has a value."""
    return mean(average_by_run(rows, column).to_numpy())


def average_topologies(means: Sequence[Mean | None]) -> Mean | None:
    """Return the mean of a metric over topologies. For the AGI, this is NAGI (metrics.nagi()).

    The squares of the half widths of the intervals are added. `runs` of the result is the number of
    topologies. Return None if there is no topology, or a topology has no value.
    """
    values = [mean for mean in means if mean is not None]
    if not values or len(values) < len(means):
        return None
    halfwidth = math.sqrt(sum(mean.halfwidth**2 for mean in values)) / len(values)
    return Mean(nagi(mean.value for mean in values), halfwidth, len(values))


def find_shared_positions(means_of_series: Iterable[Sequence[Mean | None]]) -> list[int]:
    """Return the positions at which every series has a value.

    Series without any value are ignored. If no series has a value, there are no positions.

    Args:
        means_of_series: The means of each series, one per value of x.
    """
    present = [means for means in means_of_series if any(mean is not None for mean in means)]
    return [
        position for position, means in enumerate(zip(*present, strict=True)) if None not in means
    ]


@dataclass(frozen=True)
class Axis:
    """An axis of the experiment's matrix, with its values in the order of the experiment file."""

    name: str
    values: list[str]

    @property
    def phrase(self) -> str:
        """The axis' name as it is written within a sentence."""
        return " ".join(_ACRONYMS.get(word, word) for word in self.name.lower().split("_"))

    @property
    def title(self) -> str:
        """The axis' name as it is written at the beginning of a line."""
        return f"{self.phrase[0].upper()}{self.phrase[1:]}"

    def to_numbers(self) -> tuple[list[float], str]:
        """Return the values as numbers of one unit, and the unit.

        The unit is Mb/s for rates, ms for durations, % for shares, and dB for levels. If the values
        are no quantities, return their positions and an empty unit.
        """
        for kind, scale, unit in (
            (Bitrate, 1e6, "Mb/s"),
            (Duration, 1e6, "ms"),
            (Share, 0.01, "%"),
            (Level, 1, "dB"),
        ):
            try:
                parsed = [kind.parse(value) for value in self.values]
            except ValueError:
                continue
            return [quantity.value / scale for quantity in parsed], unit
        return [float(position) for position in range(len(self.values))], ""


@dataclass(frozen=True)
class Curve:
    """One series in one panel: a mean at each value of x, None where there is no valid run."""

    series: str
    agi: list[Mean | None]
    goodput_bps: list[Mean | None]
    nagi: Mean | None  # over the values of x that the panel compares; None if not known


@dataclass(frozen=True)
class Panel:
    """The curves for one value of the panels' axis; all curves if there is no such axis."""

    label: str
    curves: list[Curve]
    bottleneck_bps: list[float]  # at each value of x; nan where nothing was run
    ceiling: float  # the largest AGI that headers permit
    compared: list[int]  # positions of the values of x over which NAGI is the mean


@dataclass(frozen=True)
class Summary:
    """The results of a campaign, by panel."""

    x: Axis
    panels_axis: Axis | None
    panels: list[Panel]
    runs: int  # number of planned runs
    valid: int  # number of valid runs
    invalid: int
    failed: int  # number of runs without results


def summarise(campaign: Campaign, table: pd.DataFrame) -> Summary:
    """Return the means of a campaign's valid runs by panel, series and x, and numbers of runs."""
    x = _make_axis(campaign, campaign.x)
    panels_axis = _make_axis(campaign, campaign.panels) if campaign.panels else None
    series = _make_axis(campaign, campaign.series)
    valid = table[table["status"] == "valid"]
    panels = []
    for label in panels_axis.values if panels_axis else [""]:
        panel_rows = table[table[f"point.{campaign.panels}"] == label] if panels_axis else table
        panel_rows = drop_background(panel_rows)
        valid_rows = panel_rows.loc[panel_rows.index.intersection(valid.index)]
        means_by_series = []
        for name in series.values:
            rows = valid_rows[valid_rows[f"point.{campaign.series}"] == name]
            rows_by_x = [rows[rows[f"point.{x.name}"] == value] for value in x.values]
            indices = [average_runs(rows, "agi") for rows in rows_by_x]
            goodputs = [average_runs(rows, "goodput_bps") for rows in rows_by_x]
            means_by_series.append((name, indices, goodputs))
        shared_positions = find_shared_positions(indices for _, indices, _ in means_by_series)
        curves = [
            Curve(
                name,
                indices,
                goodputs,
                average_topologies([indices[position] for position in shared_positions]),
            )
            for name, indices, goodputs in means_by_series
        ]
        bottleneck_bps = [
            float(panel_rows[panel_rows[f"point.{x.name}"] == value]["bottleneck_bps"].max())
            for value in x.values
        ]
        ceiling = float(panel_rows["agi_ceiling"].max())
        panels.append(Panel(label, curves, bottleneck_bps, ceiling, shared_positions))
    completed = table.drop_duplicates("run_id")
    return Summary(
        x=x,
        panels_axis=panels_axis,
        panels=panels,
        runs=len(campaign.runs),
        valid=int((completed["status"] == "valid").sum()),
        invalid=int((completed["status"] == "invalid").sum()),
        failed=len(campaign.runs) - len(completed),
    )


def _make_axis(campaign: Campaign, name: str) -> Axis:
    return Axis(name, list(dict.fromkeys(run.point[name] for run in campaign.runs)))
