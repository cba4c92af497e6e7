# SPDX-License-Identifier: Apache-2.0
"""What a lab must build for a plan: nodes, links and media, addresses. Runs of one shape share a
lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nagi_contracts.media import StationPlan, make_mac_address
from nagi_contracts.plan import LinkEnd, RunPlan

EMULATOR = "emulator"
_MAX_NAME = 15  # characters of an interface's name


@dataclass(frozen=True)
class Neighbour:
    """An interface that another reaches over its link or medium."""

    node: str
    address: str
    mac: str


@dataclass(frozen=True)
class Interface:
    """A node's interface on a link or medium, and those of all others there."""

    link: str
    node: str
    address: str
    mac: str
    neighbours: tuple[Neighbour, ...]
    mtu: int | None = None  # None: as it is


@dataclass(frozen=True)
class Shape:
    """Nodes, links and media without what differs from run to run. `links`: name, number, nodes
    and their addresses of each link and then of each medium, which has more nodes than two, or
    two."""

    nodes: tuple[str, ...]
    links: tuple[tuple[str, int, tuple[str, ...], tuple[str, ...]], ...]
    switches: tuple[str, ...] = ()  # those of the nodes that need a program to forward
    media: tuple[str, ...] = ()  # those of the links that are media
    mtus: tuple[tuple[str, int], ...] = ()  # of links that have one of their own

    @classmethod
    def of(cls, plan: RunPlan) -> Shape:
        links = [(each.name, each.id, _ends(each.ends)) for each in plan.links]
        media = [(each.name, each.id, _ends(each.stations)) for each in plan.media]
        return cls(
            tuple(node.name for node in plan.nodes),
            tuple((name, number, *ends) for name, number, ends in (*links, *media)),
            tuple(node.name for node in plan.switches()),
            tuple(medium.name for medium in plan.media),
            tuple((link.name, link.mtu) for link in plan.links if link.mtu is not None),
        )

    def interfaces(self, node: str) -> list[Interface]:
        """The interfaces of `node`, in the order of the links."""
        found = []
        mtus = dict(self.mtus)
        for name, number, nodes, addresses in self.links:
            ends = [
                Neighbour(each, address, make_mac_address(number, index))
                for index, (each, address) in enumerate(zip(nodes, addresses, strict=True))
            ]
            for end in ends:
                if end.node == node:
                    others = tuple(
                        Neighbour(each.node, each.address.split("/")[0], each.mac)
                        for each in ends
                        if each is not end
                    )
                    mtu = mtus.get(name)
                    found.append(Interface(name, node, end.address, end.mac, others, mtu))
        return found

    def emulator_interfaces(self) -> dict[str, tuple[str, ...]]:
        """Link -> the emulator's interfaces that face its nodes, where a lab names them: `LINK.a`
        and `LINK.b` of a link, `MEDIUM.NODE` of a medium, or `MEDIUM.NUMBER` if one of these were
        too long."""
        found = {}
        for name, _, nodes, _ in self.links:
            ends: tuple[str, ...] = ("a", "b")
            if name in self.media:
                fits = all(len(f"{name}.{node}") <= _MAX_NAME for node in nodes)
                ends = nodes if fits else tuple(str(number + 1) for number in range(len(nodes)))
            found[name] = tuple(f"{name}.{end}" for end in ends)
        return found


def _ends(
    ends: Sequence[LinkEnd] | Sequence[StationPlan],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Their nodes and addresses."""
    return tuple(end.node for end in ends), tuple(end.address for end in ends)
