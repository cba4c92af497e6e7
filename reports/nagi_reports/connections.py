# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics --sender`: metrics of TCP connections in the captures of receiver and sender.

A row is a TCP connection, in the direction that carries more payload. The receiver's capture gives
goodput, throughput and transfer time. The sender's capture, if given, gives retransmissions, RTT,
bytes in flight and windows. Both captures together give one-way delays and losses.
nagi_reports.metrics and nagi_captures.capture define these metrics. If the payload of a connection
travels from the receiver's host to the sender's host, the two captures are exchanged for it.

If no measurement interval is given, the interval of a connection lasts from its first packet to its
last byte of payload.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nagi_captures.capture import Clocks, match
from nagi_captures.reading import Flows, display_name, read
from nagi_contracts.errors import refuse
from rich.table import Table

from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    agi_of_ceiling,
    goodput_bps,
    loss_rate,
    retransmission_rate,
    tcp_efficiency,
    throughput_bps,
    transfer_time_s,
)
from nagi_reports.overview import describe_contents, format_endpoint, list_warnings

MAX_SHOWN_ROWS = 40  # rows of the text table; JSON has all
DRIFT_PPM = 50.0  # clocks of computers that are not synchronised drift by tens of ppm
_TIMESTAMPS_BYTES = 12


@dataclass(frozen=True)
class Connections:
    """The connections in the receiver's capture, with damage and warnings of all captures."""

    rows: list[dict[str, Any]]  # one per TCP connection, as plain data; keys have units
    bottleneck_bps: int | None
    clocks: Clocks | None  # comparison of the captures' clocks; None without a sender's capture
    damage: list[str]  # a sentence on each damaged capture
    unused: dict[str, dict[str, int]]  # number of packets in no connection, by capture and reason
    udp_connections: int  # number of UDP connections, which are in no row
    warnings: list[str]  # reasons why numbers may be wrong


def measure(
    receiver: Path,
    sender: Path | None,
    *,
    bottleneck_bps: int | None,
    from_ns: int | None,
    to_ns: int | None,
) -> Connections:
    """Measure the connections in the receiver's capture.

    Args:
        receiver: The capture at the receiver.
        sender: The capture at the sender, or None.
        bottleneck_bps: Rate of the bottleneck; None leaves out the AGI.
        from_ns: Begin of the measurement interval, counted from the first packet of `receiver`.
        to_ns: End of the interval, also counted from the first packet of `receiver`. If only one of
            both is None, the interval begins or ends with the capture. If both are None, the
            interval of each connection lasts from its first packet to its last byte of payload.

    Raises:
        InputError: A file is no capture, the receiver's capture has no TCP payload or ends before
            `from_ns`, or the captures have no packet in common.
    """
    received = read(receiver, start_ns=from_ns, end_ns=to_ns, relative=True)
    _check_interval(receiver, received, from_ns)
    start_ns, end_ns = received.start_ns, received.end_ns
    if start_ns is not None and end_ns is None:
        end_ns = received.last_ns + 1
    if end_ns is not None and start_ns is None:
        start_ns = received.first_ns
    flows = pd.DataFrame(received.columns, copy=False)
    indices = _select_payload_directions(flows)
    if not len(indices):
        raise refuse(
            f"there is no TCP connection with payload in it{describe_contents(received)}",
            "give a capture of TCP, made at the receiver",
            file=display_name(receiver),
        )
    sent = comparison = None
    flows_at_sender = flows[:0]
    if sender is not None:
        sent = read(sender, start_ns=start_ns, end_ns=end_ns)
        flows_at_sender = pd.DataFrame(sent.columns, copy=False)
        comparison = match(sender, receiver, start_ns=start_ns, end_ns=end_ns)
    receiver_rows, sender_rows = _Rows(flows), _Rows(flows_at_sender)
    # Row in the receiver's capture -> row of the comparison, row in the sender's capture.
    pairs = {
        receiver_rows.find_index(direction.received_connection, direction): (
            direction,
            sender_rows.find_index(direction.sent_connection, direction),
        )
        for direction in (comparison.flows.itertuples() if comparison else ())
    }
    rows = []
    for index in indices:
        direction, sender_index = pairs.get(index, (None, None))
        receiver_slot, sender_slot = (receiver_rows, index), (sender_rows, sender_index)
        # Packets of the reverse direction were sent by the host of the receiver's capture, so the
        # captures are exchanged for this connection.
        is_exchanged = direction is not None and not direction.forward
        (at_sender, index_at_sender), (at_receiver, index_at_receiver) = (
            (receiver_slot, sender_slot) if is_exchanged else (sender_slot, receiver_slot)
        )
        forward_row, reverse_row = (
            at_receiver.get_row(index_at_receiver),
            at_receiver.get_reverse_row(index_at_receiver),
        )
        interval = _find_measurement_interval(forward_row, reverse_row, start_ns, end_ns)
        rows.append(
            {
                "source": format_endpoint(forward_row.source, forward_row.source_port),
                "destination": format_endpoint(
                    forward_row.destination, forward_row.destination_port
                ),
                "at_receiver": _measure_at_receiver(
                    forward_row, reverse_row, interval, bottleneck_bps
                ),
                "at_sender": _measure_at_sender(
                    at_sender.get_row(index_at_sender), at_sender.get_reverse_row(index_at_sender)
                ),
                "between": _measure_between(direction),
            }
        )
    scans = {display_name(receiver): received}
    if sender is not None and sent is not None:
        scans[display_name(sender)] = sent
    return Connections(
        rows=rows,
        bottleneck_bps=bottleneck_bps,
        clocks=comparison.clocks if comparison else None,
        damage=[scan.damage for scan in scans.values() if scan.damage],
        unused={name: scan.unused for name, scan in scans.items() if any(scan.unused.values())},
        udp_connections=int((flows["protocol"] == "udp").sum()) // 2,
        warnings=[line for name, scan in scans.items() for line in _list_warnings(name, scan)],
    )


def to_json(connections: Connections) -> dict[str, Any]:
    """Return the measurement as plain data for JSON: {"connections": [ROW, ...], ...}."""
    return {
        "schema_version": 1,
        "bottleneck_bps": connections.bottleneck_bps,
        "connections": connections.rows,
        "clocks": None
        if connections.clocks is None
        else {name: to_json_value(value) for name, value in vars(connections.clocks).items()},
        "damage": connections.damage,
        "packets_in_no_connection": connections.unused,
        "udp_connections_left_out": connections.udp_connections,
    }


def make_tables(connections: Connections) -> Iterator[Table]:
    """Yield text tables of the MAX_SHOWN_ROWS measured connections that have the most payload.

    The first table has metrics of the receiver's capture. If there is a sender's capture, a second
    table follows.
    """
    rows = sorted(connections.rows, key=lambda row: -row["at_receiver"]["first_time_bytes"])[
        :MAX_SHOWN_ROWS
    ]
    heads = ["AG (Mb/s)", "s", "MB"]
    if connections.bottleneck_bps is not None:
        heads += ["AGI", "/ ceiling"]
    table = _make_table("", "from", "to", *heads)
    for number, row in enumerate(rows, 1):
        at_receiver = row["at_receiver"]
        cells = [
            _format_number(at_receiver["goodput_bps"], 1e-6),
            _format_number(at_receiver["interval_s"]),
            _format_number(at_receiver["first_time_bytes"], 1e-6),
        ]
        if connections.bottleneck_bps is not None:
            cells += [
                _format_number(at_receiver["agi"]),
                _format_number(at_receiver["agi_of_ceiling"]),
            ]
        table.add_row(str(number), row["source"], row["destination"], *cells)
    yield table
    if any(row["at_sender"] or row["between"] for row in rows):
        heads = ["retr.", "RTT (ms)", "in flight (kB)", "lost", "delay (ms)", "queueing (ms)"]
        table = _make_table("", *heads)
        for number, row in enumerate(rows, 1):
            at_sender, between = row["at_sender"] or {}, row["between"] or {}
            table.add_row(
                str(number),
                _format_share(at_sender.get("retransmission_rate")),
                _format_number(at_sender.get("rtt_mean_s"), 1e3),
                _format_number(at_sender.get("in_flight_mean_bytes"), 1e-3),
                _format_share(between.get("loss_rate")),
                _format_number(between.get("one_way_delay_mean_s"), 1e3),
                _format_number(between.get("queueing_delay_mean_s"), 1e3),
            )
        yield table


def _make_table(*heads: str) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for head in heads:
        if head in ("from", "to"):
            table.add_column(head, overflow="fold")
        else:
            table.add_column(head, justify="right", no_wrap=True)
    return table


def list_notices(connections: Connections) -> list[str]:
    """Return the lines below the tables: bottleneck, clocks, damage, warnings, what is left out."""
    lines = []
    if connections.bottleneck_bps is not None:
        lines.append(
            f"bottleneck {connections.bottleneck_bps / 1e6:g} Mb/s; AGI is AG / bottleneck, the "
            "ceiling the largest AGI that headers permit"
        )
    if len(connections.rows) > MAX_SHOWN_ROWS:
        lines.append(f"{len(connections.rows) - MAX_SHOWN_ROWS} more connections: --json has all")
    if connections.udp_connections:
        lines.append(f"{connections.udp_connections} UDP connections left out")
    if connections.clocks is not None:
        lines.append(describe_clocks(connections.clocks))
    lines += [f"damaged: {damage}" for damage in connections.damage]
    lines += connections.warnings
    for name, reasons in connections.unused.items():
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
        lines.append(f"{name}: packets in no connection: {counts}")
    return lines


def _list_warnings(name: str, flows: Flows) -> list[str]:
    return list_warnings(name, flows, int(flows.columns["captured_twice"].sum()))


def describe_clocks(clocks: Clocks) -> str:
    """Return a sentence on whether the clocks permit one-way delays."""
    clauses = []
    if clocks.apart_at_least_ns > 0:
        clauses.append(
            f"the two captures' clocks are apart by at least {clocks.apart_at_least_ns / 1e6:.3f} "
            "ms, as packets would have arrived before they were sent: one-way delays are wrong by "
            "a constant, queueing delays are right"
        )
    elif clocks.offset_ns is None:
        clauses.append(
            "packets went in one direction only, so the two captures' clocks cannot be compared"
        )
    else:
        clauses.append(
            "the two captures' clocks do not contradict each other (they may still be apart: by "
            f"{abs(clocks.offset_ns) / 1e6:.3f} ms if both directions have the same delay)"
        )
    if clocks.drift_ppm is not None and abs(clocks.drift_ppm) > DRIFT_PPM:
        clauses.append(
            f"they drift by {clocks.drift_ppm:.0f} ppm, or the path changed: queueing delays "
            "contain this drift"
        )
    return "clocks: " + "; ".join(clauses)


class _Rows:
    """Rows of a scan, which are converted to named tuples when they are requested.

    The row of a direction (0 or 1) of a connection has the index 2 x connection + direction.
    """

    def __init__(self, flows: pd.DataFrame) -> None:
        self._flows = flows
        self._source = flows["source"].to_numpy()
        self._port = flows["source_port"].to_numpy()

    def get_row(self, index: int | None) -> Any:
        """Return a row as a named tuple, or None if `index` is None."""
        return None if index is None else next(self._flows[index : index + 1].itertuples())

    def get_reverse_row(self, index: int | None) -> Any:
        """Return the row of the connection's other direction, or None if `index` is None."""
        return None if index is None else self.get_row(index ^ 1)

    def find_index(self, connection: Any, row: Any) -> int:
        """Return the index of the row of `connection` that has the same source as `row`."""
        first = 2 * int(connection)
        is_first = self._source[first] == row.source and self._port[first] == row.source_port
        return first if is_first else first + 1


def _check_interval(receiver: Path, received: Flows, from_ns: int | None) -> None:
    length_ns = received.last_ns - received.first_ns
    if (from_ns or 0) > length_ns:
        raise refuse(
            f"its packets end after {length_ns / 1e9:.6g} s, before --from",
            "give an earlier --from",
            file=display_name(receiver),
        )


def _select_payload_directions(flows: pd.DataFrame) -> list[int]:
    """Return, for each TCP connection, the row number of the direction with more payload.

    Connections without payload are left out.
    """
    payload = flows["first_time_bytes"].to_numpy().reshape(-1, 2)
    indices = 2 * np.arange(len(payload)) + (payload[:, 1] > payload[:, 0])
    tcp = flows["protocol"].to_numpy()[indices] == "tcp"
    selected: list[int] = indices[tcp & (payload.max(axis=1, initial=0) > 0)].tolist()
    return selected


def _find_measurement_interval(
    row: Any, reverse_row: Any, start_ns: int | None, end_ns: int | None
) -> tuple[int, int]:
    """Return begin and end of a connection's measurement interval, in ns since the Unix epoch.

    Args:
        row: The direction of the connection with more payload.
        reverse_row: The other direction.
        start_ns: Begin of the requested interval; None without.
        end_ns: End of the requested interval.
    """
    if start_ns is not None and end_ns is not None:
        return start_ns, end_ns
    return _find_first_packet_ns(row, reverse_row), row.last_data_ns


def _find_first_packet_ns(row: Any, reverse_row: Any) -> int:
    """Return when the first packet of a connection was captured, in either direction."""
    times = [
        direction.first_ns
        for direction in (row, reverse_row)
        if direction is not None and direction.packets
    ]
    return int(min(times))


def _measure_at_receiver(
    row: Any, reverse_row: Any, interval: tuple[int, int], bottleneck_bps: int | None
) -> dict[str, Any]:
    """Return the metrics that follow from the receiver's capture, by name.

    Args:
        row: The direction of the connection with more payload.
        reverse_row: The other direction.
        interval: Begin and end of the measurement interval.
        bottleneck_bps: Rate of the bottleneck, or None.
    """
    seconds = (interval[1] - interval[0]) / 1e9
    goodput = goodput_bps(row.first_time_bytes_inside, seconds)
    ceiling = _compute_ceiling(row, reverse_row)
    index = agi(goodput, bottleneck_bps) if bottleneck_bps is not None else math.nan
    values = {
        "interval_s": seconds,
        "first_time_bytes": row.first_time_bytes_inside,
        "goodput_bps": goodput,
        "throughput_bps": throughput_bps(row.ip_bytes_inside, seconds),
        "transfer_bytes": row.first_time_bytes,
        "transfer_time_s": transfer_time_s(
            _find_first_packet_ns(row, reverse_row), row.last_data_ns
        ),
        "agi": index,
        "agi_ceiling": ceiling,
        "agi_of_ceiling": agi_of_ceiling(index, ceiling),
        "packets": row.packets_inside,
        "complete_handshake": bool(row.complete_handshake),
    }
    return {name: to_json_value(value) for name, value in values.items()}


def _compute_ceiling(row: Any, reverse_row: Any) -> float:
    """Return the largest AGI that headers permit, with segments of the negotiated size.

    The size follows from the MSS options of both SYNs. Return nan if a SYN was not captured.
    """
    mss_options = [
        direction.mss
        for direction in (row, reverse_row)
        if direction is not None and direction.mss > 0
    ]
    if len(mss_options) < 2:
        return math.nan
    mss = min(mss_options)
    options = _TIMESTAMPS_BYTES if row.timestamps else 0
    headers = 60 if ":" in row.source else 40
    return agi_ceiling(mss - options, mss + headers)


def _measure_at_sender(row: Any, reverse_row: Any) -> dict[str, Any] | None:
    """Return the metrics that follow from the sender's capture, by name; None without a capture.

    `row` is the direction with more payload, `reverse_row` the other direction.
    """
    if row is None:
        return None
    values = {
        "segments_sent": row.data_packets_inside,
        "segments_retransmitted": row.retransmitted_packets_inside,
        "retransmission_rate": retransmission_rate(
            row.retransmitted_packets_inside, row.data_packets_inside
        ),
        "tcp_efficiency": tcp_efficiency(row.payload_bytes_inside, row.retransmitted_bytes_inside),
        **extract_rtt_s(row),
        "in_flight_mean_bytes": row.in_flight_mean_bytes,
        "in_flight_max_bytes": row.in_flight_max_bytes,
        "receive_window_mean_bytes": reverse_row.window_mean_bytes
        if reverse_row is not None
        else None,
        "duplicate_acks": reverse_row.duplicate_acks if reverse_row is not None else None,
    }
    return {name: to_json_value(value) for name, value in values.items()}


def extract_rtt_s(row: Any) -> dict[str, float | None]:
    """Return statistics of a direction's RTT in s: {"rtt_min_s": ..., ...}; None if not known.

    The RTT is measured by TCP timestamps or, without such samples, by sequence numbers.
    """
    method = "timestamps" if row.rtt_timestamps_count else "sequence"
    return {
        f"rtt_{name}_s": to_json_value(getattr(row, f"rtt_{method}_{name}_ns") / 1e9)
        for name in ("min", "mean", "median", "p95", "p99", "max")
    }


def _measure_between(row: Any) -> dict[str, Any] | None:
    """Return delays and losses between the captures, by name, or None if `row` is None.

    `row` is the connection's row in the comparison of the captures.
    """
    if row is None:
        return None
    values: dict[str, Any] = {
        "data_packets_sent": row.data_sent,
        "data_packets_lost": row.data_lost,
        "loss_rate": loss_rate(row.data_lost, row.data_sent),
    }
    for name in ("min", "mean", "median", "p95", "p99", "max"):
        values[f"one_way_delay_{name}_s"] = getattr(row, f"delay_{name}_ns") / 1e9
    for name in ("mean", "median", "p95", "p99", "max"):
        values[f"queueing_delay_{name}_s"] = getattr(row, f"queueing_{name}_ns") / 1e9
    values |= {
        "loss_bursts": row.bursts,
        "loss_burst_packets": row.burst_packets,
        "loss_burst_density": row.burst_density,
        "loss_gap_density": row.gap_density,
        "loss_run_mean_packets": row.loss_run_mean,
        "loss_run_max_packets": row.loss_run_max,
    }
    return {name: to_json_value(value) for name, value in values.items()}


def to_json_value(value: Any) -> Any:
    """Return a value for JSON: numbers of NumPy as plain numbers, and None for nan and infinity."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _format_number(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:.3f}"


def _format_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}".replace("%", " %")
