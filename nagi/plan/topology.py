# SPDX-License-Identifier: Apache-2.0
"""Build the graph of an experiment: interfaces with addresses, and paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from nagi_contracts.errors import suggest
from nagi_contracts.media import StationPlan, make_mac_address
from nagi_contracts.plan import ETHERNET_MTU, DirectionName, LinkDirection

from nagi.plan.ip import BY_VERSION
from nagi.plan.planners import find_reach
from nagi.spec.document import Document
from nagi.spec.experiment import Experiment
from nagi.spec.links import Link
from nagi.spec.shared_media import SharedMedium

MAX_LINKS = 250  # limit of links, and of media, because addresses contain their numbers


@dataclass(frozen=True)
class Attachment:
    """A node's interface on a link or medium."""

    link: str  # name of the link or medium
    address: str
    prefix: int  # length of the prefix, in bits


class Topology:
    """The nodes, links and media of `experiment`.

    Raises:
        InputError: If a link, station or route names an unknown node, if an MTU is not supported,
            if a station reaches no other station, or if there are too many links or media.
    """

    def __init__(self, experiment: Experiment, document: Document) -> None:
        self._experiment = experiment
        self._document = document
        self.links: dict[str, Link] = experiment.links
        self.media: dict[str, SharedMedium] = experiment.shared_media
        self.ip = BY_VERSION[experiment.ip_version]
        self._attachments: dict[tuple[str, str], Attachment] = {}
        self._next_hops: dict[str, dict[str, LinkDirection]] = {}
        for key, count in (
            ("links", len(self.links)),
            *((key, len(self.media)) for key, media in experiment.sections.items() if media),
        ):
            if count > MAX_LINKS:
                message = f"{count} {key}"
                raise document.error((key,), message, f"give at most {MAX_LINKS}")
        for index, (name, link) in enumerate(self.links.items()):
            self._attach_link(index, name, link)
        for index, (name, medium) in enumerate(self.media.items()):
            self._attach_medium(index, name, medium)
        self._reach = {name: find_reach(medium) for name, medium in self.media.items()}
        self._stations = {node for medium in self.media.values() for node in medium.stations}
        for name, medium in self.media.items():
            self._check_reach(name, medium)
            self._check_routes(name, medium)
        self._hops = {node: list(self._list_adjacent_hops(node)) for node in experiment.nodes}

    def get_attachment(self, link: str, node: str) -> Attachment:
        """Return the interface of `node` on a link or medium."""
        return self._attachments[link, node]

    def plan_stations(self, medium: str) -> list[StationPlan]:
        """Return the plans of a medium's stations, in the order of the file.

        Their MAC addresses contain the number of the medium. Media are numbered after all links.
        """
        number = len(self.links) + list(self.media).index(medium)
        plans = []
        for index, (node, station) in enumerate(self.media[medium].stations.items()):
            attachment = self._attachments[medium, node]
            plans.append(
                StationPlan(
                    node=node,
                    address=f"{attachment.address}/{attachment.prefix}",
                    mac=make_mac_address(number, index),
                    position_m=(station.at[0].value, station.at[1].value) if station.at else None,
                    trace=[
                        (instant.value, x.value, y.value)
                        for instant, (x, y) in station.trace.items()
                    ],
                )
            )
        return plans

    def can_forward(self, node: str) -> bool:
        """Return whether `node` forwards packets, as routers, switches and stations do."""
        return self._experiment.get_kind(node) != "host" or self.is_station(node)

    def is_station(self, node: str) -> bool:
        """Return whether `node` is a station of a medium."""
        return node in self._stations

    def list_media(self, node: str) -> list[str]:
        """Return the media on which `node` is a station."""
        return [name for name, medium in self.media.items() if node in medium.stations]

    def find_receiving_node(self, direction: LinkDirection) -> str:
        """Return the receiving node of a direction of a link, or of a hop over a medium."""
        if direction.receiver is not None:
            return direction.receiver
        return self.links[direction.link].between[1 if direction.direction == "forward" else 0]

    def get_direction(self, link: str, from_node: str) -> DirectionName:
        """Return the direction of a link into which `from_node` sends."""
        return "forward" if self.links[link].between[0] == from_node else "backward"

    def find_next_hop(self, node: str, target: str) -> LinkDirection | None:
        """Return the hop over which `node` sends packets for `target`; None if there is no path.

        A route of the experiment file has priority. Without such a route, this is the first hop of
        the path with the fewest hops. If several paths have equally many hops, the first hop over
        the link or to the station that is first in the file is used.
        """
        if target not in self._next_hops:
            self._next_hops[target] = self._find_next_hops(target)
        return self._next_hops[target].get(node)

    def find_path(self, origin: str, target: str) -> list[LinkDirection] | None:
        """Return the hops from `origin` to `target`, or None if there is no path.

        Raises:
            InputError: If routes of the experiment file form a loop.
        """
        hops: list[LinkDirection] = []
        node, visited = origin, [origin]
        while node != target:
            hop = self.find_next_hop(node, target)
            if hop is None:
                return None
            hops.append(hop)
            node = self.find_receiving_node(hop)
            if node in visited:
                self._refuse_loop(target, [*visited[visited.index(node) :], node])
            visited.append(node)
        return hops

    def _attach_link(self, index: int, name: str, link: Link) -> None:
        """Give both ends of a link an address; check the link's nodes and MTU."""
        first, second = link.between
        if link.mtu is not None and not self.ip.min_mtu <= link.mtu.value <= ETHERNET_MTU:
            raise self._document.error(
                ("links", name, "mtu"),
                f"hosts and emulator do not support an MTU of {link.mtu}",
                f"give {self.ip.min_mtu} to {ETHERNET_MTU} bytes",
            )
        for index_in_link, node in enumerate(link.between):
            if node not in self._experiment.nodes:
                raise self._document.error(
                    ("links", name, "between", index_in_link),
                    f"there is no node {node}",
                    suggest(node, self._experiment.nodes, "nodes"),
                )
            address = self.ip.format_link_address(index, index_in_link + 1)
            self._attachments[name, node] = Attachment(name, address, self.ip.link_prefix)
        if first == second:
            raise self._document.error(
                ("links", name, "between"),
                f"the link joins {first} to itself",
                "name two nodes",
            )

    def _attach_medium(self, index: int, name: str, medium: SharedMedium) -> None:
        """Give each station of a medium an address; check that stations are hosts or routers."""
        valid_nodes = self._experiment.list_nodes("host", "router")
        for number, node in enumerate(medium.stations, start=1):
            if node not in valid_nodes:
                is_switch = node in self._experiment.nodes
                raise self._document.error(
                    (*self._experiment.locate_medium(name), "stations", node),
                    f"{node} is a switch, which has no radio"
                    if is_switch
                    else f"there is no node {node}",
                    suggest(node, valid_nodes, "hosts and routers"),
                )
            address = self.ip.format_medium_address(index, number)
            self._attachments[name, node] = Attachment(name, address, self.ip.medium_prefix)

    def _check_reach(self, name: str, medium: SharedMedium) -> None:
        """Check that each station is in reach of another station at some time."""
        for node, station in medium.stations.items():
            if not self._reach[name].is_ever_in_reach(node):
                raise self._document.error(
                    (*self._experiment.locate_medium(name), "stations", node),
                    f"{node} is out of reach of all other stations",
                    "give it another position, or `reach` longer ranges"
                    if station.at is not None
                    else f"name it under `decodes`, or remove {node}",
                )

    def _check_routes(self, name: str, medium: SharedMedium) -> None:
        """Check that the routes of a medium lead to known nodes over stations in reach."""
        for node, routes in medium.routes.items():
            key_path = (*self._experiment.locate_medium(name), "routes", node)
            if node not in medium.stations:
                message = f"there is no station {node}"
                raise self._document.error(
                    key_path, message, suggest(node, medium.stations, "stations")
                )
            for target, via in routes.items():
                if target not in self._experiment.nodes:
                    message = f"there is no node {target}"
                    cure = suggest(target, self._experiment.nodes, "nodes")
                    raise self._document.error((*key_path, target), message, cure)
                if target == node:
                    message = f"a route of {node} to itself"
                    raise self._document.error((*key_path, target), message, "remove it")
                neighbours = self._reach[name].list_neighbours(node)
                if via not in neighbours:
                    is_station = via in medium.stations
                    message = (
                        f"{via} is not in reach of {node}" if is_station else f"no station {via}"
                    )
                    cure = suggest(via, neighbours, f"in reach of {node}")
                    raise self._document.error((*key_path, target), message, cure)

    def _list_adjacent_hops(self, node: str) -> Iterator[LinkDirection]:
        """Yield the hops from `node` to its neighbours: first over links, then over media."""
        for name, link in self.links.items():
            if node in link.between:
                yield LinkDirection(link=name, direction=self.get_direction(name, node))
        for name in self.list_media(node):
            for neighbour in self._reach[name].list_neighbours(node):
                yield _make_hop(name, node, neighbour)

    def _find_next_hops(self, target: str) -> dict[str, LinkDirection]:
        """Return node -> next hop to `target`, for all nodes with a path to `target`.

        Routes of the experiment file replace the first hops of shortest paths.
        """
        distance = {target: 0}
        queue = deque([target])
        while queue:
            node = queue.popleft()
            if node != target and not self.can_forward(node):
                continue
            for hop in self._hops[node]:  # hops are symmetric: neighbours reach each other
                neighbour = self.find_receiving_node(hop)
                if neighbour not in distance:
                    distance[neighbour] = distance[node] + 1
                    queue.append(neighbour)
        next_hops: dict[str, LinkDirection] = {}
        for node, hops in self._hops.items():
            if node not in distance or node == target:
                continue
            next_hops[node] = next(
                hop
                for hop in hops
                for neighbour in [self.find_receiving_node(hop)]
                if distance.get(neighbour) == distance[node] - 1
                and (neighbour == target or self.can_forward(neighbour))
            )
        for name, medium in self.media.items():
            for node, routes in medium.routes.items():
                if target in routes:
                    next_hops[node] = _make_hop(name, node, routes[target])
        return next_hops

    def _refuse_loop(self, target: str, loop: list[str]) -> None:
        """Raise InputError with the line of a route that is part of `loop`, a list of nodes."""
        for name, medium in self.media.items():
            for node in loop:
                if target in medium.routes.get(node, {}):
                    raise self._document.error(
                        (*self._experiment.locate_medium(name), "routes", node, target),
                        f"routes to {target} loop: {' - '.join(loop)}",
                        "give another next hop",
                    )
        raise AssertionError("shortest paths do not loop")


def _make_hop(medium: str, sender: str, receiver: str) -> LinkDirection:
    return LinkDirection(link=medium, direction="forward", sender=sender, receiver=receiver)
