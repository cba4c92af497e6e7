# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics FILE...`: what single captures show of their connections, in both directions.

A row is a direction of a connection. Columns are those of nagi_captures.flow_columns, and DERIVED.
What is shown on a terminal needs neither pandas nor NumPy: to start them takes longer than to read
most captures.
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
# Below this share of bytes that were captured, goodput is not that of the connection.
MIN_COVERAGE = 0.99
Row = dict[str, Any]
_MAX_WARNINGS = 10  # of one kind, each about a connection

# Columns that are made of those of the capture.
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
DERIVED |= {f"rtt_{name}_s": "RTT by timestamps where there are samples, else by sequence, s"
            for name in _RTT[1:]}  # fmt: skip

# What a table on the terminal needs.
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
    """Which connections are asked for, and how many. `networks`, `ports`: of either end, any of
    them. `limit`: None: all. `every_column`: else those that are shown on a terminal."""

    networks: Sequence[Network] = ()
    ports: Sequence[int] = ()
    sort: str = "bytes"
    limit: int | None = None
    every_column: bool = False


# Of what connections may be sorted, most first: a column of their directions; None: see _order.
_SORTS: dict[str, str | None] = {
    "bytes": "first_time_bytes",
    "packets": "packets",
    "retransmissions": "retransmitted_packets_inside",
    "start": None,
    "duration": None,
    "rtt": None,
}
SORTS = tuple(_SORTS)


@dataclass(frozen=True)
class Overview:
    """One capture, and the connections in it that were asked for, both directions of each."""

    path: Path | str
    totals: Totals
    bottleneck_bps: int | None
    connections: list[tuple[Row, Row]]
    left_out: int  # connections beyond the limit

    @property
    def name(self) -> str:
        return display_name(self.path)

    def rows(self, protocol: str) -> Iterator[Row]:
        """Directions of which a packet was captured, with DERIVED; None is not known."""
        for both in self.connections:
            if both[0]["protocol"] == protocol:
                for mine, other in (both, both[::-1]):
                    if mine["packets"]:
                        yield mine | self._derived(mine, other)

    def _derived(self, mine: Row, other: Row) -> Row:
        totals = self.totals
        start_ns = min(each["first_ns"] for each in (mine, other) if each["packets"])
        begin = start_ns if totals.start_ns is None else totals.start_ns
        end = mine["last_data_ns"] if totals.end_ns is None else totals.end_ns
        seconds = (end - begin) / 1e9
        if totals.packets_without_time:
            seconds = 0.0  # nobody knows
        measured = totals.start_ns is not None
        ip_bytes = mine["ip_bytes_inside" if measured else "ip_bytes_to_data"]
        coverage = _coverage(mine)
        is_whole = coverage is None or coverage >= MIN_COVERAGE
        goodput = _ratio(8 * mine["first_time_bytes_inside"], seconds if is_whole else 0.0)
        found: Row = {
            "start_s": (start_ns - totals.first_ns) / 1e9,
            "interval_s": seconds if seconds > 0 else None,
            "goodput_bps": goodput,
            "throughput_bps": _ratio(8 * ip_bytes, seconds if is_whole else 0.0),
            "coverage": coverage,
            "retransmission_rate": _ratio(
                mine["retransmitted_packets_inside"], mine["data_packets_inside"]
            ),
        }
        if self.bottleneck_bps is not None:
            found |= _indices(goodput, self.bottleneck_bps, mine, other)
        kind = "timestamps" if mine["rtt_timestamps_count"] else "sequence"
        for name in _RTT[1:]:
            value = mine[f"rtt_{kind}_{name}_ns"]
            is_known = value is not None and not totals.packets_without_time
            found[f"rtt_{name}_s"] = value / 1e9 if is_known else None
        return found

    def warnings(self) -> list[str]:
        twice = sum(row["captured_twice"] for both in self.connections for row in both)
        lines = list_warnings(self.name, self.totals, twice)
        missed = [
            (row, coverage)
            for both in self.connections
            for row in both
            if (coverage := _coverage(row)) is not None and coverage < MIN_COVERAGE
        ]
        lines += [
            f"{self.name}: of connection {row['connection']}, {row['uncaptured_bytes']:,} bytes "
            f"were acknowledged that the capture does not have ({coverage:.1%} covered): it missed "
            "packets, so goodput is not known; capture with a larger buffer (tcpdump -B), or at a "
            "quieter host"
            for row, coverage in missed[:_MAX_WARNINGS]
        ]
        if (more := len(missed) - _MAX_WARNINGS) > 0:
            lines.append(
                f"{self.name}: so it is of {more:,} more directions; their goodput is not known, "
                "and their `coverage` is in --csv and --json"
            )
        return lines

    def notices(self) -> list[str]:
        """What makes the numbers doubtful, and what was left out."""
        lines = [f"damaged: {self.totals.damage}"] if self.totals.damage else []
        lines += self.warnings()
        if self.totals.unused:
            said = ", ".join(f"{count:,} {reason}" for reason, count in self.totals.unused.items())
            lines.append(f"{self.name}: packets in no connection: {said}")
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
    """Reads a capture. from_ns, to_ns: the measurement interval, from the capture's first packet;
    with one, connections without a packet in it are left out.

    Raises InputError if it is no capture, or has neither TCP nor UDP.
    """
    has_interval = from_ns is not None or to_ns is not None
    column = _SORTS[choice.sort]
    if (
        choice.limit is not None
        and column is not None
        and not (choice.networks or choice.ports or has_interval or choice.every_column)
    ):
        rows = read_rows(path, by=column, limit=choice.limit, tunnels=tunnels)
        _require_connections(path, rows, rows.connections)
        both = list(zip(rows.rows[::2], rows.rows[1::2], strict=True))
        return Overview(path, rows, bottleneck_bps, both, rows.connections - len(both))
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
        flows = _closed(flows)
    _require_connections(path, flows, len(flows.columns["packets"]))
    order = _order(flows.columns, choice).tolist()
    chosen = order[: choice.limit]
    both = [(_row(flows.columns, 2 * each), _row(flows.columns, 2 * each + 1)) for each in chosen]
    return Overview(path, flows, bottleneck_bps, both, len(order) - len(chosen))


def to_json(overview: Overview) -> dict[str, Any]:
    """A capture as plain data, all connections that were asked for."""
    totals = overview.totals
    return {
        "file": overview.name,
        "packets": totals.packets,
        "bytes": totals.bytes,
        "length_s": (totals.last_ns - totals.first_ns) / 1e9,
        "contents": totals.contents,
        "packets_in_no_connection": totals.unused,
        "damage": totals.damage,
        "warnings": overview.warnings(),
        "tcp": list(overview.rows("tcp")),
        "udp": list(overview.rows("udp")),
    }


def write_csv(overviews: Sequence[Overview], file: IO[str]) -> None:
    """All connections that were asked for, a row a direction."""
    derived = [name for name in DERIVED if not name.startswith("agi")]
    if any(each.bottleneck_bps is not None for each in overviews):
        derived = list(DERIVED)
    writer = csv.DictWriter(file, ["file", *FLOW_COLUMNS, *derived], extrasaction="ignore")
    writer.writeheader()
    for each in overviews:
        for protocol in ("tcp", "udp"):
            for row in each.rows(protocol):
                writer.writerow({"file": each.name, **row})


def list_warnings(name: str, found: Totals, captured_twice: int) -> list[str]:
    """Return what makes a capture's numbers doubtful: times that go back or are missing, copies."""
    lines = []
    if found.packets_back:
        lines.append(
            f"{name}: {found.packets_back} packets have times before that of the packet in front "
            f"of them, by up to {found.max_back_ns / 1e6:.6g} ms"
        )
    if found.frames_of_several:
        lines.append(
            f"{name}: of {found.frames_of_several:,} frames with several packets (A-MSDU) only the "
            "first was read; capture where IP is, or without aggregation"
        )
    if found.packets_without_time:
        lines.append(
            f"{name}: {found.packets_without_time:,} packets have no time, so no rate and no RTT "
            "is known; capture anew, in blocks that have one (pcapng: enhanced packets)"
        )
    if captured_twice:
        lines.append(
            f"{name}: {captured_twice:,} packets are copies of others, captured at several places "
            "or sent again by the link layer; they are left out, and RTT, too, where they are more "
            "than 1 ms apart: capture on one interface"
        )
    return lines


def _coverage(row: Row) -> float | None:
    """Return the share of a direction's acknowledged bytes that were captured; None without any."""
    seen: int = row["first_time_bytes"]
    return _ratio(seen, seen + row["uncaptured_bytes"])


def describe_contents(found: Totals) -> str:
    """What a capture has instead, for a message."""
    if not found.contents:
        return ""
    said = ", ".join(f"{count} {name}" for name, count in found.contents.items())
    return f"; its packets: {said}"


def format_endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _require_connections(path: Path | str, found: Totals, count: int) -> None:
    if not count and found.damage:
        raise refuse(
            # It names the file.
            f"{found.damage}; no TCP or UDP packet is before that{describe_contents(found)}",
            "get the file again from where it was captured; dumpcap and tcpdump end it whole at "
            "SIGINT and SIGTERM",
        )
    if not count:
        raise refuse(
            f"there is no TCP or UDP packet in it{describe_contents(found)}",
            "give a capture of TCP; --tunnels looks into GRE, VXLAN, Geneve, GTP-U and IP-in-IP",
            file=display_name(path),
        )


def _closed(flows: Flows) -> Flows:
    """With both ends of the measurement interval, which ends with the capture at the latest."""
    last_ns = flows.last_ns + 1
    return replace(
        flows,
        start_ns=flows.first_ns if flows.start_ns is None else flows.start_ns,
        end_ns=last_ns if flows.end_ns is None else min(flows.end_ns, last_ns),
    )


def _order(columns: Columns, choice: Choice) -> npt.NDArray[Any]:
    """The numbers of the connections that were asked for."""
    import numpy as np

    def either(column: npt.NDArray[Any], function: Any) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = function(column.reshape(-1, 2), axis=1)
        return found

    never = np.iinfo(np.int64).max
    start = either(np.where(columns["packets"] > 0, columns["first_ns"], never), np.min)
    column = _SORTS[choice.sort]
    if column is not None:
        key = -either(columns[column], np.max)
    elif choice.sort == "start":
        key = start
    elif choice.sort == "duration":
        key = start - either(columns["last_ns"], np.max)
    else:
        key = -either(np.nan_to_num(columns["rtt_sequence_median_ns"], nan=-1.0), np.max)
    chosen = either(columns["packets_inside"], np.sum) > 0
    if choice.ports:
        ends = [np.isin(columns[name][::2], choice.ports) for name in _PORTS]
        chosen &= ends[0] | ends[1]
    if choice.networks:
        addresses = [columns[name][::2].tolist() for name in ("source", "destination")]
        inside = {
            address: any(ip_address(address) in each for each in choice.networks)
            for address in {*addresses[0], *addresses[1]}
        }
        pairs = zip(*addresses, strict=True)
        chosen &= np.array([inside[one] or inside[other] for one, other in pairs], np.bool_)
    order = np.argsort(key, kind="stable")
    return order[chosen[order]]


_PORTS = ("source_port", "destination_port")


def _row(columns: Columns, place: int) -> Row:
    return {name: _plain(column[place].item()) if hasattr(column[place], "item")
            else column[place] or None for name, column in columns.items()}  # fmt: skip


def _plain(value: Any) -> Any:
    """A number as JSON has it; None for one that is not known."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _indices(goodput: float | None, bottleneck_bps: int, mine: Row, other: Row) -> Row:
    """AGI, and the largest that headers permit: of segments as large as the options of both SYNs
    let them be; None where these were not captured."""
    from nagi_reports.metrics import agi, agi_ceiling, agi_of_ceiling

    ceiling = None
    mss = min(mine["mss"], other["mss"])
    if mss > 0:
        headers = 60 if ":" in mine["source"] else 40
        ceiling = agi_ceiling(mss - (12 if mine["timestamps"] else 0), mss + headers)
    index = None if goodput is None else agi(goodput, bottleneck_bps)
    return {
        "agi": index,
        "agi_ceiling": ceiling,
        "agi_of_ceiling": None
        if index is None or ceiling is None
        else agi_of_ceiling(index, ceiling),
    }
