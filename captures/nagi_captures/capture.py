# SPDX-License-Identifier: Apache-2.0
"""Captures as pandas tables: connections, packets, and losses and delays between two captures.

`nagi_captures_native` (C++, captures/native) reads a capture in one pass. reading.py returns the
connections without pandas, and documents the use of memory. Formats: pcap (draft-ietf-opsawg-pcap)
and pcapng (draft-ietf-opsawg-pcapng), either byte order, any resolution of time, plain or
compressed by gzip or zstd, from a file or ("-") standard input. Link layers: those of
native/link_layer.cpp, and tunnels on request. Protocols: IPv4, IPv6; TCP, UDP. Lengths come from
the IP header, so captures truncated to headers give the same results. A fragmented datagram counts
once, with its whole length.

Times are nanoseconds since the Unix epoch by the clock of the capture, lengths bytes. FLOW_COLUMNS
(flow_columns.py), SERIES_COLUMNS, PACKET_COLUMNS, MATCH_COLUMNS and RUN_COLUMNS define the columns;
tables have exactly these columns in this order. captures/native/flows.hpp defines how packets are
classified.

A file that is no capture or cannot be read raises InputError. A capture that is damaged does not
raise an error: packets before the damage count, and `damage` describes the damage and its position.
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

# Points of a clock's offset: (time by the clock in ns, ns by which the clock is ahead).
Knots = Sequence[tuple[int, int]]

SERIES_COLUMNS: dict[str, str] = {
    "flow": "row in flows",
    "start_ns": "begin of the interval: n x interval_ns after the argument start_ns, or after the "
    "first packet if start_ns is None",
    "payload_bytes": "payload of this direction in the interval, repeated bytes included",
    "first_time_bytes": "as in FLOW_COLUMNS, within the interval",
    "retransmitted_packets": "as in FLOW_COLUMNS, within the interval",
    "in_flight_max_bytes": "float64, NaN without data packets",
    "rtt_mean_ns": "by timestamps if the flow has them, else by sequence; NaN without samples",
    "rtt_max_ns": "largest of the samples of rtt_mean_ns",
    "window_bytes": "last window that this side advertised in the interval; NaN without packets",
}

PACKET_COLUMNS: dict[str, str] = {
    "time_ns": "int64",
    "connection": "int32, as in FLOW_COLUMNS",
    "direction": "int8, as in FLOW_COLUMNS",
    "sequence": "int64, unwrapped; 0 is the direction's SYN or, if no SYN was captured, its first "
    "sequence number; 0 for UDP",
    "acknowledgement": "int64, unwrapped, relative to the same number as `sequence` of the other "
    "direction; -1 without ACK",
    "payload": "int32, bytes of TCP or UDP payload",
    "ip_bytes": "int32, bytes of the IP packet",
    "window": "int64, bytes; scaled if the window scale is known",
    "flags": "uint8, TCP's: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128",
    "tsval": "int64, TSval of the timestamps option; -1 without the option",
    "tsecr": "int64, TSecr of the timestamps option; -1 without the option",
    "identification": "uint16, IPv4's; 0 in IPv6",
    "checksum": "uint16, of TCP or UDP, as in the packet; 0 if truncated",
    "identity": "uint32, as nagi-link records it (runtime/io/ip_header.hpp): identification << 16 "
    "| checksum; for TCP over IPv6, the lower half of sequence + acknowledgement replaces the "
    "identification",
    "retransmission": "bool, whether the packet counts in retransmitted_packets",
    "new_bytes": "int32, payload bytes that are in no earlier packet",
}

_DELAY = ("min", "mean", "median", "p95", "p99", "max")

# One row per direction of each connection that both captures have: row 2 x n + direction, with n
# counted over these connections. Durations of bursts and gaps are differences of sending times.
MATCH_COLUMNS: dict[str, str] = {
    "connection": "n",
    "direction": "0 or 1; 0 is the direction of the SYN or, if no SYN was captured, of the first "
    "packet",
    "forward": "bool: whether packets pass the capture point of `sent` before the capture point of "
    "`received`; true for one of the two directions of each connection",
    "sent_connection": "number of the connection in a scan of `sent`",
    "received_connection": "number of the connection in a scan of `received`",
    "protocol": "tcp or udp",
    "source": "address (text)",
    "source_port": "",
    "destination": "address (text)",
    "destination_port": "",
    "sent": "packets captured at the first capture point of their path, without `uncovered`",
    "received": "packets in `sent` that were also captured at the second capture point",
    "lost": "sent - received",
    "data_sent": "as `sent`, of packets with payload",
    "data_received": "as `received`, of packets with payload",
    "data_lost": "as `lost`, of packets with payload",
    "unseen": "packets captured only at the second capture point, because the first one missed "
    "them",
    "uncovered": "packets that may have passed the other capture point before its capture began or "
    "after it ended; they count neither as sent nor as lost (0 with complete=True)",
    **{
        f"delay_{name}_ns": "one-way delay: time of arrival - time of sending, each by the clock "
        "of its capture"
        for name in _DELAY
    },
    **{
        f"queueing_{name}_ns": "one-way delay - smallest one-way delay of this direction, also "
        "outside [start_ns, end_ns)"
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
    """The connections of one capture as tables, and the totals of the whole capture."""

    flows: pd.DataFrame  # FLOW_COLUMNS
    series: pd.DataFrame | None  # SERIES_COLUMNS; None without interval_ns


@dataclass(frozen=True)
class Clocks:
    """A comparison of the clocks of two captures, from the packets of all connections.

    The offset is the time by which the clock of `received` is ahead of the clock of `sent`. It is
    estimated as half the difference of the smallest delays of the two directions, so it is correct
    if the smallest delays are equal in fact. Values are None if a direction has no packets.
    """

    min_forward_ns: int | None  # smallest delay from `sent` to `received`
    min_backward_ns: int | None  # smallest delay from `received` to `sent`
    # A lower limit of the difference of the clocks: above 0 only if a smallest delay is negative.
    apart_at_least_ns: int
    offset_ns: float | None
    offset_first_ns: float | None  # offset in the first tenth of the time that the packets cover
    offset_last_ns: float | None  # offset in the last tenth of this time
    drift_ppm: float | None  # change of the offset from the first to the last tenth, per time


@dataclass(frozen=True)
class Match:
    """Delays and losses of packets between two captures of one path."""

    flows: pd.DataFrame  # MATCH_COLUMNS
    runs: pd.DataFrame  # RUN_COLUMNS
    clocks: Clocks
    damage: list[str]  # file and damage of each damaged capture


def scan(
    path: Path | str,
    *,
    start_ns: int | None = None,
    end_ns: int | None = None,
    interval_ns: int | None = None,
    tunnels: bool = False,
) -> Scan:
    """Read a capture once and return its connections as tables.

    Args:
        path: The capture; "-" is standard input.
        start_ns: Begin of the measurement interval, for the columns that depend on it, in ns since
            the Unix epoch; None is the begin of the capture.
        end_ns: End of the measurement interval, excluded; None is the end of the capture.
        interval_ns: Length of the intervals of `series`, which takes 80 bytes for each interval in
            which a connection has packets; None leaves `series` out.
        tunnels: Whether to read packets within tunnels in place of the tunnels' packets.

    Raises:
        InputError: The file is no capture or cannot be read.
        ValueError: `interval_ns` is not positive.
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

    The columns are PACKET_COLUMNS, and use the reader's buffers without a copy. The index continues
    from table to table. Damage ends the iteration like the end of the file; only scan() reports it.

    Raises:
        InputError: The file is no capture or cannot be read. The first next() raises it.
        ValueError: `rows` is not positive.
    """
    if rows <= 0:
        raise ValueError(f"rows is {rows}; it must be positive")
    try:
        reader = nagi_captures_native.PacketReader(os.fsencode(path), rows)
    except nagi_captures_native.Refused as refused:
        raise to_input_error(path, refused) from None
    first = 0
    while (arrays := reader.next()) is not None:
        count = len(arrays["time_ns"])
        yield _make_table(arrays, PACKET_COLUMNS, pd.RangeIndex(first, first + count))
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
    """Find each packet of one capture in the other capture, and return delays and losses.

    The captures were made at two points of one path, and each has both directions of the path. The
    times of the packets decide which direction of a connection is forward. Neither address
    translation nor offloads that merge segments may change packets between the two points.

    captures/native/match.hpp defines when two packets are the same. A packet that is not in the
    other capture within 10 s is lost. Memory: at most 100 MiB for packets that are not found yet,
    0.3 to 0.5 kB per connection in each capture, and 1 kB or more per connection in both. Each file
    is read twice.

    Args:
        sent: The capture at the point that is nearer to the (assumed) sender of data.
        received: The capture at the other point.
        start_ns: Only packets that were sent at or after this time count, by the clock of the
            capture where they were sent.
        end_ns: Only packets that were sent before this time count, by the same clock.
        complete: Whether both captures cover all traffic, so that a packet in only one of them is
            lost, even near the begin or the end of the captures. Otherwise packets that the other
            capture may have missed there are `uncovered`.
        clocks: For each capture, points (time by the capture's clock, offset in ns) of the offset
            by which its clock is ahead of a common clock. The offset is linear between points. All
            times in the result are by the common clock. A capture without points uses the common
            clock.

    Raises:
        InputError: A file is no capture or is standard input, or the captures have no packet in
            common.
    """
    for path in (sent, received):
        if str(path) == STANDARD_INPUT:
            raise refuse(
                "a comparison reads each capture twice, which is impossible for standard input",
                "give the capture as a file",
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
            f"it has no packet in common with {received}",
            "give captures of one path, without address translation or offloads between them",
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
    """Compare the clocks of two captures by the smallest delays of both directions."""
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
        # The middles of the first and the last tenth are 0.9 of the whole time apart.
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
    arrays: dict[str, Any], columns: dict[str, str], index: pd.RangeIndex | None = None
) -> pd.DataFrame:
    """Return a table of arrays, without copying the arrays.

    Args:
        arrays: Name of the column -> its values.
        columns: The columns of the table: name -> description.
        index: The index of the table; None counts from 0.
    """
    return pd.DataFrame({name: arrays[name] for name in columns}, index=index, copy=False)
