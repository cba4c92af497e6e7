# SPDX-License-Identifier: Apache-2.0
"""The content of a report: sections that consist of blocks, without layout.

chapters/ composes the content from a campaign. report.py writes it as PDF (report.typ) and as HTML
(report.html.jinja).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from nagi_reports.formula import Formula

Align = Literal["left", "right"]


@dataclass(frozen=True)
class Paragraph:
    text: str
    kind: str = field(default="paragraph", init=False)


@dataclass(frozen=True)
class Bullets:
    items: list[str]
    kind: str = field(default="bullets", init=False)


@dataclass(frozen=True)
class Facts:
    """A list of names, each with its description."""

    items: list[tuple[str, str]]
    kind: str = field(default="facts", init=False)


@dataclass(frozen=True)
class Column:
    head: str
    align: Align = "left"
    weight: int = 0  # share of the remaining width; 0 makes the column as wide as its content
    mono: bool = False  # whether the font is monospaced


@dataclass(frozen=True)
class Table:
    caption: str
    columns: list[Column]
    rows: list[list[str]]  # the lines of a cell are separated by "\n"
    small: bool = False  # whether the font is smaller
    strong_first: bool = True  # whether the first cell of a row is the row's heading
    last_apart: bool = False  # whether a line separates the last row from the others
    ruled: bool = False  # whether lines separate all rows, because rows have several lines of text
    kind: str = field(default="table", init=False)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns: {row}")


@dataclass(frozen=True)
class Figure:
    name: str  # of the figure's file; unique within the report
    svg: str
    caption: str
    alt: str  # description for readers who do not see the figure
    floats: bool = False  # whether following text may come before the figure, to fill a page
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True)
class Definition:
    term: str
    formula: Formula | None
    words: str
    kind: str = field(default="definition", init=False)


@dataclass(frozen=True)
class Commands:
    """Command lines for a shell."""

    lines: list[str]
    kind: str = field(default="commands", init=False)


Block = Paragraph | Bullets | Facts | Table | Figure | Definition | Commands


@dataclass(frozen=True)
class Section:
    name: str  # anchor of the section within the document
    title: str
    blocks: list[Block]


@dataclass(frozen=True)
class Report:
    title: str
    reference: str
    footer: str
    created_s: int  # Unix time of the last run, so that the same runs give the same bytes
    sections: list[Section]

    def iterate_figures(self) -> Iterator[Figure]:
        """Yield the figures of all sections."""
        for section in self.sections:
            for block in section.blocks:
                if isinstance(block, Figure):
                    yield block
