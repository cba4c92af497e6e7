# SPDX-License-Identifier: Apache-2.0
"""The losses of a flow one by one, and what its sender made of each."""

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
    """A row a lost segment: t_s (since the run began, by the emulator's clock), cause (of CAUSES),
    taken_for (of TAKEN_FOR), sequence (on the wire), payload (bytes), identity. `how` is known what
    the sender made of them, or why it is not."""

    table: pd.DataFrame
    how: str

    def groups(self) -> list[tuple[str, str, pd.DataFrame]]:
        """Cause, outcome and rows, of those there are."""
        found = []
        for cause in CAUSES:
            for outcome in CLASSIFICATIONS:
                chosen = (self.table["cause"] == cause) & (self.table["taken_for"] == outcome)
                if chosen.any():
                    found.append((cause, outcome, self.table[chosen]))
        return found


_HOW = {
    "told": "The scheme itself told what it took each loss for.",
    "inferred": "What the sender took each loss for is inferred from samples of its socket.",
}


def read_flow_losses(
    flow: FlowPlan, drops: pd.DataFrame, began_ns: int, recorded: RecordedRun | None
) -> Losses:
    """The losses of a flow. drops: the run's. recorded: None if captures were not kept."""
    taken = None if recorded is None else _reactions(recorded, flow)
    if taken is not None:
        names = np.array(OUTCOMES, object)
        table = taken.losses.assign(taken_for=names[taken.codes])
        return Losses(table, _HOW[taken.method] if len(table) else "")
    from_listener = flow.listens == "sender"
    mine = drops[
        (drops["source"] == flow.sender_address)
        & (drops["destination"] == flow.receiver_address)
        & (drops["source_port" if from_listener else "destination_port"] == flow.port)
        & (drops["payload"] > 0)
    ]
    table = mine.assign(t_s=(mine["time_ns"] - began_ns) / 1e9, taken_for=UNKNOWN)
    why = (
        "not all captures were kept"
        if recorded is None
        else "the flow has several connections, its sender's clock is not known, or a switch does "
        "not tell its drops"
    )
    return Losses(table, f"What the sender took losses for is not known: {why}.")


def _reactions(recorded: RecordedRun, flow: FlowPlan) -> LossClassification | None:
    sent = merge_scan_rows(recorded.scans[locate_sender_capture(flow)].flows, flow)
    return None if sent is None else classify_losses(recorded, flow, sent)


def find_first_sequence(
    capture: Path, connection: int, direction: int, losses: pd.DataFrame
) -> int | None:
    """What a capture counts the sequence numbers of a connection's direction from; None if none of
    the losses is in it."""
    if losses.empty:
        return None
    for table in read_packets(capture):
        mine = table[(table["connection"] == connection) & (table["direction"] == direction)]
        identity = mine["identification"].astype("int64") * 2**16 + mine["checksum"]
        both = losses.merge(
            mine.assign(identity=identity), on="identity", suffixes=("", "_captured")
        )
        first = ((both["sequence"] - both["sequence_captured"]) % 2**32).mode()
        if len(first):
            return int(first[0])
    return None
