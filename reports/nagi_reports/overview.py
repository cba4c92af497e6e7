# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics FILE...`: what single captures show of their connections, in both directions.

A row is a direction of a connection. Columns are those of nagi_captures.flow_columns, and DERIVED.
Only NumPy is needed, as starting pandas takes longer than reading most captures.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from nagi_captures.flow_columns import FLOW_COLUMNS
from nagi_captures.reading import Columns, Flows, name_of, read
from nagi_contracts.errors import refuse

from nagi_reports.metrics import agi, agi_ceiling, agi_of_ceiling

Network = IPv4Network | IPv6Network
Places = npt.NDArray[np.int64]

# Columns that are made of those of the capture.
DERIVED: dict[str, str] = {
    "start_s": "the connection's first packet, since the capture's first, s",
    "interval_s": "the measurement interval: as given, or from the connection's first packet to "
    "this direction's last byte of payload, s",
    "goodput_bps": "achieved goodput (AG): unique payload bytes in the interval x 8 / interval, "
    "bit/s (RFC 2647); where the capture was made at the source, bytes sent instead of delivered",
    "throughput_bps": "IP bytes in the interval x 8 / interval, bit/s (RFC 5166)",
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
    "destination_port", "first_ns", "last_ns", "last_data_ns", "packets", "data_packets",
    "packets_inside", "ip_bytes_inside", "payload_bytes", "first_time_bytes",
    "first_time_bytes_inside", "data_packets_inside", "retransmitted_packets_inside",
    "out_of_order_packets_inside", "duplicate_acks", "sack_blocks", "zero_window_packets",
    "captured_twice", "mss", "window_scale", "timestamps", "handshake_rtt_ns", "captured_at",
    *(f"rtt_{kind}_{name}_ns".replace("count_ns", "count")
      for kind in ("sequence", "timestamps") for name in _RTT),
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """Which connections are asked for. `networks`, `ports`: of either end, any of them."""

    networks: Sequence[Network] = ()
    ports: Sequence[int] = ()
    sort: str = "bytes"


# Of what connections may be sorted, each largest or first first.
_SORTS: dict[str, Callable[[Columns], npt.NDArray[Any]]] = {
    "bytes": lambda columns: -_of_connections(columns["first_time_bytes"], np.max),
    "packets": lambda columns: -_of_connections(columns["packets"], np.sum),
    "start": lambda columns: _starts(columns),
    "duration": lambda columns: -(_of_connections(columns["last_ns"], np.max) - _starts(columns)),
    "retransmissions": lambda columns: (
        -_of_connections(columns["retransmitted_packets_inside"], np.max)
    ),
    "rtt": lambda columns: (
        -_of_connections(np.nan_to_num(columns["rtt_sequence_median_ns"], nan=-1.0), np.max)
    ),
}
SORTS = tuple(_SORTS)


@dataclass(frozen=True)
class Overview:
    """One capture, and the connections in it that were asked for."""

    path: Path | str
    flows: Flows
    bottleneck_bps: int | None
    tcp: Places  # numbers of connections, in the order asked for
    udp: Places

    @property
    def name(self) -> str:
        return name_of(self.path)

    def row(self, connection: int, direction: int) -> dict[str, Any]:
        """All that is known of a direction, by names of FLOW_COLUMNS and DERIVED; None: not."""
        columns = self.flows.columns
        place = 2 * connection + direction
        values = {name: _plain(column[place]) for name, column in columns.items()}
        return values | self._derived(place)

    def _derived(self, place: int) -> dict[str, Any]:
        columns, flows = self.flows.columns, self.flows
        start_ns = _start(columns, place // 2)
        begin = start_ns if flows.start_ns is None else flows.start_ns
        end = int(columns["last_data_ns"][place]) if flows.end_ns is None else flows.end_ns
        seconds = (end - begin) / 1e9
        goodput = _rate(columns["first_time_bytes_inside"][place], seconds)
        sent = int(columns["data_packets_inside"][place])
        again = int(columns["retransmitted_packets_inside"][place])
        found: dict[str, Any] = {
            "start_s": (start_ns - flows.first_ns) / 1e9,
            "interval_s": seconds if seconds > 0 else None,
            "goodput_bps": goodput,
            "throughput_bps": _rate(columns["ip_bytes_inside"][place], seconds),
            "retransmission_rate": again / sent if sent else None,
        }
        if self.bottleneck_bps is not None:
            ceiling = _ceiling(columns, place)
            index = None if goodput is None else agi(goodput, self.bottleneck_bps)
            found |= {
                "agi": index,
                "agi_ceiling": ceiling,
                "agi_of_ceiling": None
                if index is None or ceiling is None
                else agi_of_ceiling(index, ceiling),
            }
        kind = "timestamps" if columns["rtt_timestamps_count"][place] else "sequence"
        for name in _RTT[1:]:
            value = float(columns[f"rtt_{kind}_{name}_ns"][place])
            found[f"rtt_{name}_s"] = value / 1e9 if math.isfinite(value) else None
        return found

    def directions(self, connections: Iterable[int]) -> Iterator[dict[str, Any]]:
        """Rows of connections, without directions of which no packet was captured."""
        packets = self.flows.columns["packets"]
        for connection in connections:
            for direction in (0, 1):
                if packets[2 * connection + direction]:
                    yield self.row(connection, direction)

    def notices(self) -> list[str]:
        """What makes the numbers doubtful, and what was left out."""
        lines = [f"damaged: {self.flows.damage}"] if self.flows.damage else []
        lines += warnings(self.name, self.flows)
        if self.flows.unused:
            said = ", ".join(f"{count:,} {reason}" for reason, count in self.flows.unused.items())
            lines.append(f"{self.name}: packets in no connection: {said}")
        return lines


def look_at(
    path: Path | str,
    choice: Choice,
    *,
    bottleneck_bps: int | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    tunnels: bool = False,
    columns: Sequence[str] | None = None,
) -> Overview:
    """Reads a capture. from_ns, to_ns: the measurement interval, from the capture's first packet;
    with one, connections without a packet in it are left out. columns: None: all.

    Raises InputError if it is no capture, or has neither TCP nor UDP.
    """
    flows = read(
        path, start_ns=from_ns, end_ns=to_ns, relative=True, columns=columns, tunnels=tunnels
    )
    if from_ns is not None and flows.packets and from_ns > flows.last_ns - flows.first_ns:
        length = (flows.last_ns - flows.first_ns) / 1e9
        raise refuse(
            f"its packets end after {length:.6g} s, before --from",
            "give an earlier --from",
            file=name_of(path),
        )
    if from_ns is not None or to_ns is not None:
        flows = _closed(flows)
    found = flows.columns
    if not len(found["packets"]):
        raise refuse(
            f"there is no TCP or UDP packet in it{contents(flows)}",
            "give a capture of TCP; --tunnels looks into GRE, VXLAN, Geneve, GTP-U and IP-in-IP",
            file=name_of(path),
        )
    chosen = _of_connections(found["packets_inside"], np.sum) > 0
    if choice.networks or choice.ports:
        chosen &= _at_either_end(found, choice)
    order = np.argsort(_SORTS[choice.sort](found), kind="stable")
    order = order[chosen[order]]
    is_tcp = found["protocol"][::2] == "tcp"
    return Overview(path, flows, bottleneck_bps, order[is_tcp[order]], order[~is_tcp[order]])


def as_json(overview: Overview) -> dict[str, Any]:
    """A capture as plain data, all connections that were asked for."""
    flows = overview.flows
    return {
        "file": overview.name,
        "packets": flows.packets,
        "bytes": flows.bytes,
        "length_s": (flows.last_ns - flows.first_ns) / 1e9,
        "contents": flows.contents,
        "packets_in_no_connection": flows.unused,
        "damage": flows.damage,
        "warnings": warnings(overview.name, flows),
        "tcp": list(overview.directions(overview.tcp.tolist())),
        "udp": list(overview.directions(overview.udp.tolist())),
    }


def write_csv(overviews: Sequence[Overview], file: IO[str]) -> None:
    """All connections that were asked for, a row a direction."""
    derived = [name for name in DERIVED if not name.startswith("agi")]
    if any(each.bottleneck_bps is not None for each in overviews):
        derived = list(DERIVED)
    writer = csv.DictWriter(file, ["file", *FLOW_COLUMNS, *derived], extrasaction="ignore")
    writer.writeheader()
    for each in overviews:
        for row in each.directions([*each.tcp.tolist(), *each.udp.tolist()]):
            writer.writerow({"file": each.name, **row})


def warnings(name: str, found: Flows) -> list[str]:
    """What makes a capture's numbers doubtful: times that go back, packets captured twice."""
    lines = []
    if found.packets_back:
        lines.append(
            f"{name}: {found.packets_back} packets have times before that of the packet in front "
            f"of them, by up to {found.most_back_ns / 1e6:.6g} ms"
        )
    twice = int(found.columns["captured_twice"].sum()) if "captured_twice" in found.columns else 0
    if twice:
        lines.append(
            f"{name}: {twice} packets were captured twice, and count as retransmissions or "
            "duplicate ACKs; capture on one interface, or take them out: editcap -d"
        )
    return lines


def contents(found: Flows) -> str:
    """What a capture has instead, for a message."""
    if not found.contents:
        return ""
    said = ", ".join(f"{count} {name}" for name, count in found.contents.items())
    return f"; its packets: {said}"


def endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _closed(flows: Flows) -> Flows:
    """With both ends of the measurement interval."""
    from dataclasses import replace

    return replace(
        flows,
        start_ns=flows.first_ns if flows.start_ns is None else flows.start_ns,
        end_ns=flows.last_ns + 1 if flows.end_ns is None else flows.end_ns,
    )


def _of_connections(column: npt.NDArray[Any], function: Any) -> npt.NDArray[Any]:
    """Of the values of both directions."""
    found: npt.NDArray[Any] = function(column.reshape(-1, 2), axis=1)
    return found


def _starts(columns: Columns) -> npt.NDArray[np.int64]:
    """First packets of connections, ns."""
    never = np.iinfo(np.int64).max
    first = np.where(columns["packets"] > 0, columns["first_ns"], never)
    return _of_connections(first, np.min)


def _start(columns: Columns, connection: int) -> int:
    places = (2 * connection, 2 * connection + 1)
    return min(int(columns["first_ns"][place]) for place in places if columns["packets"][place])


def _at_either_end(columns: Columns, choice: Choice) -> npt.NDArray[np.bool_]:
    source, port = columns["source"][::2], columns["source_port"][::2]
    destination, other_port = columns["destination"][::2], columns["destination_port"][::2]
    chosen = np.ones(len(source), np.bool_)
    if choice.ports:
        chosen &= np.isin(port, choice.ports) | np.isin(other_port, choice.ports)
    if choice.networks:
        inside = {
            address: any(ip_address(address) in each for each in choice.networks)
            for address in {*source.tolist(), *destination.tolist()}
        }
        ends = zip(source.tolist(), destination.tolist(), strict=True)
        chosen &= np.array([inside[one] or inside[other] for one, other in ends], np.bool_)
    return chosen


def _rate(count: Any, seconds: float) -> float | None:
    return float(count) * 8 / seconds if seconds > 0 else None


def _ceiling(columns: Columns, place: int) -> float | None:
    """The largest AGI that headers permit: of segments as large as the options of both SYNs let
    them be; None where they were not captured."""
    sizes = [int(columns["mss"][each]) for each in (place, place ^ 1)]
    if min(sizes) <= 0:
        return None
    timestamps = 12 if columns["timestamps"][place] else 0
    headers = 60 if ":" in columns["source"][place] else 40
    return agi_ceiling(min(sizes) - timestamps, min(sizes) + headers)


def _plain(value: Any) -> Any:
    """A value as JSON has it: a plain number, None for one that is not known."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else None
