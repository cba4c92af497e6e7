# SPDX-License-Identifier: Apache-2.0
"""A campaign's results arranged as the experiment asks: curves over x, panels, NAGI.

Only valid runs enter a mean. A run with several flows counts with their mean. Every mean carries
its number of runs and, from two on, its 95 % confidence interval (Student's t).

NAGI compares series only over the same set: of a panel, over the values of x at which every series
has a valid run. A series without any valid run in the panel has no NAGI, and does not count.
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
    """The mean of a column over runs; None if there is none."""
    return mean(average_by_run(rows, column).to_numpy())


def average_topologies(means: Sequence[Mean | None]) -> Mean | None:
    """NAGI: the mean of the AGI, or of another measure, over the topologies of a set (the paper's
    equation 2); `runs` is how many there are. None if there is none, or one without a value.
    Intervals add in squares."""
    known = [mean for mean in means if mean is not None]
    if not known or len(known) < len(means):
        return None
    halfwidth = math.sqrt(sum(mean.halfwidth**2 for mean in known)) / len(known)
    return Mean(nagi(mean.value for mean in known), halfwidth, len(known))


def find_shared_positions(series: Iterable[Sequence[Mean | None]]) -> list[int]:
    """The positions at which all series that have a value anywhere have one."""
    known = [means for means in series if any(mean is not None for mean in means)]
    return [at for at, means in enumerate(zip(*known, strict=True)) if None not in means]


@dataclass(frozen=True)
class Axis:
    """An axis of the matrix: its values in the file's order, as texts and as numbers."""

    name: str
    values: list[str]

    @property
    def in_words(self) -> str:
        """Its name within a sentence."""
        return " ".join(_ACRONYMS.get(word, word) for word in self.name.lower().split("_"))

    @property
    def title(self) -> str:
        return f"{self.in_words[0].upper()}{self.in_words[1:]}"

    def numbers(self) -> tuple[list[float], str]:
        """The values as numbers of one unit, and the unit; positions if they are no quantities."""
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
    nagi: Mean | None  # over the values of x that the panel compares; None if it cannot be told


@dataclass(frozen=True)
class Panel:
    """The curves for one value of the panels' axis."""

    label: str
    curves: list[Curve]
    bottleneck_bps: list[float]  # at each value of x; nan where nothing was run
    ceiling: float  # of the AGI
    compared: list[int]  # positions of the values of x that NAGI is over


@dataclass(frozen=True)
class Summary:
    x: Axis
    panels_axis: Axis | None
    panels: list[Panel]
    runs: int
    valid: int
    invalid: int
    failed: int


def summarise(campaign: Campaign, table: pd.DataFrame) -> Summary:
    """Arranges the table of a campaign."""
    x = _axis(campaign, campaign.x)
    panels_axis = _axis(campaign, campaign.panels) if campaign.panels else None
    series = _axis(campaign, campaign.series)
    valid = table[table["status"] == "valid"]
    panels = []
    for label in panels_axis.values if panels_axis else [""]:
        inside = table[table[f"point.{campaign.panels}"] == label] if panels_axis else table
        inside = drop_background(inside)
        good = inside.loc[inside.index.intersection(valid.index)]
        found = []
        for name in series.values:
            mine = good[good[f"point.{campaign.series}"] == name]
            at = [mine[mine[f"point.{x.name}"] == value] for value in x.values]
            indices = [average_runs(rows, "agi") for rows in at]
            goodputs = [average_runs(rows, "goodput_bps") for rows in at]
            found.append((name, indices, goodputs))
        compared = find_shared_positions(indices for _, indices, _ in found)
        curves = [
            Curve(name, indices, goodputs, average_topologies([indices[at] for at in compared]))
            for name, indices, goodputs in found
        ]
        bottleneck = [
            float(inside[inside[f"point.{x.name}"] == value]["bottleneck_bps"].max())
            for value in x.values
        ]
        ceiling = float(inside["agi_ceiling"].max())
        panels.append(Panel(label, curves, bottleneck, ceiling, compared))
    ended = table.drop_duplicates("run_id")
    return Summary(
        x=x,
        panels_axis=panels_axis,
        panels=panels,
        runs=len(campaign.runs),
        valid=int((ended["status"] == "valid").sum()),
        invalid=int((ended["status"] == "invalid").sum()),
        failed=len(campaign.runs) - len(ended),
    )


def _axis(campaign: Campaign, name: str) -> Axis:
    return Axis(name, list(dict.fromkeys(run.point[name] for run in campaign.runs)))
