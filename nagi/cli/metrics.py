# SPDX-License-Identifier: Apache-2.0
"""The command `nagi metrics`: prints metrics of the connections in captures.

Modules that take long to import are imported where they are needed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from nagi_captures.reading import STANDARD_INPUT, read_in_parallel
from nagi_contracts.errors import InputError, refuse
from nagi_reports import overview
from nagi_reports.overview import Choice, Network, Overview, Row
from rich.table import Table

from nagi.terminal.console import Json, complain, error_console, out_console, write_json, write_line

_SHOWN = 20  # connections that are shown without --all
_ROWS_PER_PART = 400  # longer tables are printed in parts, each with its own widths of columns
_ENDPOINT_HEADS = ("from", "to")
_SELECT, _OUTPUT, _PAIR, _PLOT = "Connections", "Output", "Two captures of one path", "Plot"


def _make_option(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False
    )


def print_metrics(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Captures (pcap or pcapng, also compressed by gzip or zstd); - is standard input",
            show_default=False,
        ),
    ],
    host: Annotated[
        list[str] | None,
        _make_option("--host", metavar="ADDRESS", panel=_SELECT,
                help="Only connections of this address or network, such as 10.0.0.0/8; repeatable"),
    ] = None,
    port: Annotated[
        list[int] | None,
        _make_option("--port", metavar="PORT", panel=_SELECT,
                help="Only connections of this port; repeatable"),
    ] = None,
    from_: Annotated[
        str | None,
        _make_option("--from", metavar="TIME", panel=_SELECT,
                help="Start of the measurement, as time after the first packet, such as 2s"),
    ] = None,
    to: Annotated[
        str | None,
        _make_option("--to", metavar="TIME", panel=_SELECT,
                help="End of the measurement, as time after the first packet, such as 10s"),
    ] = None,
    tunnels: Annotated[
        bool,
        _make_option("--tunnels", panel=_SELECT,
                help="Measure the connections inside GRE, VXLAN, Geneve, GTP-U and IP-in-IP"),
    ] = False,
    bottleneck: Annotated[
        str | None,
        _make_option("--bottleneck", metavar="RATE", panel=_OUTPUT,
                help="Smallest rate on the path, such as 10Mbps; adds the column AGI"),
    ] = None,
    sort: Annotated[
        str,
        _make_option("--sort", metavar="KEY", panel=_OUTPUT,
                help=f"Order of connections: {', '.join(overview.SORTS)}; default: bytes"),
    ] = "bytes",
    all_: Annotated[
        bool, _make_option("--all", panel=_OUTPUT, help=f"All connections, not only {_SHOWN}")
    ] = False,
    csv: Annotated[
        bool,
        _make_option("--csv", panel=_OUTPUT, help="All columns of all connections as CSV"),
    ] = False,
    json_: Json = False,
    sender: Annotated[
        Path | None,
        _make_option("--sender", metavar="FILE", panel=_PAIR,
                help="Capture made at the sender, while FILE was made at the receiver; adds losses "
                "and delays"),
    ] = None,
    plot: Annotated[
        Path | None,
        _make_option("--plot", metavar="FILE", panel=_PLOT,
                help="Draw one connection over time: *.png, *.svg, *.pdf or *.html"),
    ] = None,
    connection: Annotated[
        int | None,
        _make_option("--connection", metavar="NUMBER", panel=_PLOT,
                help="Number of the connection in the table; default: the first row"),
    ] = None,
) -> None:  # fmt: skip
    """Print metrics of TCP and UDP connections, from captures of nagi or any other tool.

    AG (achieved goodput, RFC 2647) is the payload without repeated bytes, divided by the time of
    the transfer. AGI (achieved goodput index) is AG divided by the smallest rate on the path
    (--bottleneck). A capture made at the receiver gives the AG of payload that arrived, a capture
    made at the sender gives the AG of payload that was sent.

    Each direction has packets, payload, AG, retransmissions, reordering, duplicate ACKs, SACK
    blocks, zero windows, RTT, options of the SYN, and where on the path the capture was made. --csv
    and --json have more, such as bytes in flight, windows and percentiles of RTT.
    """
    choice = replace(
        _make_choice(host or (), port or (), sort),
        limit=None if all_ or csv or json_ or plot is not None else _SHOWN,
        every_column=csv or json_,
    )
    interval = _parse_interval(from_, to)
    rate = _parse_quantity("Bitrate", "--bottleneck", bottleneck)
    if sender is not None:
        _print_pair_metrics(files, sender, interval, rate, json_)
        return
    examine_capture = partial(
        overview.read_overview,
        choice=choice,
        bottleneck_bps=rate,
        from_ns=interval[0],
        to_ns=interval[1],
        tunnels=tunnels,
    )
    with _exit_on_interrupt():
        overviews, errors = _examine_captures(files, examine_capture)
    if plot is not None and overviews:
        _draw_connection(plot, overviews[0], connection, tunnels)
    if json_:
        write_json({"files": [overview.to_json(capture) for capture in overviews]})
    elif csv:
        overview.write_csv(overviews, sys.stdout)
        for capture in overviews:
            for line in capture.list_notices():
                complain(line)
    else:
        for capture in overviews:
            _print_overview(capture, len(files) > 1)
    for error in errors:
        for problem in error.problems:
            complain(str(problem))
    if errors:
        raise typer.Exit(1 if overviews else 2)


@contextmanager
def _exit_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the program at once, also while it waits for standard input.

    Nothing needs to be cleaned up.
    """
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _examine_captures(
    files: Sequence[str], examine_capture: Callable[[Path | str], Overview]
) -> tuple[list[Overview], list[InputError]]:
    """Examine captures on all processors.

    Returns:
        The overviews of captures, and the errors of captures that cannot be read.

    Raises:
        InputError: Standard input is given twice.
    """
    if files.count(STANDARD_INPUT) > 1:
        raise refuse("- is given twice", "standard input can be read once")
    results = read_in_parallel(examine_capture, files)
    overviews = [result for result in results if isinstance(result, Overview)]
    return overviews, [result for result in results if isinstance(result, InputError)]


def _make_choice(hosts: Sequence[str], ports: Sequence[int], sort: str) -> Choice:
    """Check --host, --port and --sort, and return them as a choice of connections."""
    networks: list[Network] = []
    for host in hosts:
        try:
            networks.append(ip_network(host, strict=False))
        except ValueError:
            raise refuse(
                f"--host {host}: not an address or network", "write it like 10.0.0.1 or 10.0.0.0/8"
            ) from None
    for port in ports:
        if not 0 <= port <= 65535:
            raise refuse(f"--port {port}: not a port", "give 0 to 65535")
    if sort not in overview.SORTS:
        raise refuse(f"--sort {sort}: no such key", f"one of: {', '.join(overview.SORTS)}")
    return Choice(networks, list(ports), sort)


def _parse_interval(from_: str | None, to: str | None) -> tuple[int | None, int | None]:
    """Return --from and --to in nanoseconds after the first packet; None for a missing option.

    Raises:
        InputError: An option is not a duration, or --to is not after --from.
    """
    begin, end = (
        _parse_quantity("Duration", "--from", from_),
        _parse_quantity("Duration", "--to", to),
    )
    if end is not None and end <= (begin or 0):
        raise refuse(
            f"--to {to}: the end is not after the start", "give a later --to, or an earlier --from"
        )
    return begin, end


def _parse_quantity(kind: str, option: str, value: str | None) -> int | None:
    """Parse the value of an option.

    Args:
        kind: The name of the value's class in nagi_contracts.units, such as Duration.
        option: The name of the option, for messages.
        value: The text of the value, or None if the option is not given.

    Returns:
        The value in the base unit of the class (ns, bit/s), or None without a value.

    Raises:
        InputError: The text is not a value of this class.
    """
    if value is None:
        return None
    from nagi_contracts import units

    try:
        return int(getattr(units, kind).parse(value).value)
    except ValueError as error:
        message, _, cure = str(error).partition("; ")
        raise refuse(f"{option}: {message}", cure) from None


def _print_pair_metrics(
    files: Sequence[str],
    sender: Path,
    interval: tuple[int | None, int | None],
    bottleneck_bps: int | None,
    json_: bool,
) -> None:
    """Print metrics of one path that need a capture at each end, such as losses and delays.

    Args:
        files: The receiver's capture, as a list of one file.
        sender: The sender's capture.
        interval: Start and end of the measurement, in nanoseconds after the first packet, or None.
        bottleneck_bps: The smallest rate on the path, or None if not known.
        json_: Whether to print JSON.

    Raises:
        InputError: There are several files or standard input, or a capture cannot be read.
    """
    if len(files) != 1 or files[0] == STANDARD_INPUT:
        raise refuse(
            "--sender with several captures, or with standard input",
            "give one FILE, made at the receiver",
        )
    from nagi_reports import connections

    measured = connections.measure(
        Path(files[0]),
        sender,
        bottleneck_bps=bottleneck_bps,
        from_ns=interval[0],
        to_ns=interval[1],
    )
    if json_:
        write_json(connections.to_json(measured))
        return
    for table in connections.make_tables(measured):
        out_console.print(table)
        out_console.print()
    for line in connections.list_notices(measured):
        write_line(line)


def _draw_connection(path: Path, capture: Overview, connection: int | None, tunnels: bool) -> None:
    """Draw a TCP connection over time, in the direction that carries more payload.

    Args:
        path: The image or page to write.
        capture: The overview of the capture.
        connection: The number of the connection in the table, or None for the first one.
        tunnels: Whether the overview has the connections inside tunnels.

    Raises:
        InputError: The capture has no such TCP connection.
    """
    from nagi_reports import conversation

    rows = [row for row in capture.iterate_rows("tcp") if connection in (None, row["connection"])]
    if not rows:
        raise refuse(
            "there is no TCP connection to draw"
            if connection is None
            else f"--connection {connection}: no TCP connection has this number",
            "give a number of the table",
            file=capture.name,
        )
    directions = (row for row in rows if row["connection"] == rows[0]["connection"])
    row = max(directions, key=lambda candidate: int(candidate["payload_bytes"]))
    conversation.draw(capture, row, path, tunnels=tunnels)
    write_line(f"plot: {path}", error_console)


def _print_overview(capture: Overview, with_name: bool) -> None:
    """Print the tables of one capture, and notes about the tables.

    `with_name`: whether to print the name of the capture first.
    """
    if with_name:
        write_line(f"{capture.name}:")
    has_interval = capture.totals.start_ns is not None or capture.totals.end_ns is not None
    has_rows = False
    for protocol, make_table in (
        ("tcp", _make_payload_table),
        ("tcp", partial(_make_packet_table, has_interval=has_interval)),
        ("tcp", _make_path_table),
        ("udp", _make_udp_table),
    ):
        has_rows |= _print_rows(capture.iterate_rows(protocol), make_table)
    if capture.left_out:
        write_line(f"{capture.left_out:,} more connections: --all shows them")
    if not has_rows:
        write_line(f"{capture.name}: no connection was selected")
    if any(map(_is_captured_at_sender, capture.iterate_rows("tcp"))):
        write_line(
            "* captured at the sender: AG counts payload that was sent; for payload that arrived, "
            "give the receiver's capture"
        )
    if has_interval:
        first_ns, totals = capture.totals.first_ns, capture.totals
        start_ns, end_ns = (
            (instant_ns or first_ns) - first_ns for instant_ns in (totals.start_ns, totals.end_ns)
        )
        write_line(
            f"measured: from {start_ns / 1e9:.6g} s to {end_ns / 1e9:.6g} s after the capture's "
            "first packet; start, handshake and options do not depend on this interval"
        )
    for line in capture.list_notices():
        write_line(line)


@dataclass
class _TextTable:
    """A table of texts, with a title and heads of columns.

    The columns `from` and `to` are left-aligned, and folded if the terminal is too narrow.
    """

    title: str
    heads: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        self.rows.append(cells)

    def to_rich_table(self) -> Table:
        """Return the table as a table of `rich`, which fits the columns to the terminal."""
        table = Table(
            title=self.title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
        )
        for head in self.heads:
            if head in _ENDPOINT_HEADS:
                table.add_column(head, overflow="fold", min_width=9)
            else:
                table.add_column(head, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table

    def format_lines(self) -> Iterator[str]:
        """Yield the lines of the table. Columns are not fitted to the terminal.

        This is thirty times faster than the layout of `rich`.
        """
        rows = [self.heads, *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        alignments = ["<" if head in _ENDPOINT_HEADS else ">" for head in self.heads]
        for row in rows:
            cells = zip(row, alignments, widths, strict=True)
            yield "  ".join(f"{cell:{align}{width}}" for cell, align, width in cells).rstrip()


def _print_rows(rows: Iterator[Row], make_table: Callable[[list[Row]], _TextTable]) -> bool:
    """Print rows as a table, and return whether there was a row.

    A table of more than _ROWS_PER_PART rows is printed in parts. Each part has the heads of columns
    and its own widths of columns; the title is printed once.
    """
    rows_of_part = list(islice(rows, _ROWS_PER_PART))
    if not rows_of_part:
        return False
    next_rows = list(islice(rows, _ROWS_PER_PART))
    table = make_table(rows_of_part)
    if not next_rows:
        out_console.print(table.to_rich_table())
    else:
        write_line(table.title)
        write_line("\n".join(table.format_lines()))
        while next_rows:
            write_line("\n".join(make_table(next_rows).format_lines()))
            next_rows = list(islice(rows, _ROWS_PER_PART))
    out_console.print()
    return True


def _is_captured_at_sender(row: Row) -> bool:
    """Return whether a direction carries payload and was captured at the sender of this payload."""
    return row["captured_at"] == "source" and bool(row["first_time_bytes"])


def _format_label(row: Row) -> str:
    """Return the number of the connection, and its direction: > for forward, < for backward."""
    return f"{row['connection']}{'<' if row['direction'] else '>'}"


def _format_endpoints(row: Row) -> tuple[str, str]:
    return (
        overview.format_endpoint(row["source"], row["source_port"]),
        overview.format_endpoint(row["destination"], row["destination_port"]),
    )


def _format_number(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:,.3f}"


def _format_count(value: int) -> str:
    return f"{value:,}" if value > 0 else "-"


def _make_payload_table(rows: list[Row]) -> _TextTable:
    """Make the table of payload and goodput. A `*` marks an AG that was measured at the sender."""
    has_agi = any("agi" in row for row in rows)
    heads = ["#", "from", "to", "start s", "s", "MB", "AG Mb/s"]
    table = _TextTable(
        "TCP: achieved goodput", [*heads, *(("AGI", "/ ceiling") if has_agi else ())]
    )
    for row in rows:
        has_payload = row["first_time_bytes"] > 0
        cells = [_format_number(row["start_s"])]
        for name, scale in (
            ("interval_s", 1),
            ("first_time_bytes_inside", 1e-6),
            ("goodput_bps", 1e-6),
        ):
            cells.append(_format_number(row[name] if has_payload else None, scale))
        if _is_captured_at_sender(row):
            cells[-1] += "*"
        if has_agi:
            cells += [
                _format_number(row[name] if has_payload else None)
                for name in ("agi", "agi_of_ceiling")
            ]
        table.add_row(_format_label(row), *_format_endpoints(row), *cells)
    return table


def _make_packet_table(rows: list[Row], *, has_interval: bool) -> _TextTable:
    """Make the table of packets.

    `has_interval`: whether only an interval of the capture is measured (--from, --to).
    """
    columns = {
        "data": "data_packets_inside",
        "retr.": "retransmitted_packets_inside",
        "reordered": "out_of_order_packets_inside",
    }
    # These columns count the whole capture, so the table of an interval does not have them.
    if not has_interval:
        columns |= {
            "dup. ACKs": "duplicate_acks",
            "SACKs": "sack_blocks",
            "zero win.": "zero_window_packets",
        }
    table = _TextTable("Packets", ["#", "all", *columns, "retr. %"])
    for row in rows:
        rate = row["retransmission_rate"]
        counts = [_format_count(row[name]) for name in columns.values()]
        packets = _format_count(row["packets_inside"])
        table.add_row(_format_label(row), packets, *counts, _format_number(rate or None, 100))
    return table


def _make_path_table(rows: list[Row]) -> _TextTable:
    """Make the table of RTTs and of options of the SYN."""
    names = ("min", "median", "p99", "max")
    options = ("MSS", "scale", "captured at")
    table = _TextTable("RTT (ms), options of the SYN", ["#", "handshake", *names, *options])
    for row in rows:
        table.add_row(
            _format_label(row),
            _format_number(row["handshake_rtt_ns"], 1e-6),
            *(_format_number(row[f"rtt_{name}_s"], 1e3) for name in names),
            "-" if row["mss"] < 0 else str(row["mss"]),
            "-" if row["window_scale"] < 0 else str(row["window_scale"]),
            row["captured_at"] or "-",
        )
    return table


def _make_udp_table(rows: list[Row]) -> _TextTable:
    """Make the table of UDP connections."""
    table = _TextTable("UDP", ["#", "from", "to", "start s", "packets", "MB", "Mb/s"])
    for row in rows:
        table.add_row(
            _format_label(row),
            *_format_endpoints(row),
            _format_number(row["start_s"]),
            _format_count(row["packets_inside"]),
            _format_number(row["payload_bytes_inside"], 1e-6),
            _format_number(row["goodput_bps"], 1e-6),
        )
    return table
