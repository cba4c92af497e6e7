# SPDX-License-Identifier: Apache-2.0
"""Captures to tables: what every connection of a capture did, its packets, and what became of
packets between two captures of one path.

The work is done by `nagi_captures_native` (C++, captures/native) in one pass; reading.py gives the
same without pandas, and says what memory it takes. Formats: pcap (draft-ietf-opsawg-pcap) and
pcapng (draft-ietf-opsawg-pcapng), either byte order, any resolution of time, whole or compressed by
gzip or zstd, from a file or ("-") standard input. Framings: those of native/link_layer.cpp, tunnels
on request. IPv4, IPv6; TCP, UDP. Lengths come from the IP header, so captures cut to
headers are as good as whole ones. A datagram in fragments counts once and whole.

Times are nanoseconds since the Unix epoch by the clock of the capture, lengths bytes.
What each column means is said in FLOW_COLUMNS (flow_columns.py), SERIES_COLUMNS, PACKET_COLUMNS,
MATCH_COLUMNS and RUN_COLUMNS; tables have exactly these columns in this order. The rules by which
packets are classified are in captures/native/flows.hpp.

Errors: InputError (file, what, cure) for what is no capture or cannot be read. A capture that is
damaged on the way is no error: what came before the damage counts, and `damage` says where it is.
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
    "start_ns": "the interval's begin: start_ns (else the first packet's time) + n x interval_ns",
    "payload_bytes": "of packets of this direction in the interval; repeated bytes included",
    "first_time_bytes": "",
    "retransmitted_packets": "",
    "in_flight_max_bytes": "float64, NaN without data packets",
    "rtt_mean_ns": "by timestamps where the flow has them, else by sequence; NaN without samples",
    "rtt_max_ns": "the same",
    "window_bytes": "last window this side advertised in the interval; NaN without packets",
}

PACKET_COLUMNS: dict[str, str] = {
    "time_ns": "int64",
    "connection": "int32, as in FLOW_COLUMNS",
    "direction": "int8, as in FLOW_COLUMNS",
    "sequence": "int64, unwrapped, 0 is the direction's SYN or (without) first sequence number; "
    "UDP: 0",
    "acknowledgement": "int64, unwrapped, 0 is the other direction's; -1 where no ACK flag",
    "payload": "int32, bytes of TCP or UDP payload",
    "ip_bytes": "int32, bytes of the IP packet",
    "window": "int64, bytes, scaled where the scale is known",
    "flags": "uint8, TCP's: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128",
    "tsval": "int64, timestamps option; -1 where there is none",
    "tsecr": "int64, the same",
    "identification": "uint16, IPv4's; 0 in IPv6",
    "checksum": "uint16, TCP's or UDP's, as in the packet; 0 if cut off",
    "identity": "uint32, as nagi-link records it (runtime/io/ip_header.hpp): identification << 16 "
    "| checksum; of TCP over IPv6 the lower half of sequence + acknowledgement is in the place of "
    "the identification",
    "retransmission": "bool, counted in retransmitted_packets",
    "new_bytes": "int32, payload bytes in no packet before",
}

_DELAY = ("min", "mean", "median", "p95", "p99", "max")

# A row a direction of each connection that both captures have: row 2 x n + direction, n counted
# over these connections. Durations of bursts and gaps are between sending times.
MATCH_COLUMNS: dict[str, str] = {
    "connection": "n",
    "direction": "0 or 1; 0 is that of the SYN if it is there, else of the first packet",
    "forward": "bool: travels from the place of the `sent` capture to that of the `received` one. "
    "One direction of a connection does, the other does not",
    "sent_connection": "number of the connection in a scan of `sent`",
    "received_connection": "number of the connection in a scan of `received`",
    "protocol": "tcp or udp",
    "source": "address (text)",
    "source_port": "",
    "destination": "address (text)",
    "destination_port": "",
    "sent": "packets captured where they set out (uncovered ones not included)",
    "received": "of these, captured where they arrive",
    "lost": "sent - received",
    "data_sent": "the same of packets with payload",
    "data_received": "",
    "data_lost": "",
    "unseen": "packets captured only where they arrive (the first capture missed them)",
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
    "loss_runs": "runs of packets lost one after the other, in sending order",
    "loss_run_mean": "packets; NaN without",
    "loss_run_max": "packets",
}

RUN_COLUMNS: dict[str, str] = {
    "flow": "row in flows",
    "length": "packets lost one after the other",
    "count": "runs of this length",
}


@dataclass(frozen=True)
class Scan(Totals):
    """What one capture holds."""

    flows: pd.DataFrame  # FLOW_COLUMNS
    series: pd.DataFrame | None  # SERIES_COLUMNS; None without interval_ns


@dataclass(frozen=True)
class Clocks:
    """Do the clocks of two captures agree? All values ns; None where a direction has no packets.

    Over all connections. The offset is how far the `received` capture's clock is ahead.
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
    """What became of packets between two captures of one path."""

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
    """Reads a capture once and tells everything about its connections, as reading.read() does.

    interval_ns: also make `series`, with 80 bytes for each interval in which a connection has
    packets.

    Raises InputError.
    """
    found = read(path, start_ns=start_ns, end_ns=end_ns, interval_ns=interval_ns, tunnels=tunnels)
    totals = {field.name: getattr(found, field.name) for field in fields(Totals)}
    return Scan(
        **totals,
        flows=_table(found.columns, FLOW_COLUMNS),
        series=None if found.series is None else _table(found.series, SERIES_COLUMNS),
    )


def read_packets(path: Path | str, *, rows: int = 65536) -> Iterator[pd.DataFrame]:
    """The TCP and UDP packets of a capture in file order, `rows` a table (PACKET_COLUMNS).

    Columns are the reader's own buffers: nothing is copied. The index counts on from table to
    table. Damage ends the iteration as the end of the file does; scan() says it.

    Raises InputError, at the first step.
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
        yield _table(columns, PACKET_COLUMNS, pd.RangeIndex(first, first + count))
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
    """Finds each packet of one capture in the other, and tells delays and losses.

    sent, received: captures of both directions at two places of a path; `sent` is nearer to what
    one regards as the sender. Which direction of a connection goes which way follows from the
    times. Packets must pass unchanged: no address translation, no merging by offloads between.

    start_ns, end_ns: only packets sent in [start, end) by the clock of the place they set out
    from. complete: both captures cover all traffic, so what only one has is lost even at the
    edges; else packets that the other capture may have missed by its begin or end are `uncovered`.

    clocks: how far each capture's clock is ahead of a common one, along straight lines between
    knots (time by the capture's clock, ns it is ahead); all times are then by the common clock.
    Without knots it is the common one.

    What counts as the same packet is in captures/native/match.hpp; what has not arrived 10 s after
    it was sent is lost. Memory: 100 MiB at most for packets that wait, 0.3 to 0.5 kB a connection
    of either capture, and 1 kB or more a connection of both. Reads each file twice.

    Raises InputError, also if the captures have no packet in common.
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
    found = nagi_captures_native.match(
        os.fsencode(sent),
        os.fsencode(received),
        start_ns,
        end_ns,
        complete,
        list(clocks[0]),
        list(clocks[1]),
    )
    flows = _table(found["flows"], MATCH_COLUMNS)
    if len(flows) == 0:
        raise refuse(
            f"has no packet in common with {received}",
            "give captures of one path, without address translation or merging offloads between",
            file=str(sent),
        )
    damage = [
        f"{path}: {each}"
        for path, each in zip((sent, received), found["damage"], strict=True)
        if each
    ]
    return Match(flows, _table(found["runs"], RUN_COLUMNS), _clocks(found), damage)


def _clocks(found: dict[str, Any]) -> Clocks:
    forward, backward = found["smallest"]
    offset, first, last = (
        None if None in pair else (pair[0] - pair[1]) / 2
        for pair in (found["smallest"], found["smallest_first"], found["smallest_last"])
    )
    drift = None
    if first is not None and last is not None and found["span_ns"] > 0:
        drift = (last - first) / (0.9 * found["span_ns"]) * 1e6
    return Clocks(
        min_forward_ns=forward,
        min_backward_ns=backward,
        apart_at_least_ns=max(0, *(-delay for delay in (forward, backward) if delay is not None)),
        offset_ns=offset,
        offset_first_ns=first,
        offset_last_ns=last,
        drift_ppm=drift,
    )


def _table(
    columns: dict[str, Any], names: dict[str, str], index: pd.RangeIndex | None = None
) -> pd.DataFrame:
    """Columns as a table that does not copy them."""
    return pd.DataFrame({name: columns[name] for name in names}, index=index, copy=False)
