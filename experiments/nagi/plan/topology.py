# SPDX-License-Identifier: Apache-2.0
"""The graph of an experiment: addresses and paths."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nagi_contracts.errors import choices
from nagi_contracts.plan import DirectionName, LinkDirection

from nagi.spec.document import Document
from nagi.spec.experiment import Experiment
from nagi.spec.links import Link


@dataclass(frozen=True)
class Attachment:
    """A node's end of a link."""

    link: str
    address: str
    prefix: int = 30


class Topology:
    """The nodes and links of `experiment`. Raises InputError where they do not fit together."""

    def __init__(self, experiment: Experiment, document: Document) -> None:
        self._experiment = experiment
        self._document = document
        self.links: dict[str, Link] = experiment.links
        self._ends: dict[tuple[str, str], Attachment] = {}
        if len(self.links) > 250:
            what = f"{len(self.links)} links"
            raise document.error(("links",), what, "give at most 250")
        for index, (name, link) in enumerate(self.links.items()):
            first, second = link.between
            for position, node in enumerate(link.between):
                if node not in experiment.nodes:
                    raise document.error(
                        ("links", name, "between", position),
                        f"there is no node {node}",
                        choices(node, experiment.nodes, "nodes"),
                    )
                # 198.18.0.0/15 is set aside for measurements like ours (RFC 2544).
                self._ends[name, node] = Attachment(name, f"198.18.{index}.{position + 1}")
            if first == second:
                raise document.error(
                    ("links", name, "between"),
                    f"the link joins {first} to itself",
                    "name two nodes",
                )

    def attachment(self, link: str, node: str) -> Attachment:
        return self._ends[link, node]

    def far_end(self, link: str, node: str) -> str:
        first, second = self.links[link].between
        return second if node == first else first

    def direction(self, link: str, from_node: str) -> DirectionName:
        return "forward" if self.links[link].between[0] == from_node else "backward"

    def path(self, origin: str, target: str) -> list[str] | None:
        """The links of the shortest path (fewest links, then first in the file); None if there is
        none. Only routers and switches pass packets on."""
        came_by: dict[str, str] = {}
        waiting = deque([origin])
        while waiting:
            node = waiting.popleft()
            if node == target:
                break
            if node != origin and self._experiment.nodes[node] == "host":
                continue
            for name, link in self.links.items():
                if node in link.between:
                    neighbour = self.far_end(name, node)
                    if neighbour != origin and neighbour not in came_by:
                        came_by[neighbour] = name
                        waiting.append(neighbour)
        if target not in came_by:
            return None
        path: list[str] = []
        node = target
        while node != origin:
            path.append(came_by[node])
            node = self.far_end(came_by[node], node)
        return path[::-1]

    def route(self, origin: str, target: str) -> list[LinkDirection] | None:
        """The hops of the path; None if there is none."""
        path = self.path(origin, target)
        return None if path is None else self.directions(origin, path)

    def directions(self, origin: str, path: list[str]) -> list[LinkDirection]:
        directions = []
        node = origin
        for link in path:
            directions.append(LinkDirection(link=link, direction=self.direction(link, node)))
            node = self.far_end(link, node)
        return directions
