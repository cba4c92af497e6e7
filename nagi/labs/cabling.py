# SPDX-License-Identifier: Apache-2.0
"""Draws the cables of an inventory's cells: which interface is connected to which."""

from __future__ import annotations

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from nagi.labs.cells import Cell, LabHost
from nagi.labs.shape import EMULATOR

_WIDTH_IN, _ROW_IN = 7.0, 0.55  # of the figure, and of one cable
_SIDES_X = (1.0, 9.0)  # of hosts; the emulator is at 5
_CENTRE_X = 5.0
_HALF_BOX, _MARGIN = 0.75, 0.06  # half the width of a box, and the space above and below it


def draw_cabling(cells: list[Cell], path: Path) -> None:
    """Draw the cells below each other, and write the picture in the format of the path's suffix.

    Args:
        cells: The cells of an inventory.
        path: The path of the picture, such as lab.svg.

    Raises:
        ValueError: Matplotlib does not know the format.
        OSError: The file cannot be written.
    """
    rows = [_count_rows(cell) for cell in cells]
    figure = Figure(figsize=(_WIDTH_IN, _ROW_IN * sum(rows) + 0.6 * len(cells)), layout="tight")
    all_axes = figure.subplots(len(cells), squeeze=False, height_ratios=rows)
    for cell, (axes,) in zip(cells, all_axes, strict=True):
        _draw_cell(axes, cell)
    with matplotlib.rc_context({"svg.hashsalt": "nagi"}):  # equal pictures give equal files
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _count_rows(cell: Cell) -> int:
    """Return the height of a cell, in cables: that of the side with more cables, but at least 2."""
    cables = [_count_cables(host) for host in _list_nodes(cell)]
    return max(2, sum(cables[::2]), sum(cables[1::2]))


def _count_cables(host: LabHost) -> int:
    """Return the height of a host's box, in cables. A host without cables has a box, too."""
    return max(1, len(host.links))


def _list_nodes(cell: Cell) -> list[LabHost]:
    return [host for node, host in cell.hosts.items() if node != EMULATOR]


def _draw_cell(axes: Axes, cell: Cell) -> None:
    """Draw one cell: hosts at the left and right, the emulator in the middle."""
    emulator = cell.hosts[EMULATOR]
    height = _count_rows(cell)
    axes.set(xlim=(0, 10), ylim=(0, height))
    axes.set_axis_off()
    axes.set_title(cell.name, loc="left", fontsize=10, fontweight="bold", parse_math=False)
    _draw_box(axes, _CENTRE_X, (0.0, height), f"{emulator.name}\nemulator")
    nodes = _list_nodes(cell)
    for side, x in enumerate(_SIDES_X):
        hosts = nodes[side::2]
        top = height / 2 + sum(_count_cables(host) for host in hosts) / 2
        for host in hosts:
            bottom = top - _count_cables(host)
            _draw_box(axes, x, (bottom, top), f"{host.name}\nnode {host.node}")
            for number, (link, interface) in enumerate(host.links.items()):
                port = emulator.ports.get(link, {}).get(host.node, "?")
                _draw_cable(axes, x, top - number - 0.5, (interface, link, port))
            top = bottom


def _draw_box(axes: Axes, x: float, ends: tuple[float, float], label: str) -> None:
    """Draw the box of a host around `x`, between two values of y."""
    bottom, top = ends
    corner = (x - _HALF_BOX, bottom + _MARGIN)
    axes.add_patch(
        Rectangle(corner, 2 * _HALF_BOX, top - bottom - 2 * _MARGIN, facecolor="white",
                  edgecolor="0.2", zorder=2)
    )  # fmt: skip
    axes.text(
        x,
        (bottom + top) / 2,
        label,
        ha="center",
        va="center",
        fontsize=9,
        zorder=3,
        parse_math=False,
    )


def _draw_cable(axes: Axes, x: float, y: float, labels: tuple[str, str, str]) -> None:
    """Draw a cable with its labels.

    Args:
        axes: The axes, with x from 0 to 10, and y in cables.
        x: The middle of the host's box.
        y: The height of the cable.
        labels: The interface of the host, the link, and the interface of the emulator.
    """
    axes.plot((x, _CENTRE_X), (y, y), color="0.35", linewidth=1.2, zorder=1)
    inside = 1 if x < _CENTRE_X else -1
    begin, end = x + inside * (_HALF_BOX + 0.1), _CENTRE_X - inside * (_HALF_BOX + 0.1)
    near, far = ("left", "right") if inside == 1 else ("right", "left")
    for position, label, alignment in zip(
        (begin, (begin + end) / 2, end), labels, (near, "center", far), strict=True
    ):
        axes.text(
            position, y, label, ha=alignment, va="center", fontsize=8, zorder=2, parse_math=False,
            style="italic" if alignment == "center" else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
