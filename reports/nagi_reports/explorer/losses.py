# SPDX-License-Identifier: Apache-2.0
"""The lost segments of a flow, with the sender's classification of each loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from nagi_captures.capture import read_packets
from nagi_captures.drops import CAUSES
from nagi_captures.flow_rows import merge_scan_rows
from nagi_contracts.plan import FlowPlan

from nagi_reports.analysis import (
    LossClassification,
    RecordedRun,
    classify_losses,
    locate_sender_capture,
)
from nagi_reports.attribution import OUTCOMES

UNKNOWN = "unknown"
CLASSIFICATIONS = (*OUTCOMES, UNKNOWN)


@dataclass(frozen=True)
class Losses:
    """The lost segments of a flow, one row per segment.

    Columns: t_s (since the run began, by the emulator's clock), cause (of CAUSES), taken_for (of
    CLASSIFICATIONS), sequence (as on the wire), payload (bytes), identity.
    """

    table: pd.DataFrame
    source: str  # a sentence on the source of the classifications; empty without losses

    def group(self) -> list[tuple[str, str, pd.DataFrame]]:
        """Return cause, classification and rows of each combination that occurs.

        Combinations are in the order of CAUSES, then of CLASSIFICATIONS.
        """
        groups = []
        for cause in CAUSES:
            for outcome in CLASSIFICATIONS:
                is_in_group = (self.table["cause"] == cause) & (self.table["taken_for"] == outcome)
                if is_in_group.any():
                    groups.append((cause, outcome, self.table[is_in_group]))
        return groups


_SOURCE_NOTES = {
    "told": "The scheme itself reported how it classified each loss.",
    "inferred": "The sender's classification of each loss is inferred from samples of its socket.",
}


def read_flow_losses(
    flow: FlowPlan, drops: pd.DataFrame, began_ns: int, recorded: RecordedRun | None
) -> Losses:
    """Return the losses of a flow; their classification is UNKNOWN if it is not available.

    Args:
        flow: The flow.
        drops: All drops of the run.
        began_ns: When the run began, in ns since the Unix epoch.
        recorded: The records of the run; None if not all captures were kept.
    """
    classification = None if recorded is None else _classify(recorded, flow)
    if classification is not None:
        names = np.array(OUTCOMES, object)
        table = classification.losses.assign(taken_for=names[classification.codes])
        return Losses(table, _SOURCE_NOTES[classification.method] if len(table) else "")
    is_sent_by_server = flow.listening_end == "sender"
    flow_drops = drops[
        (drops["source"] == flow.sender_address)
        & (drops["destination"] == flow.receiver_address)
        & (drops["source_port" if is_sent_by_server else "destination_port"] == flow.port)
        & (drops["payload"] > 0)
    ]
    table = flow_drops.assign(t_s=(flow_drops["time_ns"] - began_ns) / 1e9, taken_for=UNKNOWN)
    reason = (
        "not all captures were kept"
        if recorded is None
        else "the flow has several connections, its sender's clock is not known, or a switch does "
        "not report its drops"
    )
    return Losses(table, f"How the sender classified losses is not known: {reason}.")


def _classify(recorded: RecordedRun, flow: FlowPlan) -> LossClassification | None:
    sent = merge_scan_rows(recorded.scans[locate_sender_capture(flow)].flows, flow)
    return None if sent is None else classify_losses(recorded, flow, sent)


def find_first_sequence(
    capture: Path, connection: int, direction: int, losses: pd.DataFrame
) -> int | None:
    """Return the first sequence number (as on the wire) of a direction in a capture.

    The number follows from lost segments that are in the capture. Return None if the capture has
    none of them.

    Args:
        capture: The capture.
        connection: Number of the connection in the capture.
        direction: The direction of the connection.
        losses: The lost segments, with `sequence` and `identity`.
    """
    if losses.empty:
        return None
    for table in read_packets(capture):
        direction_packets = table[
            (table["connection"] == connection) & (table["direction"] == direction)
        ]
        identity = (
            direction_packets["identification"].astype("int64") * 2**16
            + direction_packets["checksum"]
        )
        captured_losses = losses.merge(
            direction_packets.assign(identity=identity), on="identity", suffixes=("", "_captured")
        )
        first_sequence = (
            (captured_losses["sequence"] - captured_losses["sequence_captured"]) % 2**32
        ).mode()
        if len(first_sequence):
            return int(first_sequence[0])
    return None
