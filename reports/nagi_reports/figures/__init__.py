# SPDX-License-Identifier: Apache-2.0
"""The figures of the report, as SVG: readable without colour, with letters as outlines.

Functions `make_*` return figures, functions `draw_*` draw on given axes. They read no files, but
draw the values of their arguments.
"""

from nagi_reports.figures.applications import ApplicationCurves, make_application_figures
from nagi_reports.figures.axes import (
    WIDTH,
    figure_style,
    list_visible_texts,
    render_svg,
    spread_labels,
)
from nagi_reports.figures.comparison import Pair, make_comparison_figures
from nagi_reports.figures.fairness import (
    HarmMatrix,
    SharesOverTime,
    make_harm_figure,
    make_shares_figure,
)
from nagi_reports.figures.goodput import (
    make_goodput_figures,
    make_index_figures,
    make_mean_figures,
    make_nagi_figures,
)
from nagi_reports.figures.losses import ClassifiedLosses, make_loss_figure
from nagi_reports.figures.medium import (
    MAX_SENSE_LINES,
    AirtimeShares,
    DrawnMedium,
    DrawnStation,
    StationMeans,
    find_central_station,
    make_airtime_figure,
    make_medium_map,
    make_station_figure,
)
from nagi_reports.figures.over_time import MAX_ROWS, MAX_SCALE_RATIO, make_time_series_figure
from nagi_reports.figures.radio import (
    ErrorRate,
    ModeShares,
    make_error_rate_figure,
    make_mode_figure,
)
from nagi_reports.figures.topology import DrawnLink, make_topology_diagram

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
    "figure_style",
    "find_central_station",
    "list_visible_texts",
    "make_airtime_figure",
    "make_application_figures",
    "make_comparison_figures",
    "make_error_rate_figure",
    "make_goodput_figures",
    "make_harm_figure",
    "make_index_figures",
    "make_loss_figure",
    "make_mean_figures",
    "make_medium_map",
    "make_mode_figure",
    "make_nagi_figures",
    "make_shares_figure",
    "make_station_figure",
    "make_time_series_figure",
    "make_topology_diagram",
    "render_svg",
    "spread_labels",
]
