# SPDX-License-Identifier: Apache-2.0
"""Compute which stations of a medium receive each other's frames."""

from __future__ import annotations

from nagi_contracts.media import MatrixReach, Position, distance_squared

from nagi.backends.medium.spec import Medium
from nagi.spec.shared_media import Station

_START_NS = -1  # the start of a run: before the first instant of any station's trace


class Reach:
    """The reception of frames between the stations of a medium, without collisions."""

    def __init__(self, medium: Medium) -> None:
        self._names = list(medium.stations)
        self._stations = medium.stations
        self._plan = medium.reach.to_plan(self._names)
        self._index = {name: index for index, name in enumerate(self._names)}
        self._at_start = {
            name: _find_position(station, _START_NS) for name, station in medium.stations.items()
        }
        self._neighbours: dict[str, list[str]] = {}

    def list_neighbours(self, node: str) -> list[str]:
        """Return the stations that exchange frames with `node` at the start of a run.

        These stations decode frames of `node`, and `node` decodes their frames. The result is
        in the order of the medium's stations.
        """
        if node not in self._neighbours:
            self._neighbours[node] = [
                other
                for other in self._names
                if self._decodes(node, other, self._at_start)
                and self._decodes(other, node, self._at_start)
            ]
        return self._neighbours[node]

    def is_ever_in_reach(self, node: str) -> bool:
        """Return whether at any time `node` decodes another station's frames, or vice versa."""
        if self._has_neighbour(node, self._at_start):
            return True
        move_times_ns = {
            instant.value for station in self._stations.values() for instant in station.trace
        }
        return any(
            self._has_neighbour(
                node,
                {
                    name: _find_position(station, instant_ns)
                    for name, station in self._stations.items()
                },
            )
            for instant_ns in sorted(move_times_ns)
        )

    def _has_neighbour(self, node: str, positions: dict[str, Position]) -> bool:
        """Return whether `node` decodes frames of any station, or any station frames of `node`."""
        return any(
            self._decodes(node, other, positions) or self._decodes(other, node, positions)
            for other in self._names
        )

    def _decodes(self, sender: str, receiver: str, positions: dict[str, Position]) -> bool:
        """Return whether `receiver` decodes frames of `sender`, if there are no collisions.

        Args:
            sender: The sending station.
            receiver: The receiving station.
            positions: Station -> its position. Not used if reach is given as a matrix.
        """
        if isinstance(self._plan, MatrixReach):
            return self._plan.decodes[self._index[sender]][self._index[receiver]]
        return sender != receiver and self._plan.decodes(
            distance_squared(positions[sender], positions[receiver])
        )


def _find_position(station: Station, instant_ns: int) -> Position:
    """Return the position of a station at an instant, as (x, y) in m; (0, 0) without a position."""
    position = station.at
    for start, new_position in station.trace.items():
        if start.value <= instant_ns:
            position = new_position
    return (0.0, 0.0) if position is None else (position[0].value, position[1].value)
