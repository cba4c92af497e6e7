# SPDX-License-Identifier: Apache-2.0
"""Formats of numbers, and phrases, that several sections of a report use."""

from __future__ import annotations

import math

from nagi_contracts.records import CampaignRun

from nagi_reports.summary import Mean, Summary

NONE = "–"


def format_mean(mean: Mean | None, digits: int = 3) -> str:
    """Return a mean with the half width of its interval, if known; return NONE for None."""
    if mean is None:
        return NONE
    text = f"{mean.value:.{digits}f}"
    if not math.isnan(mean.halfwidth):
        text += f" ± {mean.halfwidth:.{digits}f}"
    return text


def mention_intervals(summary: Summary) -> str:
    """Return a clause for captions that mentions the intervals; empty if there are none."""
    return ", with 95 % intervals" if has_intervals(summary) else ""


def describe_bars(summary: Summary) -> str:
    """Return a sentence that explains the error bars of a figure, or says that it has none."""
    if has_intervals(summary):
        return "Bars span 95 % intervals."
    return "One run per point: no intervals."


def has_intervals(summary: Summary) -> bool:
    """Return whether any AGI in `summary` has an interval."""
    means = (mean for panel in summary.panels for curve in panel.curves for mean in curve.agi)
    return any(mean is not None and not math.isnan(mean.halfwidth) for mean in means)


def to_words(name: str) -> str:
    """Return the name of an axis or a metric with spaces instead of underscores."""
    return name.replace("_", " ")


def capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def describe_point(run: CampaignRun) -> str:
    """Return a text with the values of a run's axes and its repeat, counted from 1."""
    return ", ".join([*run.point.values(), f"repeat {run.repeat + 1}"])
