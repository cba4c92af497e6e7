# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics`: what TCP connections achieved, from captures made anywhere.

A row a TCP connection, in the direction that carries more payload. From the receiver's capture come
goodput, throughput and transfer time; from the sender's, if there is one, retransmissions, RTT,
bytes in flight and windows; from both together one-way delays and losses. What each is, is said in
nagi_reports.metrics and nagi_captures.capture. With both captures, connections whose payload goes
from the receiver's place to the sender's are measured the other way round.

The measurement interval is the one asked for; without one it is each connection's own, from its
first packet to its last byte of payload.
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

SHOWN = 40  # rows of the text table; JSON has all
DRIFT_PPM = 50.0  # clocks of computers that are not synchronised drift by tens of ppm
_TIMESTAMPS_BYTES = 12


@dataclass(frozen=True)
class Connections:
    """What was measured. `rows` are plain data with units in their names; null is not known."""

    rows: list[dict[str, Any]]
    bottleneck_bps: int | None
    clocks: Clocks | None
    damage: list[str]
    unused: dict[str, dict[str, int]]  # capture -> reason -> packets in no connection
    udp: int  # connections of UDP, which are in no row
    warnings: list[str]  # what makes numbers doubtful


def measure(
    receiver: Path,
    sender: Path | None,
    *,
    bottleneck_bps: int | None,
    from_ns: int | None,
    to_ns: int | None,
) -> Connections:
    """Measures the connections in the receiver's capture. `from_ns` and `to_ns` bound the
    measurement interval, counted from that capture's first packet.

    Raises InputError if a file is no capture, or has no TCP payload.
    """
    received = read(receiver, start_ns=from_ns, end_ns=to_ns, relative=True)
    _check_interval(receiver, received, from_ns)
    start_ns, end_ns = received.start_ns, received.end_ns
    if start_ns is not None and end_ns is None:
        end_ns = received.last_ns + 1
    if end_ns is not None and start_ns is None:
        start_ns = received.first_ns
    flows = pd.DataFrame(received.columns, copy=False)
    chosen = _carrying_payload(flows)
    if not len(chosen):
        raise refuse(
            f"there is no TCP connection with payload in it{describe_contents(received)}",
            "give a capture of TCP, made where it is received",
            file=display_name(receiver),
        )
    sent = between = None
    there = flows[:0]
    if sender is not None:
        sent = read(sender, start_ns=start_ns, end_ns=end_ns)
        there = pd.DataFrame(sent.columns, copy=False)
        between = match(sender, receiver, start_ns=start_ns, end_ns=end_ns)
    here_rows, there_rows = _Rows(flows), _Rows(there)
    # Of a row of the receiver's capture: the same direction in both, and in the sender's.
    pairs = {
        here_rows.place(each.received_connection, each): (
            each,
            there_rows.place(each.sent_connection, each),
        )
        for each in (between.flows.itertuples() if between else ())
    }
    rows = []
    for place in chosen:
        direction, sent_place = pairs.get(place, (None, None))
        mine, theirs = (here_rows, place), (there_rows, sent_place)
        # What goes the other way was sent where the receiver's capture is.
        turned = direction is not None and not direction.forward
        (at_sender, from_), (at_receiver, to) = (mine, theirs) if turned else (theirs, mine)
        forth, back = at_receiver.row(to), at_receiver.back(to)
        window = _window(forth, back, start_ns, end_ns)
        rows.append(
            {
                "source": format_endpoint(forth.source, forth.source_port),
                "destination": format_endpoint(forth.destination, forth.destination_port),
                "at_receiver": _at_receiver(forth, back, window, bottleneck_bps),
                "at_sender": _at_sender(at_sender.row(from_), at_sender.back(from_)),
                "between": _between(direction),
            }
        )
    scans = {display_name(receiver): received}
    if sender is not None and sent is not None:
        scans[display_name(sender)] = sent
    return Connections(
        rows=rows,
        bottleneck_bps=bottleneck_bps,
        clocks=between.clocks if between else None,
        damage=[each.damage for each in scans.values() if each.damage],
        unused={name: each.unused for name, each in scans.items() if any(each.unused.values())},
        udp=int((flows["protocol"] == "udp").sum()) // 2,
        warnings=[line for name, each in scans.items() for line in _warnings(name, each)],
    )


def to_json(found: Connections) -> dict[str, Any]:
    """The measurement as plain data for JSON."""
    return {
        "schema_version": 1,
        "bottleneck_bps": found.bottleneck_bps,
        "connections": found.rows,
        "clocks": None
        if found.clocks is None
        else {name: to_json_value(value) for name, value in vars(found.clocks).items()},
        "damage": found.damage,
        "packets_in_no_connection": found.unused,
        "udp_connections_left_out": found.udp,
    }


def make_tables(found: Connections) -> Iterator[Table]:
    """The measurement as text tables, the connections with most payload first: what reached the
    receiver, and where there is a sender's capture what it took."""
    rows = sorted(found.rows, key=lambda row: -row["at_receiver"]["first_time_bytes"])[:SHOWN]
    heads = ["AG (Mb/s)", "s", "MB"]
    if found.bottleneck_bps is not None:
        heads += ["AGI", "/ ceiling"]
    table = _table("", "from", "to", *heads)
    for number, row in enumerate(rows, 1):
        here = row["at_receiver"]
        cells = [
            _number(here["goodput_bps"], 1e-6),
            _number(here["interval_s"]),
            _number(here["first_time_bytes"], 1e-6),
        ]
        if found.bottleneck_bps is not None:
            cells += [_number(here["agi"]), _number(here["agi_of_ceiling"])]
        table.add_row(str(number), row["source"], row["destination"], *cells)
    yield table
    if any(row["at_sender"] or row["between"] for row in rows):
        heads = ["retr.", "RTT (ms)", "in flight (kB)", "lost", "delay (ms)", "queueing (ms)"]
        table = _table("", *heads)
        for number, row in enumerate(rows, 1):
            there, between = row["at_sender"] or {}, row["between"] or {}
            table.add_row(
                str(number),
                _share(there.get("retransmission_rate")),
                _number(there.get("rtt_mean_s"), 1e3),
                _number(there.get("in_flight_mean_bytes"), 1e-3),
                _share(between.get("loss_rate")),
                _number(between.get("one_way_delay_mean_s"), 1e3),
                _number(between.get("queueing_delay_mean_s"), 1e3),
            )
        yield table


def _table(*heads: str) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for head in heads:
        if head in ("from", "to"):
            table.add_column(head, overflow="fold")
        else:
            table.add_column(head, justify="right", no_wrap=True)
    return table


def list_notices(found: Connections) -> list[str]:
    """What there is to say below the table."""
    lines = []
    if found.bottleneck_bps is not None:
        lines.append(
            f"bottleneck {found.bottleneck_bps / 1e6:g} Mb/s; AGI is AG / bottleneck, the ceiling "
            "what headers leave of it"
        )
    if len(found.rows) > SHOWN:
        lines.append(f"{len(found.rows) - SHOWN} more connections: --json has all")
    if found.udp:
        lines.append(f"{found.udp} UDP connections left out")
    if found.clocks is not None:
        lines.append(describe_clocks(found.clocks))
    lines += [f"damaged: {damage}" for damage in found.damage]
    lines += found.warnings
    for name, reasons in found.unused.items():
        said = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
        lines.append(f"{name}: packets in no connection: {said}")
    return lines


def _warnings(name: str, found: Flows) -> list[str]:
    return list_warnings(name, found, int(found.columns["captured_twice"].sum()))


def describe_clocks(clocks: Clocks) -> str:
    """Whether one-way delays can be believed."""
    said = []
    if clocks.apart_at_least_ns > 0:
        said.append(
            f"the two captures' clocks are apart by at least {clocks.apart_at_least_ns / 1e6:.3f} "
            "ms, as packets would have arrived before they were sent: one-way delays hold but for "
            "a constant, queueing delays hold"
        )
    elif clocks.offset_ns is None:
        said.append("packets went one way only, which says nothing of the two captures' clocks")
    else:
        said.append(
            "the two captures' clocks do not contradict each other (they may still be apart: by "
            f"{abs(clocks.offset_ns) / 1e6:.3f} ms if both ways take equally long)"
        )
    if clocks.drift_ppm is not None and abs(clocks.drift_ppm) > DRIFT_PPM:
        said.append(
            f"they drift by {clocks.drift_ppm:.0f} ppm, or the path changed: queueing delays grow "
            "or shrink with it"
        )
    return "clocks: " + "; ".join(said)


class _Rows:
    """Rows of a scan, made where they are asked for: row 2 x connection + direction."""

    def __init__(self, flows: pd.DataFrame) -> None:
        self._flows = flows
        self._source = flows["source"].to_numpy()
        self._port = flows["source_port"].to_numpy()

    def row(self, place: int | None) -> Any:
        return None if place is None else next(self._flows[place : place + 1].itertuples())

    def back(self, place: int | None) -> Any:
        """The row of the other direction."""
        return None if place is None else self.row(place ^ 1)

    def place(self, connection: Any, ends: Any) -> int:
        """The direction of a connection that begins where `ends` does."""
        first = 2 * int(connection)
        same = self._source[first] == ends.source and self._port[first] == ends.source_port
        return first if same else first + 1


def _check_interval(receiver: Path, received: Flows, from_ns: int | None) -> None:
    length_ns = received.last_ns - received.first_ns
    if (from_ns or 0) > length_ns:
        raise refuse(
            f"its packets end after {length_ns / 1e9:.6g} s, before --from",
            "give an earlier --from",
            file=display_name(receiver),
        )


def _carrying_payload(flows: pd.DataFrame) -> list[int]:
    """Places of rows: of each TCP connection the direction with more payload, if there is any."""
    payload = flows["first_time_bytes"].to_numpy().reshape(-1, 2)
    place = 2 * np.arange(len(payload)) + (payload[:, 1] > payload[:, 0])
    tcp = flows["protocol"].to_numpy()[place] == "tcp"
    found: list[int] = place[tcp & (payload.max(axis=1, initial=0) > 0)].tolist()
    return found


def _window(row: Any, back: Any, start_ns: int | None, end_ns: int | None) -> tuple[int, int]:
    """The measurement interval of a connection."""
    if start_ns is not None and end_ns is not None:
        return start_ns, end_ns
    return _first_ns(row, back), row.last_data_ns


def _first_ns(row: Any, back: Any) -> int:
    """When the first packet of a connection was captured, in either direction."""
    times = [each.first_ns for each in (row, back) if each is not None and each.packets]
    return int(min(times))


def _at_receiver(
    row: Any, back: Any, window: tuple[int, int], bottleneck_bps: int | None
) -> dict[str, Any]:
    seconds = (window[1] - window[0]) / 1e9
    goodput = goodput_bps(row.first_time_bytes_inside, seconds)
    ceiling = _ceiling(row, back)
    index = agi(goodput, bottleneck_bps) if bottleneck_bps is not None else math.nan
    values = {
        "interval_s": seconds,
        "first_time_bytes": row.first_time_bytes_inside,
        "goodput_bps": goodput,
        "throughput_bps": throughput_bps(row.ip_bytes_inside, seconds),
        "transfer_bytes": row.first_time_bytes,
        "transfer_time_s": transfer_time_s(_first_ns(row, back), row.last_data_ns),
        "agi": index,
        "agi_ceiling": ceiling,
        "agi_of_ceiling": agi_of_ceiling(index, ceiling),
        "packets": row.packets_inside,
        "complete_handshake": bool(row.complete_handshake),
    }
    return {name: to_json_value(value) for name, value in values.items()}


def _ceiling(row: Any, back: Any) -> float:
    """The largest AGI that headers permit: of segments as large as the options of both SYNs let
    them be; nan where they were not captured."""
    offered = [each.mss for each in (row, back) if each is not None and each.mss > 0]
    if len(offered) < 2:
        return math.nan
    mss = min(offered)
    options = _TIMESTAMPS_BYTES if row.timestamps else 0
    headers = 60 if ":" in row.source else 40
    return agi_ceiling(mss - options, mss + headers)


def _at_sender(row: Any, back: Any) -> dict[str, Any] | None:
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
        "receive_window_mean_bytes": back.window_mean_bytes if back is not None else None,
        "duplicate_acks": back.duplicate_acks if back is not None else None,
    }
    return {name: to_json_value(value) for name, value in values.items()}


def extract_rtt_s(row: Any) -> dict[str, float | None]:
    """RTT of a direction in s: by timestamps where there are samples, else by sequence numbers."""
    direction = "timestamps" if row.rtt_timestamps_count else "sequence"
    return {
        f"rtt_{name}_s": to_json_value(getattr(row, f"rtt_{direction}_{name}_ns") / 1e9)
        for name in ("min", "mean", "median", "p95", "p99", "max")
    }


def _between(row: Any) -> dict[str, Any] | None:
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
    """A value as JSON has it: a plain number, null for one that is not known."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _number(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}".replace("%", " %")
