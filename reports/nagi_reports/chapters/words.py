# SPDX-License-Identifier: Apache-2.0
"""Words and numbers that all sections write in the same way."""

from __future__ import annotations

import math

from nagi_contracts.records import CampaignRun

from nagi_reports.summary import Mean, Summary

NONE = "–"
MODULATIONS = {
    "bpsk": "BPSK",
    "qpsk": "QPSK",
    "8psk": "8-PSK",
    "16qam": "16-QAM",
    "64qam": "64-QAM",
}


def format_mean(mean: Mean | None, digits: int = 3) -> str:
    """A mean with its interval."""
    if mean is None:
        return NONE
    said = f"{mean.value:.{digits}f}"
    if not math.isnan(mean.halfwidth):
        said += f" ± {mean.halfwidth:.{digits}f}"
    return said


def mention_intervals(summary: Summary) -> str:
    return ", with 95 % intervals" if has_intervals(summary) else ""


def describe_bars(summary: Summary) -> str:
    if has_intervals(summary):
        return "Bars span 95 % intervals."
    return "One run per point: no intervals."


def has_intervals(summary: Summary) -> bool:
    means = (mean for panel in summary.panels for curve in panel.curves for mean in curve.agi)
    return any(mean is not None and not math.isnan(mean.halfwidth) for mean in means)


def to_words(axis: str) -> str:
    return axis.replace("_", " ")


def capitalise(words: str) -> str:
    return words[:1].upper() + words[1:]


def describe_point(run: CampaignRun) -> str:
    return ", ".join([*run.point.values(), f"repeat {run.repeat + 1}"])
