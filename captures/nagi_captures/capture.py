# SPDX-License-Identifier: Apache-2.0
"""Captures as tables: connections, packets, and what happened to packets between two captures.

`nagi_captures_native` (C++, captures/native) does the work in one pass; reading.py gives the same
without pandas, and documents the memory. Formats: pcap (draft-ietf-opsawg-pcap) and pcapng
(draft-ietf-opsawg-pcapng), either byte order, any resolution of time, plain or compressed by gzip
or zstd, from a file or ("-") standard input. Framings: those of native/link_layer.cpp; tunnels on
request. Protocols: IPv4, IPv6; TCP, UDP. Lengths come from the IP header, so captures truncated to
headers give the same results. A datagram in fragments counts once and whole.

Times are nanoseconds since the Unix epoch by the clock of the capture, lengths bytes. FLOW_COLUMNS
(flow_columns.py), SERIES_COLUMNS, PACKET_COLUMNS, MATCH_COLUMNS and RUN_COLUMNS define the columns;
tables have exactly these columns in this order. captures/native/flows.hpp defines how packets are
classified.

Errors: InputError (file, problem, cure) for a file that is no capture or cannot be read. Damage
within a capture is no error: packets before the damage count, and `damage` names its position.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import nagi_captures_native
import pandas as pd
from nagi_contracts.errors import refuse

from nagi_captures.flow_columns import FLOW_COLUMNS
from nagi_captures.reading import (
    FRAGMENT,
    STANDARD_INPUT,
    Totals,
    display_name,
    read,
    to_input_error,
)

__all__ = ["FLOW_COLUMNS", "FRAGMENT", "Clocks", "Match", "Scan", "match", "read_packets", "scan"]

Knots = Sequence[tuple[int, int]]

SERIES_COLUMNS: dict[str, str] = {
    "flow": "row in flows",
    "start_ns": "begin of the interval: start_ns (else the first packet's time) + n x interval_ns",
    "payload_bytes": "payload of this direction in the interval, repeated bytes included",
    "first_time_bytes": "as in FLOW_COLUMNS, within the interval",
    "retransmitted_packets": "as in FLOW_COLUMNS, within the interval",
    "in_flight_max_bytes": "float64, NaN without data packets",
    "rtt_mean_ns": "by timestamps if the flow has them, else by sequence; NaN without samples",
    "rtt_max_ns": "largest of the same samples",
    "window_bytes": "last window that this side advertised in the interval; NaN without packets",
}

PACKET_COLUMNS: dict[str, str] = {
    "time_ns": "int64",
    "connection": "int32, as in FLOW_COLUMNS",
    "direction": "int8, as in FLOW_COLUMNS",
    "sequence": "int64, unwrapped; 0 is the direction's SYN or, without it, the first number; 0 "
    "for UDP",
    "acknowledgement": "int64, unwrapped, counted as `sequence` of the other direction; -1 "
    "without ACK",
    "payload": "int32, bytes of TCP or UDP payload",
    "ip_bytes": "int32, bytes of the IP packet",
    "window": "int64, bytes, scaled if the scale is known",
    "flags": "uint8, TCP's: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128",
    "tsval": "int64, of the timestamps option; -1 without it",
    "tsecr": "int64, of the timestamps option; -1 without it",
    "identification": "uint16, IPv4's; 0 in IPv6",
    "checksum": "uint16, of TCP or UDP, as in the packet; 0 if truncated",
    "identity": "uint32, as nagi-link records it (runtime/io/ip_header.hpp): identification << 16 "
    "| checksum; for TCP over IPv6, the lower half of sequence + acknowledgement replaces the "
    "identification",
    "retransmission": "bool, whether retransmitted_packets counts it",
    "new_bytes": "int32, payload bytes in no earlier packet",
}

_DELAY = ("min", "mean", "median", "p95", "p99", "max")

# One row per direction of each connection that both captures have: row 2 x n + direction, with n
# counted over these connections. Durations of bursts and gaps are between sending times.
MATCH_COLUMNS: dict[str, str] = {
    "connection": "n",
    "direction": "0 or 1; 0 is that of the SYN if it was captured, else of the first packet",
    "forward": "bool: whether packets travel from the point of the `sent` capture to that of the "
    "`received` capture; true for one direction of each connection",
    "sent_connection": "number of the connection in a scan of `sent`",
    "received_connection": "number of the connection in a scan of `received`",
    "protocol": "tcp or udp",
    "source": "address (text)",
    "source_port": "",
    "destination": "address (text)",
    "destination_port": "",
    "sent": "packets captured at the start of the path, without uncovered ones",
    "received": "those of them that were captured at its end",
    "lost": "sent - received",
    "data_sent": "as `sent`, of packets with payload",
    "data_received": "as `received`, of packets with payload",
    "data_lost": "as `lost`, of packets with payload",
    "unseen": "packets captured only at the end of the path: the other capture missed them",
    "uncovered": "packets that may have arrived before the other capture began or after it ended: "
    "neither sent nor lost (0 with complete=True)",
    **{
        f"delay_{name}_ns": "one-way delay: time of arrival - time of sending, by the two clocks"
        for name in _DELAY
    },
    **{
        f"queueing_{name}_ns": "delay - smallest delay of the direction in the whole captures"
        for name in _DELAY[1:]
    },
    "bursts": "RFC 3611 section 4.7.2, Gmin 16: number of bursts",
    "gaps": "number of gaps",
    "burst_density": "fraction of packets lost within bursts; 0 without bursts",
    "gap_density": "fraction of packets lost within gaps; 0 without gaps",
    "burst_packets": "mean length of a burst, packets; NaN without bursts",
    "burst_ms": "mean length of a burst, ms",
    "gap_packets": "mean length of a gap, packets; NaN without gaps",
    "gap_ms": "mean length of a gap, ms",
    "loss_runs": "number of runs of consecutive lost packets, in sending order",
    "loss_run_mean": "mean length of a run, packets; NaN without runs",
    "loss_run_max": "length of the longest run, packets",
}

RUN_COLUMNS: dict[str, str] = {
    "flow": "row in flows",
    "length": "number of consecutive lost packets",
    "count": "number of runs of this length",
}


@dataclass(frozen=True)
class Scan(Totals):
    """The contents of one capture."""

    flows: pd.DataFrame  # FLOW_COLUMNS
    series: pd.DataFrame | None  # SERIES_COLUMNS; None without interval_ns


@dataclass(frozen=True)
class Clocks:
    """Comparison of the clocks of two captures, in ns, over all connections.

    The offset is how far the `received` capture's clock is ahead. None stands for a direction
    without packets.
    """

    min_forward_ns: int | None  # smallest delay from `sent` to `received`
    min_backward_ns: int | None  # smallest delay from `received` to `sent`
    apart_at_least_ns: int  # > 0 if a delay is negative: the clocks are apart by at least that
    offset_ns: float | None  # (forward - backward) / 2: if the smallest delays of both are equal
    offset_first_ns: float | None  # the same in the first tenth of the time
    offset_last_ns: float | None  # and in the last tenth
    drift_ppm: float | None  # (last - first) / nine tenths of the time, in millionths


@dataclass(frozen=True)
class Match:
    """Delays and losses of packets between two captures of one path."""

    flows: pd.DataFrame  # MATCH_COLUMNS
    runs: pd.DataFrame  # RUN_COLUMNS
    clocks: Clocks
    damage: list[str]  # of both captures


def scan(
    path: Path | str,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    interval_ns: int | None = None,
    tunnels: bool = False,
) -> Scan:
    """Read a capture once and return its connections, as reading.read() does.

    Args:
        path: The capture, or "-".
        start_ns: Begin of the measurement interval; None is the begin of the capture.
        end_ns: Its end; None is the end of the capture.
        interval_ns: Length of the intervals of `series`, which takes 80 bytes for each interval in
            which a connection has packets; None leaves `series` out.
        tunnels: Whether to read packets within tunnels.

    Raises:
        InputError: The file is no capture or cannot be read.
    """
    contents = read(
        path, start_ns=start_ns, end_ns=end_ns, interval_ns=interval_ns, tunnels=tunnels
    )
    totals = {field.name: getattr(contents, field.name) for field in fields(Totals)}
    return Scan(
        **totals,
        flows=_make_table(contents.columns, FLOW_COLUMNS),
        series=None if contents.series is None else _make_table(contents.series, SERIES_COLUMNS),
    )


def read_packets(path: Path | str, *, rows: int = 65536) -> Iterator[pd.DataFrame]:
    """Yield the TCP and UDP packets of a capture in file order, in tables of `rows` rows.

    Columns (PACKET_COLUMNS) are the reader's own buffers: nothing is copied. The index continues
    from table to table. Damage ends the iteration as the end of the file does; scan() reports it.

    Raises:
        InputError: The file is no capture or cannot be read; raised at the first step.
    """
    if rows <= 0:
        raise ValueError(f"rows is {rows}; it must be positive")
    try:
        reader = nagi_captures_native.PacketReader(os.fsencode(path), rows)
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    first = 0
    while (columns := reader.next()) is not None:
        count = len(columns["time_ns"])
        yield _make_table(columns, PACKET_COLUMNS, pd.RangeIndex(first, first + count))
        first += count


def match(
    sent: Path | str,
    received: Path | str,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    complete: bool = False,
    clocks: tuple[Knots, Knots] = ((), ()),
) -> Match:
    """Find each packet of one capture in the other, and return delays and losses.

    The captures have both directions, at two points of a path. Times decide in which direction each
    side of a connection sends. Packets must pass unchanged: no address translation, and no merging
    by offloads between the two points.

    captures/native/match.hpp defines when two packets are the same; a packet that has not arrived
    10 s after it was sent is lost. Memory: at most 100 MiB for waiting packets, 0.3 to 0.5 kB per
    connection of either capture, and 1 kB or more per connection of both. Each file is read twice.

    Args:
        sent: The capture that is nearer to the sender, or to the end that is regarded as the
            sender.
        received: The other capture.
        start_ns: Only packets that were sent at or after this time count, by the clock of the
            capture where they were sent.
        end_ns: Only packets that were sent before this time count.
        complete: Whether both captures cover all traffic, so that a packet in only one of them is
            lost even at the edges. Otherwise packets that the other capture may have missed at its
            begin or end are `uncovered`.
        clocks: How far the clock of each capture is ahead of a common clock, as points (time by the
            capture's clock, offset in ns) joined by straight lines; all times are then by the
            common clock. Without points, the capture's clock is the common one.

    Raises:
        InputError: A file is no capture, or the captures have no packet in common.
    """
    for path in (sent, received):
        if str(path) == STANDARD_INPUT:
            raise refuse(
                "two captures are read twice, which standard input cannot be",
                "give it as a file",
                file=display_name(path),
            )
        try:
            nagi_captures_native.PacketReader(os.fsencode(path), 1)
        except nagi_captures_native.Refused as refused:
            raise to_input_error(path, refused) from None
    comparison = nagi_captures_native.match(
        os.fsencode(sent),
        os.fsencode(received),
        start_ns,
        end_ns,
        complete,
        list(clocks[0]),
        list(clocks[1]),
    )
    flows = _make_table(comparison["flows"], MATCH_COLUMNS)
    if len(flows) == 0:
        raise refuse(
            f"has no packet in common with {received}",
            "give captures of one path, without address translation or merging offloads between",
            file=str(sent),
        )
    damage = [
        f"{path}: {file_damage}"
        for path, file_damage in zip((sent, received), comparison["damage"], strict=True)
        if file_damage
    ]
    return Match(
        flows, _make_table(comparison["runs"], RUN_COLUMNS), _compare_clocks(comparison), damage
    )


def _compare_clocks(comparison: dict[str, Any]) -> Clocks:
    """Return how the clocks of two captures compare, by the smallest delays of both directions."""
    forward, backward = comparison["smallest"]
    offset, first, last = (
        None if None in pair else (pair[0] - pair[1]) / 2
        for pair in (
            comparison["smallest"],
            comparison["smallest_first"],
            comparison["smallest_last"],
        )
    )
    drift = None
    if first is not None and last is not None and comparison["span_ns"] > 0:
        drift = (last - first) / (0.9 * comparison["span_ns"]) * 1e6
    return Clocks(
        min_forward_ns=forward,
        min_backward_ns=backward,
        apart_at_least_ns=max(0, *(-delay for delay in (forward, backward) if delay is not None)),
        offset_ns=offset,
        offset_first_ns=first,
        offset_last_ns=last,
        drift_ppm=drift,
    )


def _make_table(
    columns: dict[str, Any], names: dict[str, str], index: pd.RangeIndex | None = None
) -> pd.DataFrame:
    """Return columns as a table that does not copy them."""
    return pd.DataFrame({name: columns[name] for name in names}, index=index, copy=False)
