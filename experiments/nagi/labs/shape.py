# SPDX-License-Identifier: Apache-2.0
"""What a lab must build for a plan: nodes, links, addresses. Runs of one shape share a lab."""

from __future__ import annotations

from dataclasses import dataclass

from nagi_contracts.plan import RunPlan

EMULATOR = "emulator"


@dataclass(frozen=True)
class Interface:
    """A node's interface on a link, and the one at the link's other end."""

    link: str
    node: str
    address: str
    mac: str
    neighbour: str
    neighbour_address: str
    neighbour_mac: str


@dataclass(frozen=True)
class Shape:
    """Nodes and links without what differs from run to run."""

    nodes: tuple[str, ...]
    links: tuple[tuple[str, int, tuple[str, str], tuple[str, str]], ...]
    switches: tuple[str, ...] = ()  # those of the nodes that need a program to forward

    @classmethod
    def of(cls, plan: RunPlan) -> Shape:
        return cls(
            tuple(node.name for node in plan.nodes),
            tuple(
                (
                    link.name,
                    link.id,
                    (link.ends[0].node, link.ends[1].node),
                    (link.ends[0].address, link.ends[1].address),
                )
                for link in plan.links
            ),
            tuple(node.name for node in plan.switches()),
        )

    def interfaces(self, node: str) -> list[Interface]:
        """The interfaces of `node`, in the order of the links."""
        found = []
        for name, number, nodes, addresses in self.links:
            for end in (0, 1):
                if nodes[end] == node:
                    found.append(
                        Interface(
                            link=name,
                            node=node,
                            address=addresses[end],
                            mac=_mac(number, end),
                            neighbour=nodes[1 - end],
                            neighbour_address=addresses[1 - end].split("/")[0],
                            neighbour_mac=_mac(number, 1 - end),
                        )
                    )
        return found


def _mac(link: int, end: int) -> str:
    """A locally administered address that says which link and end it belongs to."""
    return f"02:6e:67:{link >> 8:02x}:{link & 0xFF:02x}:{end + 1:02x}"
