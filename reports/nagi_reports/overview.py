# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics FILE...`: the connections of single captures, in both directions.

A row is one direction of a connection, with the columns of nagi_captures.flow_columns and DERIVED.
Terminal output uses neither pandas nor NumPy, because their import takes longer than reading most
captures.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from nagi_captures.flow_columns import FLOW_COLUMNS
from nagi_captures.reading import Columns, Flows, Totals, display_name, read, read_rows
from nagi_contracts.errors import refuse

if TYPE_CHECKING:
    import numpy.typing as npt

Network = IPv4Network | IPv6Network
# If a smaller share of the bytes was captured, the goodput of the connection is not known.
MIN_COVERAGE = 0.99
Row = dict[str, Any]
_MAX_WARNINGS = 10  # number of warnings of one kind, each on one direction of a connection

# Columns that are computed from FLOW_COLUMNS.
DERIVED: dict[str, str] = {
    "start_s": "the connection's first packet, since the capture's first, s",
    "interval_s": "the measurement interval: as given, or from the connection's first packet to "
    "this direction's last byte of payload, s",
    "goodput_bps": "achieved goodput (AG): unique payload bytes in the interval x 8 / interval, "
    "bit/s (RFC 2647); where the capture was made at the source, bytes sent instead of delivered; "
    "not known with a coverage below 99 %",
    "throughput_bps": "IP bytes in the interval x 8 / interval, bit/s (RFC 5166); not known with a "
    "coverage below 99 %",
    "coverage": "share of the payload bytes that were captured, of those captured or acknowledged",
    "retransmission_rate": "share of the data packets that repeat payload (RFC 4898)",
    "agi": "achieved goodput index: AG / bottleneck rate",
    "agi_ceiling": "largest AGI that headers permit",
    "agi_of_ceiling": "AGI / ceiling",
}
_RTT = ("count", "min", "mean", "median", "p95", "p99", "max")
DERIVED |= {f"rtt_{name}_s": "RTT by timestamps if there are samples, else by sequence, s"
            for name in _RTT[1:]}  # fmt: skip

# Columns that a table on the terminal needs.
SHOWN_COLUMNS = (
    "connection", "direction", "protocol", "source", "source_port", "destination",
    "destination_port", "first_ns", "last_ns", "last_data_ns", "ip_bytes_to_data",
    "uncaptured_bytes", "packets", "data_packets", "packets_inside", "ip_bytes_inside",
    "payload_bytes", "payload_bytes_inside", "first_time_bytes",
    "first_time_bytes_inside", "data_packets_inside", "retransmitted_packets_inside",
    "out_of_order_packets_inside", "duplicate_acks", "sack_blocks", "zero_window_packets",
    "captured_twice", "mss", "window_scale", "timestamps", "handshake_rtt_ns", "captured_at",
    *(f"rtt_{kind}_{name}_ns".replace("count_ns", "count")
      for kind in ("sequence", "timestamps") for name in _RTT),
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """The connections to select, their order and their maximum number."""

    networks: Sequence[Network] = ()  # networks, one of which contains an endpoint; empty: any
    ports: Sequence[int] = ()  # ports, one of which is the port of an endpoint; empty: any
    sort: str = "bytes"  # a key of _SORT_COLUMNS
    limit: int | None = None  # maximum number of connections; None selects all
    every_column: bool = False  # whether to read all columns, instead of SHOWN_COLUMNS


# Sort key -> column by which connections are sorted, the largest value of a direction first. For
# None, _order_connections() computes the order.
_SORT_COLUMNS: dict[str, str | None] = {
    "bytes": "first_time_bytes",
    "packets": "packets",
    "retransmissions": "retransmitted_packets_inside",
    "start": None,
    "duration": None,
    "rtt": None,
}
SORTS = tuple(_SORT_COLUMNS)


@dataclass(frozen=True)
class Overview:
    """The connections selected from one capture, both directions of each."""

    path: Path | str
    totals: Totals
    bottleneck_bps: int | None
    connections: list[tuple[Row, Row]]
    left_out: int  # number of connections beyond the limit

    @property
    def name(self) -> str:
        return display_name(self.path)

    def iterate_rows(self, protocol: str) -> Iterator[Row]:
        """Yield the rows of all directions that have packets of a protocol, with columns DERIVED.

        Values that are not known are None. Without `bottleneck_bps`, the columns of AGI are
        missing.
        """
        for directions in self.connections:
            if directions[0]["protocol"] == protocol:
                for row, other in (directions, directions[::-1]):
                    if row["packets"]:
                        yield row | self._derive_columns(row, other)

    def _derive_columns(self, row: Row, other: Row) -> Row:
        """Return the columns DERIVED of a row; `other` is the row of the reverse direction."""
        totals = self.totals
        start_ns = min(direction["first_ns"] for direction in (row, other) if direction["packets"])
        begin = start_ns if totals.start_ns is None else totals.start_ns
        end = row["last_data_ns"] if totals.end_ns is None else totals.end_ns
        seconds = (end - begin) / 1e9
        if totals.packets_without_time:
            seconds = 0.0  # not known, so that _divide() returns None
        has_interval = totals.start_ns is not None
        ip_bytes = row["ip_bytes_inside" if has_interval else "ip_bytes_to_data"]
        coverage = _compute_coverage(row)
        is_covered = coverage is None or coverage >= MIN_COVERAGE
        goodput = _divide(8 * row["first_time_bytes_inside"], seconds if is_covered else 0.0)
        derived: Row = {
            "start_s": (start_ns - totals.first_ns) / 1e9,
            "interval_s": seconds if seconds > 0 else None,
            "goodput_bps": goodput,
            "throughput_bps": _divide(8 * ip_bytes, seconds if is_covered else 0.0),
            "coverage": coverage,
            "retransmission_rate": _divide(
                row["retransmitted_packets_inside"], row["data_packets_inside"]
            ),
        }
        if self.bottleneck_bps is not None:
            derived |= _compute_indices(goodput, self.bottleneck_bps, row, other)
        rtt_method = "timestamps" if row["rtt_timestamps_count"] else "sequence"
        for name in _RTT[1:]:
            value = row[f"rtt_{rtt_method}_{name}_ns"]
            is_known = value is not None and not totals.packets_without_time
            derived[f"rtt_{name}_s"] = value / 1e9 if is_known else None
        return derived

    def list_warnings(self) -> list[str]:
        """Return sentences on why numbers may be wrong or are not known."""
        captured_twice = sum(
            row["captured_twice"] for directions in self.connections for row in directions
        )
        lines = list_warnings(self.name, self.totals, captured_twice)
        incomplete = [
            (row, coverage)
            for directions in self.connections
            for row in directions
            if (coverage := _compute_coverage(row)) is not None and coverage < MIN_COVERAGE
        ]
        lines += [
            f"{self.name}: connection {row['connection']}: {row['uncaptured_bytes']:,} bytes "
            f"were acknowledged that the capture does not have ({coverage:.1%} covered). Packets "
            "were not captured, so goodput is not known; capture with a larger buffer "
            "(tcpdump -B), or at a host with less load"
            for row, coverage in incomplete[:_MAX_WARNINGS]
        ]
        if (further := len(incomplete) - _MAX_WARNINGS) > 0:
            lines.append(
                f"{self.name}: packets of {further:,} more directions were not captured; their "
                "goodput is not known, and their `coverage` is in --csv and --json"
            )
        return lines

    def list_notices(self) -> list[str]:
        """Return the sentences below the table: damage, warnings, and packets in no connection."""
        lines = [f"damaged: {self.totals.damage}"] if self.totals.damage else []
        lines += self.list_warnings()
        if self.totals.unused:
            reasons = ", ".join(
                f"{count:,} {reason}" for reason, count in self.totals.unused.items()
            )
            lines.append(f"{self.name}: packets in no connection: {reasons}")
        return lines


def read_overview(
    path: Path | str,
    choice: Choice,
    *,
    bottleneck_bps: int | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    tunnels: bool = False,
) -> Overview:
    """Read a capture and return the connections that `choice` selects.

    `choice.sort` gives the order: the largest value first, but the earliest start first. With a
    measurement interval, connections without a packet in it are left out.

    Args:
        path: The capture, or "-" for standard input.
        choice: The connections to return.
        bottleneck_bps: Rate of the bottleneck; None leaves out the AGI.
        from_ns: Begin of the measurement interval, counted from the capture's first packet.
        to_ns: End of the interval, also counted from the first packet. If only one of both is None,
            the interval begins or ends with the capture. If both are None, each direction has its
            own interval (see `interval_s` in DERIVED).
        tunnels: Whether to read packets within tunnels.

    Raises:
        InputError: The file is no capture, has neither TCP nor UDP, or ends before `from_ns`.
    """
    has_interval = from_ns is not None or to_ns is not None
    column = _SORT_COLUMNS[choice.sort]
    if (
        choice.limit is not None
        and column is not None
        and not (choice.networks or choice.ports or has_interval or choice.every_column)
    ):
        # Without a filter, the native reader selects the connections, which is faster.
        rows = read_rows(path, by=column, limit=choice.limit, tunnels=tunnels)
        _require_connections(path, rows, rows.connections)
        pairs = list(zip(rows.rows[::2], rows.rows[1::2], strict=True))
        return Overview(path, rows, bottleneck_bps, pairs, rows.connections - len(pairs))
    flows = read(
        path,
        start_ns=from_ns,
        end_ns=to_ns,
        relative=True,
        columns=None if choice.every_column else SHOWN_COLUMNS,
        tunnels=tunnels,
    )
    if from_ns is not None and flows.packets and from_ns > flows.last_ns - flows.first_ns:
        length = (flows.last_ns - flows.first_ns) / 1e9
        raise refuse(
            f"its packets end after {length:.6g} s, before --from",
            "give an earlier --from",
            file=display_name(path),
        )
    if has_interval:
        flows = _close_interval(flows)
    _require_connections(path, flows, len(flows.columns["packets"]))
    order = _order_connections(flows.columns, choice).tolist()
    chosen = order[: choice.limit]
    pairs = [
        (_make_row(flows.columns, 2 * number), _make_row(flows.columns, 2 * number + 1))
        for number in chosen
    ]
    return Overview(path, flows, bottleneck_bps, pairs, len(order) - len(chosen))


def to_json(overview: Overview) -> dict[str, Any]:
    """Return a capture's totals and selected connections as plain data for JSON.

    The form is {"tcp": [ROW, ...], "udp": [ROW, ...], "packets": N, ...}.
    """
    totals = overview.totals
    return {
        "file": overview.name,
        "packets": totals.packets,
        "bytes": totals.bytes,
        "length_s": (totals.last_ns - totals.first_ns) / 1e9,
        "contents": totals.contents,
        "packets_in_no_connection": totals.unused,
        "damage": totals.damage,
        "warnings": overview.list_warnings(),
        "tcp": list(overview.iterate_rows("tcp")),
        "udp": list(overview.iterate_rows("udp")),
    }


def write_csv(overviews: Sequence[Overview], file: IO[str]) -> None:
    """Write all selected connections as CSV with a heading, one row per direction with packets.

    For each capture, TCP rows precede UDP rows. The columns of AGI are written only if an overview
    has a bottleneck rate.
    """
    derived = [name for name in DERIVED if not name.startswith("agi")]
    if any(overview.bottleneck_bps is not None for overview in overviews):
        derived = list(DERIVED)
    writer = csv.DictWriter(file, ["file", *FLOW_COLUMNS, *derived], extrasaction="ignore")
    writer.writeheader()
    for overview in overviews:
        for protocol in ("tcp", "udp"):
            for row in overview.iterate_rows(protocol):
                writer.writerow({"file": overview.name, **row})


def list_warnings(name: str, totals: Totals, captured_twice: int) -> list[str]:
    """Return sentences on why a capture's numbers may be wrong.

    The sentences are on missing or decreasing times, frames with several packets, and copies of
    packets.

    Args:
        name: Name of the capture.
        totals: Totals of the capture.
        captured_twice: Number of packets that are copies.
    """
    lines = []
    if totals.packets_back:
        lines.append(
            f"{name}: {totals.packets_back} packets have times before that of the previous packet, "
            f"by up to {totals.max_back_ns / 1e6:.6g} ms"
        )
    if totals.frames_of_several:
        lines.append(
            f"{name}: {totals.frames_of_several:,} frames have several packets (A-MSDU), of which "
            "only the first was read; capture IP packets, or switch aggregation off"
        )
    if totals.packets_without_time:
        lines.append(
            f"{name}: {totals.packets_without_time:,} packets have no time, so no rate and no RTT "
            "is known; capture again, with blocks that have a time (pcapng: Enhanced Packet Blocks)"
        )
    if captured_twice:
        lines.append(
            f"{name}: {captured_twice:,} packets are copies of others, captured at several points "
            "or retransmitted by the link layer; copies do not count, and RTTs are not known where "
            "copies are more than 1 ms apart: capture on one interface"
        )
    return lines


def _compute_coverage(row: Row) -> float | None:
    """Return the share of a direction's payload bytes that were captured; None without payload."""
    captured: int = row["first_time_bytes"]
    return _divide(captured, captured + row["uncaptured_bytes"])


def describe_contents(totals: Totals) -> str:
    """Return a clause on the kinds of packets in a capture, to append to a message.

    Return an empty text if no packets were counted.
    """
    if not totals.contents:
        return ""
    counts = ", ".join(f"{count} {name}" for name, count in totals.contents.items())
    return f"; its packets: {counts}"


def format_endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _require_connections(path: Path | str, totals: Totals, count: int) -> None:
    """Check that a capture has connections.

    Args:
        path: The capture, for messages.
        totals: Totals of the capture.
        count: Number of connections in the capture.

    Raises:
        InputError: There is no connection. The message names damage, or packets of other kinds.
    """
    if not count and totals.damage:
        raise refuse(
            # The damage names the file.
            f"{totals.damage}; no TCP or UDP packet is before that{describe_contents(totals)}",
            "get the file again from where it was captured; end dumpcap and tcpdump by SIGINT or "
            "SIGTERM, so that they complete the file",
        )
    if not count:
        raise refuse(
            f"there is no TCP or UDP packet in it{describe_contents(totals)}",
            "give a capture of TCP; --tunnels reads packets in GRE, VXLAN, Geneve, GTP-U and "
            "IP-in-IP",
            file=display_name(path),
        )


def _close_interval(flows: Flows) -> Flows:
    """Return `flows` with begin and end of the measurement interval set.

    A begin or end that is not given is the capture's begin or end. The interval ends with the
    capture at the latest.
    """
    last_ns = flows.last_ns + 1
    return replace(
        flows,
        start_ns=flows.first_ns if flows.start_ns is None else flows.start_ns,
        end_ns=last_ns if flows.end_ns is None else min(flows.end_ns, last_ns),
    )


def _order_connections(columns: Columns, choice: Choice) -> npt.NDArray[Any]:
    """Return the numbers of the selected connections, in the requested order.

    Connections with equal keys keep the capture's order. Connections without a packet in the
    measurement interval are left out.
    """
    import numpy as np

    def reduce_directions(column: npt.NDArray[Any], function: Any) -> npt.NDArray[Any]:
        reduced: npt.NDArray[Any] = function(column.reshape(-1, 2), axis=1)
        return reduced

    never = np.iinfo(np.int64).max
    start = reduce_directions(np.where(columns["packets"] > 0, columns["first_ns"], never), np.min)
    column = _SORT_COLUMNS[choice.sort]
    if column is not None:
        key = -reduce_directions(columns[column], np.max)
    elif choice.sort == "start":
        key = start
    elif choice.sort == "duration":
        key = start - reduce_directions(columns["last_ns"], np.max)
    else:
        key = -reduce_directions(np.nan_to_num(columns["rtt_sequence_median_ns"], nan=-1.0), np.max)
    is_selected = reduce_directions(columns["packets_inside"], np.sum) > 0
    if choice.ports:
        has_port = [np.isin(columns[name][::2], choice.ports) for name in _PORTS]
        is_selected &= has_port[0] | has_port[1]
    if choice.networks:
        addresses = [columns[name][::2].tolist() for name in ("source", "destination")]
        is_inside = {
            address: any(ip_address(address) in network for network in choice.networks)
            for address in {*addresses[0], *addresses[1]}
        }
        pairs = zip(*addresses, strict=True)
        is_selected &= np.array(
            [is_inside[source] or is_inside[destination] for source, destination in pairs], np.bool_
        )
    order = np.argsort(key, kind="stable")
    return order[is_selected[order]]


_PORTS = ("source_port", "destination_port")


def _make_row(columns: Columns, index: int) -> Row:
    """Return a row as plain values for JSON; None for nan, infinity and empty texts."""
    return {name: _to_plain_number(column[index].item()) if hasattr(column[index], "item")
            else column[index] or None for name, column in columns.items()}  # fmt: skip


def _to_plain_number(value: Any) -> Any:
    """Return `value`, or None if it is nan or infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _compute_indices(goodput: float | None, bottleneck_bps: int, row: Row, other: Row) -> Row:
    """Return AGI, ceiling and AGI / ceiling; None if not known.

    The ceiling is for segments of the size that the MSS options of both SYNs permit. It is None if
    a SYN was not captured.
    """
    from nagi_reports.metrics import agi, agi_ceiling, agi_of_ceiling

    ceiling = None
    mss = min(row["mss"], other["mss"])
    if mss > 0:
        headers = 60 if ":" in row["source"] else 40
        ceiling = agi_ceiling(mss - (12 if row["timestamps"] else 0), mss + headers)
    index = None if goodput is None else agi(goodput, bottleneck_bps)
    return {
        "agi": index,
        "agi_ceiling": ceiling,
        "agi_of_ceiling": None
        if index is None or ceiling is None
        else agi_of_ceiling(index, ceiling),
    }
