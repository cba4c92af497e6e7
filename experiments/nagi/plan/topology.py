# SPDX-License-Identifier: Apache-2.0
"""The graph of an experiment: addresses and paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from nagi_contracts.errors import choices
from nagi_contracts.media import StationPlan, make_mac_address
from nagi_contracts.plan import ETHERNET_MTU, DirectionName, LinkDirection

from nagi.plan.ip import OF_VERSION
from nagi.plan.reach import Reach
from nagi.spec.document import Document
from nagi.spec.experiment import Experiment
from nagi.spec.links import Link
from nagi.spec.media import Medium

MAX_LINKS = 250  # and media: their numbers are parts of addresses


@dataclass(frozen=True)
class Attachment:
    """A node's interface on a link or medium."""

    link: str
    address: str
    prefix: int


class Topology:
    """The nodes, links and media of `experiment`. Raises InputError where they do not fit
    together."""

    def __init__(self, experiment: Experiment, document: Document) -> None:
        self._experiment = experiment
        self._document = document
        self.links: dict[str, Link] = experiment.links
        self.media: dict[str, Medium] = experiment.media
        self.ip = OF_VERSION[experiment.ip_version]
        self._ends: dict[tuple[str, str], Attachment] = {}
        self._next_hops: dict[str, dict[str, LinkDirection]] = {}
        for key, entries in (("links", self.links), ("media", self.media)):
            if len(entries) > MAX_LINKS:
                what = f"{len(entries)} {key}"
                raise document.error((key,), what, f"give at most {MAX_LINKS}")
        for index, (name, link) in enumerate(self.links.items()):
            self._attach_link(index, name, link)
        for index, (name, medium) in enumerate(self.media.items()):
            self._attach_medium(index, name, medium)
        self._reach = {name: Reach(medium) for name, medium in self.media.items()}
        self._attached = {node for medium in self.media.values() for node in medium.stations}
        for name, medium in self.media.items():
            self._check_reach(name, medium)
            self._check_routes(name, medium)
        self._hops = {node: list(self._hops_of(node)) for node in experiment.nodes}

    def attachment(self, link: str, node: str) -> Attachment:
        return self._ends[link, node]

    def links_of(self, node: str) -> list[str]:
        """The links and media that `node` has an interface on."""
        return [link for link, each in self._ends if each == node]

    def stations(self, medium: str) -> list[StationPlan]:
        """The stations of a medium, whose number among links and media is behind all links'."""
        number = len(self.links) + list(self.media).index(medium)
        found = []
        for index, (node, station) in enumerate(self.media[medium].stations.items()):
            end = self._ends[medium, node]
            found.append(
                StationPlan(
                    node=node,
                    address=f"{end.address}/{end.prefix}",
                    mac=make_mac_address(number, index),
                    position_m=(station.at[0].value, station.at[1].value) if station.at else None,
                    trace=[(at.value, x.value, y.value) for at, (x, y) in station.trace.items()],
                )
            )
        return found

    def forwards(self, node: str) -> bool:
        """Whether it passes packets on: routers and switches do, and whoever is on a medium."""
        return self._experiment.kind(node) != "host" or self.is_attached(node)

    def is_attached(self, node: str) -> bool:
        """Whether it is on a medium."""
        return node in self._attached

    def media_of(self, node: str) -> list[str]:
        """The media that it is on."""
        return [name for name, medium in self.media.items() if node in medium.stations]

    def far_end(self, link: str, node: str) -> str:
        first, second = self.links[link].between
        return second if node == first else first

    def leads_to(self, direction: LinkDirection) -> str:
        """The node at which packets leave a direction of a link or medium."""
        if direction.receiver is not None:
            return direction.receiver
        return self.links[direction.link].between[1 if direction.direction == "forward" else 0]

    def direction(self, link: str, from_node: str) -> DirectionName:
        return "forward" if self.links[link].between[0] == from_node else "backward"

    def next_hop(self, node: str, target: str) -> LinkDirection | None:
        """By what `node` reaches `target`: the route that is given, or the first hop of the
        shortest path (fewest hops, then first in the file); None: there is no path."""
        if target not in self._next_hops:
            self._next_hops[target] = self._hops_to(target)
        return self._next_hops[target].get(node)

    def route(self, origin: str, target: str) -> list[LinkDirection] | None:
        """The hops from `origin` to `target`; None if there is no path. Raises InputError where
        given routes loop."""
        hops: list[LinkDirection] = []
        node, seen = origin, [origin]
        while node != target:
            hop = self.next_hop(node, target)
            if hop is None:
                return None
            hops.append(hop)
            node = self.leads_to(hop)
            if node in seen:
                self._refuse_loop(target, [*seen[seen.index(node) :], node])
            seen.append(node)
        return hops

    def _attach_link(self, index: int, name: str, link: Link) -> None:
        first, second = link.between
        if link.mtu is not None and not self.ip.min_mtu <= link.mtu.value <= ETHERNET_MTU:
            raise self._document.error(
                ("links", name, "mtu"),
                f"an MTU of {link.mtu} is none that hosts and emulator take",
                f"give {self.ip.min_mtu} to {ETHERNET_MTU} bytes",
            )
        for position, node in enumerate(link.between):
            if node not in self._experiment.nodes:
                raise self._document.error(
                    ("links", name, "between", position),
                    f"there is no node {node}",
                    choices(node, self._experiment.nodes, "nodes"),
                )
            address = self.ip.link_address(index, position + 1)
            self._ends[name, node] = Attachment(name, address, self.ip.link_prefix)
        if first == second:
            raise self._document.error(
                ("links", name, "between"),
                f"the link joins {first} to itself",
                "name two nodes",
            )

    def _attach_medium(self, index: int, name: str, medium: Medium) -> None:
        possible = self._experiment.nodes_of("host", "router")
        for position, node in enumerate(medium.stations):
            if node not in possible:
                is_switch = node in self._experiment.nodes
                raise self._document.error(
                    ("media", name, "stations", node),
                    f"{node} is a switch, which has no radio"
                    if is_switch
                    else f"there is no node {node}",
                    choices(node, possible, "hosts and routers"),
                )
            address = self.ip.medium_address(index, position + 1)
            self._ends[name, node] = Attachment(name, address, self.ip.medium_prefix)

    def _check_reach(self, name: str, medium: Medium) -> None:
        for node in medium.stations:
            if not self._reach[name].is_ever_heard(node):
                raise self._document.error(
                    ("media", name, "stations", node),
                    f"{node} is out of reach of all other stations",
                    "give it another position, or `reach` longer ranges"
                    if medium.reach.by != "matrix"
                    else f"name it under `decodes`, or remove {node}",
                )

    def _check_routes(self, name: str, medium: Medium) -> None:
        for node, routes in medium.routes.items():
            place = ("media", name, "routes", node)
            if node not in medium.stations:
                what = f"there is no station {node}"
                raise self._document.error(place, what, choices(node, medium.stations, "stations"))
            for target, via in routes.items():
                if target not in self._experiment.nodes:
                    what = f"there is no node {target}"
                    cure = choices(target, self._experiment.nodes, "nodes")
                    raise self._document.error((*place, target), what, cure)
                if target == node:
                    what = f"a route of {node} to itself"
                    raise self._document.error((*place, target), what, "remove it")
                near = self._reach[name].neighbours(node)
                if via not in near:
                    known = via in medium.stations
                    what = f"{via} is not in reach of {node}" if known else f"no station {via}"
                    cure = choices(via, near, f"in reach of {node}")
                    raise self._document.error((*place, target), what, cure)

    def _hops_of(self, node: str) -> Iterator[LinkDirection]:
        """What leads from `node` to its neighbours: links as the file has them, then media."""
        for name, link in self.links.items():
            if node in link.between:
                yield LinkDirection(link=name, direction=self.direction(name, node))
        for name in self.media_of(node):
            for neighbour in self._reach[name].neighbours(node):
                yield _over(name, node, neighbour)

    def _hops_to(self, target: str) -> dict[str, LinkDirection]:
        """Node -> by what it reaches `target`."""
        distance = {target: 0}
        waiting = deque([target])
        while waiting:
            node = waiting.popleft()
            if node != target and not self.forwards(node):
                continue
            for hop in self._hops[node]:  # whoever reaches a neighbour is reached by it
                neighbour = self.leads_to(hop)
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    waiting.append(neighbour)
        found: dict[str, LinkDirection] = {}
        for node, hops in self._hops.items():
            if node not in distance or node == target:
                continue
            found[node] = next(
                hop
                for hop in hops
                for neighbour in [self.leads_to(hop)]
                if distance.get(neighbour) == distance[node] - 1
                and (neighbour == target or self.forwards(neighbour))
            )
        for name, medium in self.media.items():
            for node, routes in medium.routes.items():
                if target in routes:
                    found[node] = _over(name, node, routes[target])
        return found

    def _refuse_loop(self, target: str, loop: list[str]) -> None:
        for name, medium in self.media.items():
            for node in loop:
                if target in medium.routes.get(node, {}):
                    raise self._document.error(
                        ("media", name, "routes", node, target),
                        f"routes to {target} loop: {' - '.join(loop)}",
                        "give another next hop",
                    )
        raise AssertionError("shortest paths do not loop")


def _over(medium: str, sender: str, receiver: str) -> LinkDirection:
    return LinkDirection(link=medium, direction="forward", sender=sender, receiver=receiver)
