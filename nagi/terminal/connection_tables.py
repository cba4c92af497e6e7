# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of `nagi metrics`: one row per direction of a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from nagi_reports import overview
from nagi_reports.overview import Row
from rich.table import Table

from nagi.terminal.console import out_console, write_line

_ROWS_PER_PART = 400  # longer tables are printed in parts, each with its own widths of columns
_ENDPOINT_HEADS = ("from", "to")


@dataclass
class TextTable:
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


def print_rows(rows: Iterator[Row], make_table: Callable[[list[Row]], TextTable]) -> bool:
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


def is_captured_at_sender(row: Row) -> bool:
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


def make_payload_table(rows: list[Row]) -> TextTable:
    """Make the table of payload and achieved goodput (AG).

    A `*` marks an AG that was measured at the sender. Columns for the achieved goodput index (AGI)
    exist only if a row has it.
    """
    has_agi = any("agi" in row for row in rows)
    heads = ["#", "from", "to", "start s", "s", "MB", "AG Mb/s"]
    table = TextTable("TCP: achieved goodput", [*heads, *(("AGI", "/ ceiling") if has_agi else ())])
    for row in rows:
        has_payload = row["first_time_bytes"] > 0
        cells = [_format_number(row["start_s"])]
        for name, scale in (
            ("interval_s", 1),
            ("first_time_bytes_inside", 1e-6),
            ("goodput_bps", 1e-6),
        ):
            cells.append(_format_number(row[name] if has_payload else None, scale))
        if is_captured_at_sender(row):
            cells[-1] += "*"
        if has_agi:
            cells += [
                _format_number(row[name] if has_payload else None)
                for name in ("agi", "agi_of_ceiling")
            ]
        table.add_row(_format_label(row), *_format_endpoints(row), *cells)
    return table


def make_packet_table(rows: list[Row], *, has_interval: bool) -> TextTable:
    """Make the table of packets.

    `has_interval` says whether only an interval of the capture is measured (--from, --to). Then
    columns that count the whole capture, such as duplicate ACKs, are left out.
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
    table = TextTable("Packets", ["#", "all", *columns, "retr. %"])
    for row in rows:
        rate = row["retransmission_rate"]
        counts = [_format_count(row[name]) for name in columns.values()]
        packets = _format_count(row["packets_inside"])
        table.add_row(_format_label(row), packets, *counts, _format_number(rate or None, 100))
    return table


def make_path_table(rows: list[Row]) -> TextTable:
    """Make the table of RTTs and options of the SYN, with the place of the capture on the path."""
    names = ("min", "median", "p99", "max")
    options = ("MSS", "scale", "captured at")
    table = TextTable("RTT (ms), options of the SYN", ["#", "handshake", *names, *options])
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


def make_udp_table(rows: list[Row]) -> TextTable:
    """Make the table of UDP connections."""
    table = TextTable("UDP", ["#", "from", "to", "start s", "packets", "MB", "Mb/s"])
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
