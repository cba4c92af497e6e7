# SPDX-License-Identifier: Apache-2.0
"""Who hears whom on a medium, by the positions at the start."""

from __future__ import annotations

from nagi_contracts.media import MatrixReach, Position, distance_squared

from nagi.spec.media import Medium, Station


class Reach:
    """Which stations of `medium` decode each other's frames."""

    def __init__(self, medium: Medium) -> None:
        self._names = list(medium.stations)
        self._stations = medium.stations
        self._plan = medium.reach.plan(self._names)
        self._index = {name: index for index, name in enumerate(self._names)}
        self._at_start = {name: _at(each, -1) for name, each in medium.stations.items()}
        self._neighbours: dict[str, list[str]] = {}

    def neighbours(self, node: str) -> list[str]:
        """Stations with which `node` can exchange frames: it decodes theirs, and they its. In the
        order of the stations."""
        if node not in self._neighbours:
            self._neighbours[node] = [
                other
                for other in self._names
                if self._decodes(node, other, self._at_start)
                and self._decodes(other, node, self._at_start)
            ]
        return self._neighbours[node]

    def is_ever_heard(self, node: str) -> bool:
        """Whether it hears another or is heard by one, at the start or as stations move."""
        if self._hears_or_is_heard(node, self._at_start):
            return True
        moves = {at.value for each in self._stations.values() for at in each.trace}
        return any(
            self._hears_or_is_heard(
                node, {name: _at(each, at_ns) for name, each in self._stations.items()}
            )
            for at_ns in sorted(moves)
        )

    def _hears_or_is_heard(self, node: str, positions: dict[str, Position]) -> bool:
        return any(
            self._decodes(node, other, positions) or self._decodes(other, node, positions)
            for other in self._names
        )

    def _decodes(self, sender: str, receiver: str, positions: dict[str, Position]) -> bool:
        if isinstance(self._plan, MatrixReach):
            return self._plan.decodes[self._index[sender]][self._index[receiver]]
        return sender != receiver and self._plan.decodes(
            distance_squared(positions[sender], positions[receiver])
        )


def _at(station: Station, at_ns: int) -> Position:
    """Where a station is at an instant; -1: at the start."""
    found = station.at
    for start, place in station.trace.items():
        if start.value <= at_ns:
            found = place
    return (0.0, 0.0) if found is None else (found[0].value, found[1].value)
