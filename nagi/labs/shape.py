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
    """An interface that another node has on the link or medium of an `Interface`."""

    node: str
    address: str
    mac: str


@dataclass(frozen=True)
class Interface:
    """A node's interface on a link or medium, with all other interfaces on the link or medium.

    `address` has a prefix length; the addresses of `neighbours` have none.
    """

    link: str
    node: str
    address: str
    mac: str
    neighbours: tuple[Neighbour, ...]
    mtu: int | None = None  # None leaves the MTU unchanged


@dataclass(frozen=True)
class Shape:
    """The nodes, links, media and addresses of a plan, without settings such as rates.

    Attributes:
        nodes: The names of the nodes.
        links: The links and then the media, each as (name, number, nodes, addresses of the nodes).
            A medium may have more than two nodes.
        switches: The nodes that are switches (they forward packets by a P4 pipeline).
        media: The names of the media in `links`.
        mtus: (Link, MTU) of each link that sets an MTU.
    """

    nodes: tuple[str, ...]
    links: tuple[tuple[str, int, tuple[str, ...], tuple[str, ...]], ...]
    switches: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    mtus: tuple[tuple[str, int], ...] = ()

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
            members = [
                Neighbour(member, address, make_mac_address(number, index))
                for index, (member, address) in enumerate(zip(nodes, addresses, strict=True))
            ]
            for own in members:
                if own.node == node:
                    neighbours = tuple(
                        Neighbour(other.node, other.address.split("/")[0], other.mac)
                        for other in members
                        if other is not own
                    )
                    mtu = mtus.get(name)
                    interfaces.append(Interface(name, node, own.address, own.mac, neighbours, mtu))
        return interfaces

    def name_emulator_interfaces(self) -> dict[str, tuple[str, ...]]:
        """Return link or medium -> names of the emulator's interfaces, in the order of nodes.

        Labs that create the interfaces use these names: `LINK.a` and `LINK.b` for a link, and
        `MEDIUM.NODE` for a medium, or `MEDIUM.NUMBER` if a name `MEDIUM.NODE` is too long.
        """
        names = {}
        for name, _, nodes, _ in self.links:
            suffixes: tuple[str, ...] = ("a", "b")
            if name in self.media:
                fits = all(len(f"{name}.{node}") <= _MAX_NAME for node in nodes)
                suffixes = nodes if fits else tuple(str(index + 1) for index in range(len(nodes)))
            names[name] = tuple(f"{name}.{suffix}" for suffix in suffixes)
        return names


def _split_ends(
    ends: Sequence[LinkEnd] | Sequence[StationPlan],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the nodes, and the addresses, of the ends of a link or the stations of a medium."""
    return tuple(end.node for end in ends), tuple(end.address for end in ends)
