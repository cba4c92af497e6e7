# SPDX-License-Identifier: Apache-2.0
"""The shape of a plan: the nodes, links, media and addresses that a lab must make.

Runs of one shape can share a lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nagi_contracts.media import StationPlan, make_mac_address
from nagi_contracts.plan import LinkEnd, RunPlan

EMULATOR = "emulator"
_MAX_NAME = 15  # characters of an interface's name


@dataclass(frozen=True)
class Neighbour:
    """An interface that another interface reaches over its link or medium."""

    node: str
    address: str
    mac: str


@dataclass(frozen=True)
class Interface:
    """A node's interface on a link or medium, with all other interfaces there."""

    link: str
    node: str
    address: str
    mac: str
    neighbours: tuple[Neighbour, ...]
    mtu: int | None = None  # None leaves the MTU unchanged


@dataclass(frozen=True)
class Shape:
    """Nodes, links and media, without what differs between runs.

    `links` are the links and then the media, each with name, number, nodes and the addresses of
    these nodes. A medium may have more than two nodes.
    """

    nodes: tuple[str, ...]
    links: tuple[tuple[str, int, tuple[str, ...], tuple[str, ...]], ...]
    switches: tuple[str, ...] = ()  # the nodes that forward by a program
    media: tuple[str, ...] = ()  # the names in `links` that are media
    mtus: tuple[tuple[str, int], ...] = ()  # of the links that set one

    @classmethod
    def from_plan(cls, plan: RunPlan) -> Shape:
        """Return the shape of a plan."""
        links = [(item.name, item.id, _split_ends(item.ends)) for item in plan.links]
        media = [(item.name, item.id, _split_ends(item.stations)) for item in plan.media]
        return cls(
            tuple(node.name for node in plan.nodes),
            tuple((name, number, *ends) for name, number, ends in (*links, *media)),
            tuple(node.name for node in plan.switches()),
            tuple(medium.name for medium in plan.media),
            tuple((link.name, link.mtu) for link in plan.links if link.mtu is not None),
        )

    def list_interfaces(self, node: str) -> list[Interface]:
        """Return the interfaces of `node`, in the order of the links."""
        interfaces = []
        mtus = dict(self.mtus)
        for name, number, nodes, addresses in self.links:
            ends = [
                Neighbour(neighbour, address, make_mac_address(number, index))
                for index, (neighbour, address) in enumerate(zip(nodes, addresses, strict=True))
            ]
            for end in ends:
                if end.node == node:
                    others = tuple(
                        Neighbour(neighbour.node, neighbour.address.split("/")[0], neighbour.mac)
                        for neighbour in ends
                        if neighbour is not end
                    )
                    mtu = mtus.get(name)
                    interfaces.append(Interface(name, node, end.address, end.mac, others, mtu))
        return interfaces

    def name_emulator_interfaces(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the emulator's interfaces, by link, in labs that choose names.

        They are `LINK.a` and `LINK.b` for a link. For a medium they are `MEDIUM.NODE`, or
        `MEDIUM.NUMBER` if one of these is too long.
        """
        names = {}
        for name, _, nodes, _ in self.links:
            ends: tuple[str, ...] = ("a", "b")
            if name in self.media:
                fits = all(len(f"{name}.{node}") <= _MAX_NAME for node in nodes)
                ends = nodes if fits else tuple(str(number + 1) for number in range(len(nodes)))
            names[name] = tuple(f"{name}.{end}" for end in ends)
        return names


def _split_ends(
    ends: Sequence[LinkEnd] | Sequence[StationPlan],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes and the addresses of ends or stations."""
    return tuple(end.node for end in ends), tuple(end.address for end in ends)
