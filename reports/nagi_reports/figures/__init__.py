# SPDX-License-Identifier: Apache-2.0
"""The figures of the report, as SVG: readable without colour, with letters as outlines.

Functions that are named after what they show return a figure; functions that draw on given axes are
called `draw_*`. They know no campaign: they draw the values that they are given.
"""

from nagi_reports.figures.applications import ApplicationCurves, application_metrics
from nagi_reports.figures.axes import (
    WIDTH,
    figure_style,
    render_svg,
    spread_labels,
    visible_texts,
)
from nagi_reports.figures.comparison import Pair, paired_means
from nagi_reports.figures.fairness import (
    HarmMatrix,
    SharesOverTime,
    harm_matrices,
    shares_over_time,
)
from nagi_reports.figures.goodput import (
    achieved_goodput,
    achieved_goodput_index,
    means_over_x,
    normalised_index,
)
from nagi_reports.figures.losses import ClassifiedLosses, loss_classification
from nagi_reports.figures.medium import (
    MAX_SENSE_LINES,
    AirtimeShares,
    DrawnMedium,
    DrawnStation,
    StationMeans,
    airtime,
    central_station,
    medium_map,
    station_metrics,
)
from nagi_reports.figures.over_time import MAX_ROWS, MAX_SCALE_RATIO, time_series
from nagi_reports.figures.radio import ErrorRate, ModeShares, error_rates, modes_over_snr
from nagi_reports.figures.topology import DrawnLink, topology

__all__ = [
    "MAX_ROWS",
    "MAX_SCALE_RATIO",
    "MAX_SENSE_LINES",
    "WIDTH",
    "AirtimeShares",
    "ApplicationCurves",
    "ClassifiedLosses",
    "DrawnLink",
    "DrawnMedium",
    "DrawnStation",
    "ErrorRate",
    "HarmMatrix",
    "ModeShares",
    "Pair",
    "SharesOverTime",
    "StationMeans",
    "achieved_goodput",
    "achieved_goodput_index",
    "airtime",
    "application_metrics",
    "central_station",
    "error_rates",
    "figure_style",
    "harm_matrices",
    "loss_classification",
    "means_over_x",
    "medium_map",
    "modes_over_snr",
    "normalised_index",
    "paired_means",
    "render_svg",
    "shares_over_time",
    "spread_labels",
    "station_metrics",
    "time_series",
    "topology",
    "visible_texts",
]
