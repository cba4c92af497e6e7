# SPDX-License-Identifier: Apache-2.0
"""Columns of results that applications report, and how reports show them.

nagi-traffic records completion times, the success of a playback, loss and delay of datagrams.
These values cover the whole run, including the warmup.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from nagi_contracts.applications import ApplicationEnds
from nagi_contracts.applications.cbr import CbrClient, CbrServer
from nagi_contracts.applications.onoff import OnOffClient, OnOffServer
from nagi_contracts.applications.playback import PlaybackServer
from nagi_contracts.applications.poisson import PoissonClient
from nagi_contracts.applications.request_response import RequestResponseClient
from nagi_contracts.applications.token_bucket import TokenBucketClient
from nagi_contracts.applications.transfer import TransferClient, TransferServer
from nagi_contracts.records import Campaign

from nagi_reports.metrics import loss_rate
from nagi_reports.statistics import Mean, drop_background, mean


@dataclass(frozen=True)
class ApplicationMetric:
    """A column of results, with the heading, unit and definition that reports print."""

    head: str
    unit: str
    scale: float  # factor from the column's unit to `unit`
    digits: int  # decimals
    definition: str

    @property
    def title(self) -> str:
        """The heading with its unit."""
        return f"{self.head} ({self.unit})" if self.unit else self.head

    @property
    def phrase(self) -> str:
        """The heading within a sentence: with a small first letter, except in names such as MOS."""
        is_name = self.head[1:2] in (" ", self.head[1:2].upper())  # R factor, MOS
        return self.head if is_name else f"{self.head[0].lower()}{self.head[1:]}"


# The columns of results, in the order of reports.
APPLICATION_METRICS = {
    "completed_share": ApplicationMetric(
        "Completed", "%", 100, 1, "The share of transfers begun that were completed."
    ),
    "completion_time_s": ApplicationMetric(
        "Completion time",
        "s",
        1,
        3,
        "The time of a transfer of a given size from connect(), so with the handshake, until its "
        "last byte was acknowledged. The kernel decides how often it repeats a lost SYN. A "
        "transfer that was not complete at its maximum duration, or when the traffic ended, has no "
        "completion time.",
    ),
    "transfer_goodput_bps": ApplicationMetric(
        "Goodput of the transfer",
        "kB/s",
        1 / 8e3,
        2,
        "The size of a transfer divided by its completion time. For a transfer that was not "
        "completed: the bytes that arrived, divided by the time until it was stopped.",
    ),
    "fct_median_s": ApplicationMetric(
        "FCT, median",
        "s",
        1,
        3,
        "Flow completion time. For transfers that arrive as a Poisson process: from connect(), so "
        "with the handshake, until the last byte was acknowledged; each transfer has its own "
        "connection. For requests: from the request until its response arrived. Transfers and "
        "requests that were not completed do not count.",
    ),
    "fct_p95_s": ApplicationMetric(
        "FCT, p95", "s", 1, 3, "The 95th percentile of flow completion times."
    ),
    "fct_p99_s": ApplicationMetric(
        "FCT, p99", "s", 1, 3, "The 99th percentile of flow completion times."
    ),
    "tokens_per_rtt": ApplicationMetric(
        "Tokens per RTT",
        "",
        1,
        2,
        "Mean number of tokens that the sender used per round-trip time, over consecutive "
        "round-trip times. Each has the length of the kernel's smoothed RTT at its beginning. A "
        "token is used when TCP takes its bytes to send them at once.",
    ),
    "tokens_permitted_per_rtt": ApplicationMetric(
        "Permitted", "", 1, 2, "Tokens that entered the bucket in these round-trip times, mean."
    ),
    "playback_success": ApplicationMetric(
        "Playback success",
        "%",
        100,
        1,
        "The share of attempts that found enough bytes. The player attempts to read rate x "
        "interval bytes at every interval, from one interval after the first byte on. An attempt "
        "that finds fewer bytes reads nothing, and is not repeated.",
    ),
    "datagram_loss_rate": ApplicationMetric(
        "Lost", "%", 100, 2, "The share of datagrams sent that did not arrive."
    ),
    "datagram_delay_mean_s": ApplicationMetric(
        "Delay, mean",
        "ms",
        1e3,
        2,
        "One-way delay from the sender's application to the receiver's kernel; known if both hosts "
        "have the same clock.",
    ),
    "datagram_delay_p99_s": ApplicationMetric(
        "Delay, p99", "ms", 1e3, 2, "The 99th percentile of one-way delays."
    ),
    "datagram_jitter_s": ApplicationMetric(
        "Jitter", "ms", 1e3, 3, "Interarrival jitter at the end of the run (RFC 3550, 6.4.1)."
    ),
    "r_factor": ApplicationMetric(
        "R factor",
        "",
        1,
        1,
        "Quality of a voice call: R = 93.2 - Id - Ie,eff (ITU-T G.107, other parameters at their "
        "defaults). Id follows from the delay from mouth to ear: the smallest one-way delay, the "
        "playout buffer and the 20 ms of a packet. Ie,eff follows from the share of packets that "
        "were lost or too late to be played, and from their bursts; G.711 with loss concealment: "
        "Ie 0, Bpl 25.1 (G.113).",
    ),
    "mos": ApplicationMetric(
        "MOS", "", 1, 2, "The mean opinion score of R, 1 to 4.5 (ITU-T G.107, annex B)."
    ),
}


# Figures show the first of these metrics that has a value for a flow.
LEADING_METRICS = (
    "completion_time_s",
    "fct_p95_s",
    "playback_success",
    "tokens_per_rtt",
    "mos",
    "datagram_loss_rate",
    *APPLICATION_METRICS,
)


@dataclass(frozen=True)
class FlowSummary:
    """Metrics of a flow's application at the points of a panel.

    Each row is a point: the values of `axes`, and the mean of each metric in `columns`, in the unit
    of the metric's heading.
    """

    flow: str
    panel: str  # value of the panels' axis; empty without such an axis
    axes: list[str]  # the axis of the series, and the axis x if they differ
    columns: list[str]  # columns of APPLICATION_METRICS that have a value
    rows: list[tuple[list[str], list[Mean | None]]]


def summarise_flows(campaign: Campaign, table: pd.DataFrame) -> Iterator[FlowSummary]:
    """Yield one summary per panel for each flow whose application reports metrics.

    Only valid runs count; background traffic and points without a value are left out.
    """
    valid = drop_background(table[table["status"] == "valid"])
    panels = [""] if campaign.panels is None else _list_axis_values(campaign, campaign.panels)
    axes = list(dict.fromkeys([campaign.series, campaign.x]))
    for flow in dict.fromkeys(valid["flow"]):
        flow_rows = valid[valid["flow"] == flow]
        columns = [
            name
            for name in APPLICATION_METRICS
            if name in flow_rows and flow_rows[name].notna().any()
        ]
        if not columns:
            continue
        for panel in panels:
            panel_rows = flow_rows
            if campaign.panels is not None:
                panel_rows = flow_rows[flow_rows[f"point.{campaign.panels}"] == panel]
            rows = []
            for values in itertools.product(*(_list_axis_values(campaign, axis) for axis in axes)):
                point_rows = panel_rows
                for axis, value in zip(axes, values, strict=True):
                    point_rows = point_rows[point_rows[f"point.{axis}"] == value]
                if point_rows[columns].notna().any(axis=None):
                    rows.append(
                        (list(values), [_compute_scaled_mean(point_rows, name) for name in columns])
                    )
            yield FlowSummary(str(flow), panel, axes, columns, rows)


def _list_axis_values(campaign: Campaign, axis: str) -> list[str]:
    return list(dict.fromkeys(run.point[axis] for run in campaign.runs))


def _compute_scaled_mean(rows: pd.DataFrame, name: str) -> Mean | None:
    unscaled, scale = mean(rows[name].to_numpy(float)), APPLICATION_METRICS[name].scale
    return unscaled and Mean(unscaled.value * scale, unscaled.halfwidth * scale, unscaled.runs)


def compute_columns(ends: ApplicationEnds, *, has_one_clock: bool) -> dict[str, Any]:
    """Return the columns of results of an application; {} if no metrics are defined for it.

    Args:
        ends: The records of the application's client and server.
        has_one_clock: Whether both hosts have the same clock. If not, the columns of delay and of
            voice quality are left out.
    """
    client, server = ends.client, ends.server
    if isinstance(client, TransferClient):
        return {
            "completed_share": float(client.completed),
            "completion_time_s": client.completion_s,
            "transfer_goodput_bps": _compute_transfer_goodput_bps(client, server),
        }
    if isinstance(client, TokenBucketClient):
        return {
            "tokens_per_rtt": client.tokens_per_rtt,
            "tokens_permitted_per_rtt": client.permitted_per_rtt,
        }
    if isinstance(client, PoissonClient):
        return _compute_completion_columns([duration_s for _, _, duration_s in client.transfers])
    if isinstance(client, RequestResponseClient):
        return _compute_completion_columns([duration_s for _, _, duration_s in client.requests])
    if isinstance(client, OnOffClient) and isinstance(server, OnOffServer):
        return _compute_datagram_columns(client, server, has_one_clock=has_one_clock)
    if isinstance(server, PlaybackServer):
        return {"playback_success": server.success_share}
    if isinstance(client, CbrClient) and isinstance(server, CbrServer):
        return _compute_datagram_columns(client, server, has_one_clock=has_one_clock)
    return {}


def _compute_transfer_goodput_bps(client: TransferClient, server: object) -> float | None:
    """Return the goodput of a transfer, in bit/s; None if the transfer took no time.

    If the transfer was not completed, only the bytes that arrived count.
    """
    size = client.size_bytes
    if not client.completed:
        size = server.received_bytes if isinstance(server, TransferServer) else 0
    return size * 8 / client.duration_s if client.duration_s > 0 else None


def _compute_completion_columns(durations_s: list[float | None]) -> dict[str, Any]:
    """Return the share of completed transfers or requests, and percentiles of their durations.

    The percentiles are left out if no transfer or request was completed.

    Args:
        durations_s: The duration of each transfer or request; None if it was not completed.
    """
    completed_s = np.array([duration_s for duration_s in durations_s if duration_s is not None])
    columns: dict[str, Any] = {
        "completed_share": len(completed_s) / len(durations_s) if durations_s else None
    }
    if len(completed_s):
        for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99)):
            columns[f"fct_{name}_s"] = float(np.quantile(completed_s, share))
    return columns


def _compute_datagram_columns(
    client: CbrClient | OnOffClient, server: CbrServer | OnOffServer, *, has_one_clock: bool
) -> dict[str, Any]:
    """Return the columns of loss, jitter, delay and voice quality; {} if the traffic is TCP."""
    if client.packets_sent is None or server.packets_received is None:
        return {}  # the application used TCP
    lost_packets = client.packets_sent - server.packets_received
    columns: dict[str, Any] = {
        "datagram_loss_rate": loss_rate(lost_packets, client.packets_sent),
        "datagram_jitter_s": server.jitter_s,
    }
    if has_one_clock and server.one_way_delay is not None:
        columns["datagram_delay_mean_s"] = server.one_way_delay.mean_s
        columns["datagram_delay_p99_s"] = server.one_way_delay.p99_s
    if has_one_clock and server.voice is not None:
        columns["r_factor"] = server.voice.r_factor
        columns["mos"] = server.voice.mos
    return columns
