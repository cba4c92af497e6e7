# SPDX-License-Identifier: Apache-2.0
"""The command `nagi metrics`: prints metrics of the connections in captures.

Modules that take long to import are imported where they are needed.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any

import typer
from nagi_captures.reading import STANDARD_INPUT, read_in_parallel
from nagi_contracts.errors import InputError, refuse
from nagi_reports import overview
from nagi_reports.overview import Choice, Network, Overview

from nagi.terminal.connection_tables import (
    is_captured_at_sender,
    make_packet_table,
    make_path_table,
    make_payload_table,
    make_udp_table,
    print_rows,
)
from nagi.terminal.console import Json, complain, error_console, out_console, write_json, write_line

_SHOWN = 20  # connections that are shown without --all
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

    This is safe because nothing needs to be cleaned up.
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
        The overviews of the captures that can be read, and the errors of the other captures; both
        in the order of `files`.

    Raises:
        InputError: Standard input is given twice.
    """
    if files.count(STANDARD_INPUT) > 1:
        raise refuse("- is given twice", "standard input can be read once")
    results = read_in_parallel(examine_capture, files)
    overviews = [result for result in results if isinstance(result, Overview)]
    return overviews, [result for result in results if isinstance(result, InputError)]


def _make_choice(hosts: Sequence[str], ports: Sequence[int], sort: str) -> Choice:
    """Check --host, --port and --sort, and return them as a choice of connections.

    Raises:
        InputError: A value is not an address, a network, a port or a key of overview.SORTS.
    """
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
        connection: The number of the connection in the table, or None for the first row.
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
        ("tcp", make_payload_table),
        ("tcp", partial(make_packet_table, has_interval=has_interval)),
        ("tcp", make_path_table),
        ("udp", make_udp_table),
    ):
        has_rows |= print_rows(capture.iterate_rows(protocol), make_table)
    if capture.left_out:
        write_line(f"{capture.left_out:,} more connections: --all shows them")
    if not has_rows:
        write_line(f"{capture.name}: no connection was selected")
    if any(map(is_captured_at_sender, capture.iterate_rows("tcp"))):
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
