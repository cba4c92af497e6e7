# SPDX-License-Identifier: Apache-2.0
"""`nagi metrics`. What takes long to import is imported where it is needed."""

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
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from nagi_captures.reading import STANDARD_INPUT, read_in_parallel
from nagi_contracts.errors import InputError, refuse
from nagi_reports import overview
from nagi_reports.overview import Choice, Network, Overview, Row
from rich.table import Table

from nagi.terminal.console import Json, complain, error_console, out_console, write_json, write_line

if TYPE_CHECKING:
    from nagi_contracts.units import Quantity

_SHOWN = 20  # connections, if not all are asked for
_PART = 400  # rows of a table that are laid out together
_ENDS = ("from", "to")
_Kind = TypeVar("_Kind", bound="Quantity")
_SELECT, _OUTPUT, _PAIR, _PLOT = "Connections", "Output", "Two captures of one path", "Plot"


def _option(*names: str, help: str, panel: str, metavar: str | None = None) -> Any:
    return typer.Option(
        *names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False
    )


def metrics(
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
        _option("--host", metavar="ADDRESS", panel=_SELECT,
                help="Only connections of this address or network, such as 10.0.0.0/8; repeatable"),
    ] = None,
    port: Annotated[
        list[int] | None,
        _option("--port", metavar="PORT", panel=_SELECT,
                help="Only connections of this port; repeatable"),
    ] = None,
    from_: Annotated[
        str | None,
        _option("--from", metavar="TIME", panel=_SELECT,
                help="Start of the measurement after the first packet: 2s"),
    ] = None,
    to: Annotated[
        str | None,
        _option("--to", metavar="TIME", panel=_SELECT,
                help="End of the measurement after the first packet: 10s"),
    ] = None,
    tunnels: Annotated[
        bool,
        _option("--tunnels", panel=_SELECT,
                help="Look into GRE, VXLAN, Geneve, GTP-U and IP-in-IP"),
    ] = False,
    bottleneck: Annotated[
        str | None,
        _option("--bottleneck", metavar="RATE", panel=_OUTPUT,
                help="Smallest rate on the path, such as 10Mbps: adds AGI"),
    ] = None,
    sort: Annotated[
        str,
        _option("--sort", metavar="KEY", panel=_OUTPUT,
                help=f"Order of connections: {', '.join(overview.SORTS)}; bytes if not given"),
    ] = "bytes",
    all_: Annotated[
        bool, _option("--all", panel=_OUTPUT, help=f"All connections, not only {_SHOWN}")
    ] = False,
    csv: Annotated[
        bool,
        _option("--csv", panel=_OUTPUT, help="All columns of all connections as CSV"),
    ] = False,
    json_: Json = False,
    sender: Annotated[
        Path | None,
        _option("--sender", metavar="FILE", panel=_PAIR,
                help="Capture at the sender, FILE being the receiver's: adds losses and delays"),
    ] = None,
    plot: Annotated[
        Path | None,
        _option("--plot", metavar="FILE", panel=_PLOT,
                help="Draw one connection over time: *.png, *.svg, *.pdf or *.html"),
    ] = None,
    connection: Annotated[
        int | None,
        _option("--connection", metavar="NUMBER", panel=_PLOT,
                help="Which one, by its number in the table; the first row if not given"),
    ] = None,
) -> None:  # fmt: skip
    """Print what TCP and UDP connections did, from captures of nagi or any other tool.

    AG, achieved goodput, is the payload that arrived for the first time, over the time it took
    (RFC 2647). AGI, its index, is AG / the smallest rate on the path (--bottleneck). AG is of the
    receiver: of a capture made at the sender it is what was sent.

    Of each direction: packets, payload, AG, retransmissions, reordering, duplicate ACKs, SACK
    blocks, zero windows, RTT, options of the SYN, and where on the path the capture was made.
    --csv and --json have more, such as bytes in flight, windows and percentiles of RTT.
    """
    choice = replace(
        _choice(host or (), port or (), sort),
        limit=None if all_ or csv or json_ or plot is not None else _SHOWN,
        every_column=csv or json_,
    )
    interval = _interval(from_, to)
    rate = _quantity("Bitrate", "--bottleneck", bottleneck)
    if sender is not None:
        _measure_pair(files, sender, interval, rate, json_)
        return
    look = partial(
        overview.read_overview,
        choice=choice,
        bottleneck_bps=rate,
        from_ns=interval[0],
        to_ns=interval[1],
        tunnels=tunnels,
    )
    with _ended_by_interrupts():
        found, errors = _look_at_all(files, look)
    if plot is not None and found:
        _plot(plot, found[0], connection, tunnels)
    if json_:
        write_json({"files": [overview.to_json(each) for each in found]})
    elif csv:
        overview.write_csv(found, sys.stdout)
        for each in found:
            for line in each.list_notices():
                complain(line)
    else:
        for each in found:
            _show(each, len(files) > 1)
    for error in errors:
        for problem in error.problems:
            complain(str(problem))
    if errors:
        raise typer.Exit(1 if found else 2)


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Ctrl-C ends the program at once, also while it waits for standard input: it leaves nothing
    behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _look_at_all(
    files: Sequence[str], look: Callable[[Path | str], Overview]
) -> tuple[list[Overview], list[InputError]]:
    if files.count(STANDARD_INPUT) > 1:
        raise refuse("- is given twice", "standard input can be read once")
    results = read_in_parallel(look, files)
    found = [each for each in results if isinstance(each, Overview)]
    return found, [each for each in results if isinstance(each, InputError)]


def _choice(hosts: Sequence[str], ports: Sequence[int], sort: str) -> Choice:
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


def _interval(from_: str | None, to: str | None) -> tuple[int | None, int | None]:
    begin, end = _quantity("Duration", "--from", from_), _quantity("Duration", "--to", to)
    if end is not None and end <= (begin or 0):
        raise refuse(
            f"--to {to}: is not after the beginning", "give a later end, or an earlier --from"
        )
    return begin, end


def _quantity(kind: str, option: str, value: str | None) -> int | None:
    """A value of a type of nagi_contracts.units, in base units."""
    if value is None:
        return None
    from nagi_contracts import units

    try:
        return int(getattr(units, kind).parse(value).value)
    except ValueError as error:
        what, _, cure = str(error).partition("; ")
        raise refuse(f"{option}: {what}", cure) from None


def _measure_pair(
    files: Sequence[str],
    sender: Path,
    interval: tuple[int | None, int | None],
    bottleneck_bps: int | None,
    json_: bool,
) -> None:
    if len(files) != 1 or files[0] == STANDARD_INPUT:
        raise refuse("--sender with several captures", "give one FILE, made at the receiver")
    from nagi_reports import connections

    found = connections.measure(
        Path(files[0]),
        sender,
        bottleneck_bps=bottleneck_bps,
        from_ns=interval[0],
        to_ns=interval[1],
    )
    if json_:
        write_json(connections.to_json(found))
        return
    for table in connections.make_tables(found):
        out_console.print(table)
        out_console.print()
    for line in connections.list_notices(found):
        write_line(line)


def _plot(path: Path, found: Overview, connection: int | None, tunnels: bool) -> None:
    from nagi_reports import conversation

    rows = [row for row in found.iterate_rows("tcp") if connection in (None, row["connection"])]
    if not rows:
        raise refuse(
            "there is no TCP connection to draw"
            if connection is None
            else f"--connection {connection}: no TCP connection of that number was found",
            "give a number of the table",
            file=found.name,
        )
    mine = (row for row in rows if row["connection"] == rows[0]["connection"])
    row = max(mine, key=lambda each: int(each["payload_bytes"]))
    conversation.draw(found, row, path, tunnels=tunnels)
    write_line(f"plot: {path}", error_console)


# ------------------------------------------------------------------------------------ for people


def _show(found: Overview, is_named: bool) -> None:
    if is_named:
        write_line(f"{found.name}:")
    is_part = found.totals.start_ns is not None or found.totals.end_ns is not None
    is_any = False
    for protocol, make in (
        ("tcp", _payload_table),
        ("tcp", partial(_packet_table, is_part=is_part)),
        ("tcp", _path_table),
        ("udp", _udp_table),
    ):
        is_any |= _print_rows(found.iterate_rows(protocol), make)
    if found.left_out:
        write_line(f"{found.left_out:,} more connections: --all shows them")
    if not is_any:
        write_line(f"{found.name}: none of its connections was asked for")
    if any(map(_is_of_sender, found.iterate_rows("tcp"))):
        write_line(
            "* captured at the sender: AG is what was sent, not what arrived; give the receiver's "
            "capture for that"
        )
    if is_part:
        first, totals = found.totals.first_ns, found.totals
        begin, end = ((at or first) - first for at in (totals.start_ns, totals.end_ns))
        write_line(
            f"measured: from {begin / 1e9:.6g} s to {end / 1e9:.6g} s after the capture's first "
            "packet; start, handshake and options are of the connection"
        )
    for line in found.list_notices():
        write_line(line)


@dataclass
class _Grid:
    """A table of texts. `from` and `to` are left-aligned, and folded where there is no room."""

    title: str
    heads: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        self.rows.append(cells)

    def as_table(self) -> Table:
        table = Table(
            title=self.title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0)
        )
        for head in self.heads:
            if head in _ENDS:
                table.add_column(head, overflow="fold", min_width=9)
            else:
                table.add_column(head, justify="right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table

    def lines(self) -> Iterator[str]:
        """Yield the table as lines, as wide as its cells are: thirty times as fast as rich."""
        rows = [self.heads, *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        sides = ["<" if head in _ENDS else ">" for head in self.heads]
        for row in rows:
            cells = zip(row, sides, widths, strict=True)
            yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _print_rows(rows: Iterator[Row], make: Callable[[list[Row]], _Grid]) -> bool:
    """Print rows as a table that `make` makes; more than fit in one in parts, each with its own
    heads. Return whether there was one."""
    part = list(islice(rows, _PART))
    if not part:
        return False
    following = list(islice(rows, _PART))
    grid = make(part)
    if not following:
        out_console.print(grid.as_table())
    else:
        write_line(grid.title)
        write_line("\n".join(grid.lines()))
        while following:
            write_line("\n".join(make(following).lines()))
            following = list(islice(rows, _PART))
    out_console.print()
    return True


def _is_of_sender(row: Row) -> bool:
    return row["captured_at"] == "source" and bool(row["first_time_bytes"])


def _label(row: Row) -> str:
    """Return the number of a row's connection; > and < are its directions."""
    return f"{row['connection']}{'<' if row['direction'] else '>'}"


def _ends(row: Row) -> tuple[str, str]:
    return (
        overview.format_endpoint(row["source"], row["source_port"]),
        overview.format_endpoint(row["destination"], row["destination_port"]),
    )


def _number(value: float | None, scale: float = 1.0) -> str:
    return "-" if value is None else f"{value * scale:,.3f}"


def _count(value: int) -> str:
    return f"{value:,}" if value > 0 else "-"


def _payload_table(rows: list[Row]) -> _Grid:
    has_agi = any("agi" in row for row in rows)
    heads = ["#", "from", "to", "start s", "s", "MB", "AG Mb/s"]
    table = _Grid("TCP: achieved goodput", [*heads, *(("AGI", "/ ceiling") if has_agi else ())])
    for row in rows:
        has_payload = row["first_time_bytes"] > 0
        cells = [_number(row["start_s"])]
        for name, scale in (
            ("interval_s", 1),
            ("first_time_bytes_inside", 1e-6),
            ("goodput_bps", 1e-6),
        ):
            cells.append(_number(row[name] if has_payload else None, scale))
        if _is_of_sender(row):
            cells[-1] += "*"
        if has_agi:
            cells += [
                _number(row[name] if has_payload else None) for name in ("agi", "agi_of_ceiling")
            ]
        table.add_row(_label(row), *_ends(row), *cells)
    return table


def _packet_table(rows: list[Row], *, is_part: bool) -> _Grid:
    """`is_part`: what is measured is a part of the capture (--from, --to)."""
    shown = {
        "data": "data_packets_inside",
        "retr.": "retransmitted_packets_inside",
        "reordered": "out_of_order_packets_inside",
    }
    # Of the whole capture, so not beside what is of a part of it.
    if not is_part:
        shown |= {
            "dup. ACKs": "duplicate_acks",
            "SACKs": "sack_blocks",
            "zero win.": "zero_window_packets",
        }
    table = _Grid("Packets", ["#", "all", *shown, "retr. %"])
    for row in rows:
        rate = row["retransmission_rate"]
        counts = [_count(row[name]) for name in shown.values()]
        packets = _count(row["packets_inside"])
        table.add_row(_label(row), packets, *counts, _number(rate or None, 100))
    return table


def _path_table(rows: list[Row]) -> _Grid:
    names = ("min", "median", "p99", "max")
    options = ("MSS", "scale", "captured at")
    table = _Grid("RTT (ms), options of the SYN", ["#", "handshake", *names, *options])
    for row in rows:
        table.add_row(
            _label(row),
            _number(row["handshake_rtt_ns"], 1e-6),
            *(_number(row[f"rtt_{name}_s"], 1e3) for name in names),
            "-" if row["mss"] < 0 else str(row["mss"]),
            "-" if row["window_scale"] < 0 else str(row["window_scale"]),
            row["captured_at"] or "-",
        )
    return table


def _udp_table(rows: list[Row]) -> _Grid:
    table = _Grid("UDP", ["#", "from", "to", "start s", "packets", "MB", "Mb/s"])
    for row in rows:
        table.add_row(
            _label(row),
            *_ends(row),
            _number(row["start_s"]),
            _count(row["packets_inside"]),
            _number(row["payload_bytes_inside"], 1e-6),
            _number(row["goodput_bps"], 1e-6),
        )
    return table
