# SPDX-License-Identifier: Apache-2.0
"""results.parquet: a row a flow a run. A field here is a column there, with the same name."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi.contracts.base import Contract
from nagi.contracts.records import Status


class ResultRow(Contract):
    """One flow of one run."""

    run_id: str
    point_id: str = Field(description="the same point in other labs and builds has the same id")
    lab: str
    build: str = Field(description="id of the build that ran it")
    status: Status = Field(description="only valid rows enter a mean")
    repeat: int
    seed: int
    point: dict[str, str] = Field(
        description="axis -> value; in the table a column `point.AXIS` for every axis"
    )
    flow: str
    scheme: str
    congestion_control: str
    bottleneck_bps: int = Field(description="smallest configured rate on the path, bit/s")
    base_rtt_s: float = Field(description="propagation there and back, s")
    measured_s: float = Field(description="length of the measurement interval, s")
    goodput_bps: float | None = Field(
        description="payload bytes delivered for the first time x 8 / interval, bit/s"
    )
    agi: float | None = Field(description="achieved goodput index: goodput / bottleneck")
    agi_ceiling: float = Field(description="the largest AGI that headers permit")
    segments_sent: int | None = Field(description="data segments in the sender's capture")
    segments_retransmitted: int | None = Field(
        description="of these, segments with bytes that had been sent before"
    )
    queue_overflows: int | None = Field(description="packets dropped by queues on the path")
    channel_losses: int | None = Field(description="packets lost on channels of the path")
    channel_packets: int | None = Field(
        description="packets transmitted on channels of the path, lost or not"
    )


class Metrics(Contract):
    """metrics.json: the rows of one run."""

    schema_version: Literal[1] = 1
    rows: list[ResultRow]
    notices: list[str] = Field(description="damage found in captures")
