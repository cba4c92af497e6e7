# SPDX-License-Identifier: Apache-2.0
"""Computation of a run's rows of results from its records, and of a campaign's results.parquet."""

from nagi_reports.analysis.losses import LossClassification, classify_losses
from nagi_reports.analysis.recorded import (
    GOODPUT,
    METRICS,
    RecordedRun,
    compute_packet_identities,
    find_capture,
    locate_receiver_capture,
    locate_sender_capture,
    read_all_drops,
    require_capture,
    to_epoch_ns,
)
from nagi_reports.analysis.run import analyse_run, can_analyse, ensure_metrics
from nagi_reports.analysis.table import build_table, read_table

__all__ = [
    "GOODPUT",
    "METRICS",
    "LossClassification",
    "RecordedRun",
    "analyse_run",
    "build_table",
    "can_analyse",
    "classify_losses",
    "compute_packet_identities",
    "ensure_metrics",
    "find_capture",
    "locate_receiver_capture",
    "locate_sender_capture",
    "read_all_drops",
    "read_table",
    "require_capture",
    "to_epoch_ns",
]
