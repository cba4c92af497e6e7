# SPDX-License-Identifier: Apache-2.0
"""The diagram of nodes and links."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from nagi_reports.figures.axes import (
    WIDTH,
    figure_style,
)


@dataclass(frozen=True)
class DrawnLink:
    """A link in the diagram, with lines of text that describe it."""

    ends: tuple[str, str]  # names of the two nodes
    name: str  # empty for a line from a station to its medium
    lines: tuple[str, ...]


def make_topology_diagram(nodes: Mapping[str, str], links: list[DrawnLink], first: str) -> Figure:
    """Return the diagram of a network, in layers by the number of hops from the node `first`.

    Links have names and descriptions; if labels would overlap, links have only names.

    Args:
        nodes: Kind of each node by name. Shared media are nodes of kind "medium".
        links: The links, and lines from stations to their media.
        first: The node of the first layer.
    """
    positions, layer_count = _arrange_nodes(nodes, links, first)
    max_nodes = max(
        sum(1 for x, _ in positions.values() if x == layer) for layer in range(layer_count)
    )
    with figure_style():
        for has_descriptions in (True, False):
            figure = Figure(figsize=(WIDTH, 0.7 * max_nodes + 0.3))
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            axes.set_axis_off()
            axes.set_xlim(-0.5, max(layer_count, 2) - 0.5)
            axes.set_ylim(-max_nodes / 2 - 0.2, max_nodes / 2 + 0.2)
            labels = _draw_topology(axes, nodes, links, positions, has_descriptions)
            if not has_descriptions or not _has_overlaps(figure, labels):
                break
    return figure


def _arrange_nodes(
    nodes: Mapping[str, str], links: list[DrawnLink], first: str
) -> tuple[dict[str, tuple[float, float]], int]:
    """Return the position (layer, height) of each node, and the number of layers.

    Nodes that cannot be reached from `first` are in the layer of `first`.
    """
    layer = {first: 0}
    reached = [first]
    for node in reached:
        for link in links:
            for one, other in (link.ends, link.ends[::-1]):
                if one == node and other not in layer:
                    layer[other] = layer[node] + 1
                    reached.append(other)
    for node in nodes:
        layer.setdefault(node, 0)
    layer_count = max(layer.values()) + 1
    positions = {}
    for number in range(layer_count):
        layer_nodes = [node for node in (*reached, *nodes) if layer[node] == number]
        layer_nodes = list(dict.fromkeys(layer_nodes))
        for index, node in enumerate(layer_nodes):
            positions[node] = (float(number), (len(layer_nodes) - 1) / 2 - index)
    return positions, layer_count


def _draw_topology(
    axes: Axes,
    nodes: Mapping[str, str],
    links: list[DrawnLink],
    positions: dict[str, tuple[float, float]],
    has_descriptions: bool,
) -> list[Text]:
    """Draw nodes and links, and return the texts that label them."""
    labels = []
    for link in links:
        (x0, y0), (x1, y1) = (positions[end] for end in link.ends)
        axes.plot([x0, x1], [y0, y1], color="black", linewidth=1, zorder=1)
        if not link.name:  # attaches a station to a medium
            continue
        lines = [link.name, *link.lines] if has_descriptions else [link.name]
        labels.append(
            axes.text(
                (x0 + x1) / 2,
                (y0 + y1) / 2,
                "\n".join(lines),
                ha="center",
                va="center",
                fontsize=7.5,
                linespacing=1.35,
                zorder=2,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )
        )
    for node, kind in nodes.items():
        x, y = positions[node]
        shape = "square,pad=0.5" if kind == "host" else "round,pad=0.55"
        labels.append(
            axes.text(
                x,
                y,
                node,
                ha="center",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                zorder=3,
                bbox={
                    "boxstyle": shape,
                    "facecolor": "white",
                    "edgecolor": "black",
                    "linestyle": "--" if kind == "medium" else "-",
                },
            )
        )
    return labels


def _has_overlaps(figure: Figure, labels: list[Text]) -> bool:
    """Return whether two of the labels overlap."""
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    boxes = [label.get_bbox_patch() or label for label in labels]
    for label in labels:
        label.update_bbox_position_size(renderer)
    extents = [box.get_window_extent(renderer) for box in boxes]
    return any(one.overlaps(other) for one, other in itertools.combinations(extents, 2))
