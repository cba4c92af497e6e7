# SPDX-License-Identifier: Apache-2.0
"""What is to be planned: a point of an experiment, read as the planner needs it."""

from __future__ import annotations

from functools import partial

from nagi_contracts.errors import InputError, choices, shown
from nagi_contracts.memo import Memo
from nagi_contracts.plan import (
    DIRECTIONS,
    DirectionName,
    DirectionPlan,
    LinkDirection,
    SwitchTarget,
)

from nagi.plan.schemes import Profile, profiles
from nagi.plan.topology import Topology
from nagi.spec.experiment import Flow
from nagi.spec.links import DirectionSettings, Link
from nagi.spec.nodes import OwnProgram, SwitchSettings
from nagi.spec.points import Point
from nagi.spec.yaml_source import Place


class PlanRequest:
    """A point, the program that switches run, and what other points share with this one. Raises
    InputError where nodes, links or the host profile do not fit."""

    def __init__(self, point: Point, switch: SwitchTarget, memo: Memo) -> None:
        self.memo = memo
        self.switch = switch
        self.experiment = point.experiment
        self.document = point.document
        self.has_switches = bool(self.experiment.nodes_of("switch"))
        links = self.experiment.links
        self.topology = memo.of(
            lambda: Topology(point.experiment, point.document),
            (
                "topology",
                self.experiment.ip_version,
                tuple((name, link.between, link.mtu) for name, link in links.items()),
            ),
            self.experiment.nodes,
            *self.experiment.media.values(),
        )
        self.ip = self.topology.ip
        self.profile = self._profile()

    def _profile(self) -> Profile:
        name = self.experiment.host_profile
        if name not in profiles():
            what = f"unknown host profile {shown(name)}"
            raise self.error(("host_profile",), what, choices(name, profiles()))
        return profiles()[name]

    def flows(self) -> list[tuple[str, Flow]]:
        return [(name, flow) for name, flow in self.experiment.flows.items() if not flow.is_absent]

    def absent_flows(self) -> list[tuple[str, Flow]]:
        """Flows that this point is without, and others may have."""
        return [(name, flow) for name, flow in self.experiment.flows.items() if flow.is_absent]

    def error(self, place: Place, what: str, cure: str) -> InputError:
        return self.document.error(place, what, cure)

    def no_file(self, place: Place, name: str) -> InputError:
        directory = self.document.beside(".").absolute()
        return self.error(
            place, f"there is no file {shown(name)}", f"give its path from {directory}"
        )

    def settings(self, link: Link, direction: DirectionName) -> DirectionSettings:
        return self.memo.of(partial(link.direction, direction), ("settings", direction), link)

    def place(self, link: str, direction: DirectionName, key: str) -> Place:
        inherits = self.experiment.links[link].inherits(direction, key)
        return ("links", link, key) if inherits else ("links", link, direction, key)

    def asks_for_ecn(self) -> bool:
        """Whether hosts ask for ECN."""
        if self.experiment.ecn is not None:
            return self.experiment.ecn
        links = self.experiment.links.values()
        return any(medium.marks for medium in self.experiment.media.values()) or any(
            self.settings(link, each).marks for link in links for each in DIRECTIONS
        )

    def marks(self, direction: LinkDirection) -> bool:
        """Whether a direction of a link, or a station that a hop leaves, marks packets."""
        if direction.is_hop:
            return self.experiment.media[direction.link].marks
        return self.settings(self.experiment.links[direction.link], direction.direction).marks

    def endpoint(self, node: str, direction: LinkDirection) -> str:
        return self.topology.attachment(direction.link, node).address

    def is_shaped_by_switch(self, link: str, direction: DirectionName) -> bool:
        """Whether a switch imposes what a direction does. Refuses a direction that leaves none."""
        if self.settings(self.experiment.links[link], direction).shaped_by != "switch":
            return False
        node = self.leaves(link, direction)
        kind = self.experiment.kind(node)
        if kind != "switch":
            other: DirectionName = "backward" if direction == "forward" else "forward"
            raise self.error(
                self.place(link, direction, "shaped_by"),
                f"direction {direction} leaves {node}, which is a {kind} and not a switch",
                f"write `shaped_by` under `{other}:` alone, or make {node} a switch",
            )
        return True

    def own_program(self, node: str) -> OwnProgram | None:
        """The P4 program of the user's that a node runs; None: none, or edge.p4."""
        given = self.experiment.nodes[node]
        return given.switch if isinstance(given, SwitchSettings) else None

    def own_programs(self) -> list[OwnProgram]:
        """All of them."""
        found = (self.own_program(node) for node in self.experiment.nodes)
        return [program for program in found if program is not None]

    def leaves(self, link: str, direction: DirectionName) -> str:
        """The node that a direction of a link leaves."""
        first, second = self.experiment.links[link].between
        return first if direction == "forward" else second

    def rate_bps(self, direction: DirectionPlan) -> int | None:
        """The mean of a trace is computed once."""
        return self.memo.of(lambda: direction.mean_rate_bps, "rate", direction)
