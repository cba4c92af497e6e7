# SPDX-License-Identifier: Apache-2.0
"""Loss differentiation of one flow: how its sender classified each lost segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd
from nagi_contracts.plan import FlowPlan

from nagi_reports import attribution
from nagi_reports.analysis.drops import has_full_drop_log
from nagi_reports.analysis.recorded import (
    RecordedRun,
    locate_sender_capture,
    to_emulator_clock,
    to_epoch_ns,
)


@dataclass(frozen=True)
class LossClassification:
    """The lost segments of a flow, and how its sender classified them."""

    losses: pd.DataFrame  # rows of the drop log, with t_s by the emulator's clock
    codes: attribution.Codes  # one per loss
    method: Literal["told", "inferred"]  # by the scheme's events, or by TCP_INFO
    mark_reductions: int | None  # window reductions for ECN marks; None if inferred


def classify_losses(recorded: RecordedRun, flow: FlowPlan, sent: Any) -> LossClassification | None:
    """Classify the losses of a flow by the scheme's events or, without events, by TCP_INFO.

    Return None if the flow is not a single TCP connection, the clock of its sender is not known, a
    switch on its path does not log its drops, or the capture at the sender is incomplete.

    Args:
        recorded: The records of the run.
        flow: The flow.
        sent: The flow's row in the scan of the capture at its sender.
    """
    clocks = recorded.verdict.clocks
    clock = clocks.get(flow.sender)
    if getattr(sent, "protocol", "") != "tcp" or (flow.sender in clocks and clock is None):
        return None
    if not has_full_drop_log(flow, recorded):
        return None
    losses = _select_losses(recorded, sent)
    events = recorded.events
    if events is not None and (flow_events := events[events["flow"] == flow.name]).size:
        codes = attribution.classify_by_events(losses, to_emulator_clock(clock, flow_events))
        return LossClassification(
            losses, codes, "told", int((flow_events["event"] == "congestion_mark").sum())
        )
    retransmissions = _select_retransmissions(recorded, flow, sent, losses)
    if retransmissions is None:
        return None
    samples = recorded.tcp_info[recorded.tcp_info["flow"] == flow.name]
    codes = attribution.classify_by_tcp_info(
        losses,
        to_emulator_clock(clock, retransmissions),
        to_emulator_clock(clock, samples),
        sets_threshold=flow.congestion_control not in attribution.NO_THRESHOLD,
    )
    return LossClassification(losses, codes, "inferred", None)


def compute_loss_columns(recorded: RecordedRun, flow: FlowPlan, sent: Any) -> dict[str, Any]:
    """Return the loss differentiation columns of the results; {} if losses are not classified."""
    classification = classify_losses(recorded, flow, sent)
    if classification is None:
        return {}
    columns: dict[str, Any] = {"reactions": classification.method}
    if classification.mark_reductions is not None:
        columns["mark_reactions"] = classification.mark_reductions
    return columns | attribution.compute_columns(classification.losses, classification.codes)


def _select_losses(recorded: RecordedRun, sent: Any) -> pd.DataFrame:
    """Return a connection's data segments in the drop log, with the column `t_s` added.

    `t_s` is in s since the run began, by the emulator's clock.

    Args:
        recorded: The records of the run.
        sent: The connection's row in the scan of the capture at its sender.
    """
    drops = recorded.drops
    losses: pd.DataFrame = drops[
        (drops["source"] == sent.source)
        & (drops["source_port"] == sent.source_port)
        & (drops["destination"] == sent.destination)
        & (drops["destination_port"] == sent.destination_port)
        & (drops["payload"] > 0)
    ]
    return losses.assign(t_s=(losses["time_ns"] - to_epoch_ns(recorded.manifest, 0)) / 1e9)


def _select_retransmissions(
    recorded: RecordedRun, flow: FlowPlan, sent: Any, losses: pd.DataFrame
) -> pd.DataFrame | None:
    """Return a connection's retransmissions in the capture at its sender.

    The columns are t_s (by the sender's clock), sequence (as on the wire) and payload. If `losses`
    is empty, the table is empty. Return None if the capture has none of the lost segments, because
    the capture is then incomplete.
    """
    captured = recorded.read_lost_packets(locate_sender_capture(flow)) if len(losses) else None
    if captured is None:
        return losses
    packets = captured[
        (captured["connection"] == sent.connection) & (captured["direction"] == sent.direction)
    ]
    # The table of a capture has sequence numbers relative to the connection's first number. This
    # first number follows from a dropped segment, because the drop log has the segment's number on
    # the wire.
    captured_losses = losses.merge(packets, on="identity", suffixes=("", "_captured"))
    first_sequence = (
        (captured_losses["sequence"] - captured_losses["sequence_captured"]) % 2**32
    ).mode()
    if first_sequence.empty:
        return None
    retransmissions = packets[packets["retransmission"]]
    return pd.DataFrame(
        {
            "t_s": (retransmissions["time_ns"] - to_epoch_ns(recorded.manifest, 0)) / 1e9,
            "sequence": (retransmissions["sequence"] + first_sequence[0]) % 2**32,
            "payload": retransmissions["payload"],
        }
    )
