# SPDX-License-Identifier: Apache-2.0
"""Nodes: settings and routes of hosts and routers, ports of switches."""

from __future__ import annotations

from functools import partial
from typing import Any

from nagi_contracts.errors import excerpt
from nagi_contracts.plan import (
    NodePlan,
    OwnPipelinePlan,
    RoutePlan,
    SwitchPlan,
    SwitchPortPlan,
)

from nagi.plan.directions import Directions
from nagi.plan.flows import FlowPath, Flows
from nagi.plan.ip import IPV6
from nagi.plan.own_programs import own_pipeline, sha256_of_text
from nagi.plan.request import PlanRequest
from nagi.plan.schemes import base_sysctls
from nagi.plan.shaping import sample_every, sha256_of_edge


class Nodes:
    """The nodes of a point. Raises InputError where flows ask for different settings of one."""

    def __init__(self, request: PlanRequest, flows: Flows) -> None:
        self._request = request
        self._flows = flows
        # What the settings of hosts follow from, beside the topology.
        self.settings = (
            request.experiment.host_profile,
            request.experiment.min_rto,
            request.asks_for_ecn(),
            *(
                (name, flow.from_, flow.to, flow.application, flow.scheme, flows.paths[name].packet)
                for name, flow in request.flows()
            ),
        )
        memo, topology = request.memo, request.topology
        self._sysctls = memo.of(self._host_sysctls, ("sysctls", self.settings), topology)
        self._controls = memo.of(self._route_controls, ("controls", self.settings), topology)

    def plans(self, directions: Directions) -> list[NodePlan]:
        if self._request.has_switches:  # whose ports follow from directions, too
            return self._nodes(directions)
        memo, topology = self._request.memo, self._request.topology
        return memo.of(lambda: self._nodes(directions), ("nodes", self.settings), topology)

    def _nodes(self, directions: Directions) -> list[NodePlan]:
        nodes = []
        for name in self._request.experiment.nodes:
            kind = self._request.experiment.kind(name)
            if kind == "router":
                sysctls = self._request.ip.forwarding
            elif kind == "switch":
                sysctls = self._request.ip.not_forwarding
            else:
                sysctls = self._sysctls[name]
            if self._request.topology.is_attached(name):
                sysctls = {**self._request.ip.forwarding, **sysctls, **self._no_redirects(name)}
            nodes.append(
                NodePlan(
                    name=name,
                    kind=kind,
                    sysctls=sysctls,
                    routes=self._routes(name),
                    switch=self._switch(name, directions) if kind == "switch" else None,
                )
            )
        return nodes

    def _switch(self, node: str, directions: Directions) -> SwitchPlan:
        links = [
            name for name, link in self._request.experiment.links.items() if node in link.between
        ]
        own = self._own(node, len(links))
        ports = []
        for number, link in enumerate(links, start=1):
            direction = self._request.topology.direction(link, node)
            imposes = None
            if self._request.is_shaped_by_switch(link, direction):
                imposes = directions.part_of_switch(link, direction)
            packet = self._flows.crossings[link].packet
            rate = imposes.rate_bps if imposes else None
            if rate is not None and packet is None and self._request.switch == "bmv2":
                raise self._request.error(
                    self._request.place(link, direction, "rate"),
                    "bmv2 needs the size of packets to shape a rate, and no flow crosses this link",
                    "use --switch nagi, or write `shaped_by: emulator`",
                )
            ports.append(
                SwitchPortPlan(
                    number=number,
                    link=link,
                    imposes=imposes,
                    packet_bytes=packet,
                    sample_every=sample_every(rate, packet)
                    if rate and packet and own is None
                    else None,
                )
            )
        if own is None:
            return SwitchPlan(sha256=sha256_of_edge(), ports=ports)
        return SwitchPlan(pipeline="own", sha256=sha256_of_text(own.program), ports=ports, own=own)

    def _own(self, node: str, ports: int) -> OwnPipelinePlan | None:
        """The program of the user's that a switch with so many ports runs; None: it is edge.p4."""
        settings = self._request.own_program(node)
        if settings is None:
            return None
        place = ("nodes", node, "switch")
        return self._request.memo.of(
            partial(own_pipeline, self._request, place, settings, ports),
            ("own", node, ports),
            settings,
        )

    def _no_redirects(self, node: str) -> dict[str, str]:
        """Stations send packets back by the interface they came by: that is no reason to tell the
        sender of a shorter way. IPv6 does not: without link-local addresses there are no
        redirects (RFC 4861, section 8.2)."""
        if self._request.ip is IPV6:
            return {}
        names = ["all", *(f"{{{name}}}" for name in self._request.topology.media_of(node))]
        sends = {f"net.ipv4.conf.{name}.send_redirects": "0" for name in names}
        return {**sends, "net.ipv4.conf.all.accept_redirects": "0"}

    def _timeout(self) -> dict[str, str]:
        least = self._request.experiment.min_rto
        return {} if least is None else {"net.ipv4.tcp_rto_min_us": str(least.value // 1000)}

    def _host_sysctls(self) -> dict[str, dict[str, str]]:
        """What each host sets. Flows whose schemes need different settings cannot share a host."""
        values: dict[str, dict[str, str]] = {}
        wanted_by: dict[tuple[str, str], str] = {}
        for node in self._request.experiment.nodes_of("host"):
            profile = {key: str(value) for key, value in self._request.profile.sysctls.items()}
            ecn = {"net.ipv4.tcp_ecn": "1"} if self._request.asks_for_ecn() else {}
            values[node] = base_sysctls() | ecn | profile | self._timeout()
        for name, flow in self._request.flows():
            for node in (flow.from_, flow.to):
                for key, value in self._flows.schemes[name].sysctls.items():
                    other = wanted_by.get((node, key))
                    if other is not None and values[node][key] != str(value):
                        raise self._request.error(
                            ("flows", name, "scheme"),
                            f"scheme {excerpt(flow.scheme)} needs {key}={value} on {node}, where "
                            f"flow {other} needs {values[node][key]}",
                            "give the two flows different hosts",
                        )
                    values[node][key] = str(value)
                    wanted_by[node, key] = name
        return values

    def _route_controls(self) -> dict[tuple[str, str], str]:
        """Return the congestion control that routes have for programs of others, at both ends of a
        flow: (node, far end) -> its name. A route's goes before what bulk flows ask for by socket.
        """
        wanted: dict[tuple[str, str], dict[str, str]] = {}  # (node, far end) -> flow -> control
        by_route = set()  # (node, far end) that need it: others do not choose one themselves
        for name, flow in self._request.flows():
            there, back = (flow.from_, flow.to), (flow.to, flow.from_)
            scheme = self._flows.schemes[name]
            if scheme.is_datagrams:
                continue
            wanted.setdefault(there, {})[name] = scheme.congestion_control
            if flow.application == "command":
                wanted.setdefault(back, {})[name] = scheme.congestion_control
                by_route |= {there, back}
            elif scheme.receiver is not None:
                wanted.setdefault(back, {})[name] = scheme.receiver.congestion_control
                by_route.add(back)
        for name, flow in self._request.flows():
            # ACKs of this flow, too, would be as another's receiver has them.
            back = (flow.to, flow.from_)
            if any(
                (flow.to, flow.from_) == (other.to, other.from_)
                and self._flows.schemes[each].receiver is not None
                for each, other in self._request.flows()
            ):
                wanted[back].setdefault(name, "none of a receiver's")
        controls = {}
        for ends in by_route:
            (first, control), *others = wanted[ends].items()
            controls[ends] = control
            for name, other in others:
                if other != control:
                    raise self._request.error(
                        ("flows", name, "scheme"),
                        f"congestion control {other} from {ends[0]} to {ends[1]}, where flow "
                        f"{first} has {control}: a route has one for all flows if one of them has "
                        "`traffic: command`, or a receiver's part",
                        "give the two flows the same scheme, or different hosts",
                    )
        return controls

    def _routes(self, node: str) -> list[RoutePlan]:
        """A route to every flow's far end; on the flows' own hosts with what the flow asks for."""
        routes: dict[str, RoutePlan] = {}
        for name, flow in self._request.flows():
            path = self._flows.paths[name]
            for target, last_direction, ends_here in (
                (flow.to, path.there[-1], flow.from_ == node),
                (flow.from_, path.there[0], flow.to == node),
            ):
                if target == node:
                    continue
                hop = self._request.topology.next_hop(node, target)
                if hop is None or not (ends_here or self._passes_on(node, path)):
                    continue
                destination = self._request.endpoint(target, last_direction)
                neighbour = self._request.topology.leads_to(hop)
                via = self._request.endpoint(neighbour, hop)
                route = RoutePlan(
                    destination=f"{destination}/{self._request.ip.host_prefix}",
                    via=None if via == destination else via,
                    link=hop.link,
                    **self._attributes(name, node, target) if ends_here else {},
                )
                before = routes.setdefault(destination, route)
                if before != route and ends_here:
                    routes[destination] = self._merge(name, before, route)
        return list(routes.values())

    def _passes_on(self, node: str, path: FlowPath) -> bool:
        """Whether `node` needs routes to the ends of a flow that are not itself: of stations those
        on the path."""
        topology = self._request.topology
        if topology.is_attached(node):
            return any(topology.leads_to(hop) == node for hop in (*path.there, *path.back))
        return topology.forwards(node)

    def _attributes(self, name: str, node: str, target: str) -> dict[str, Any]:
        """What a flow's route from one of its ends to the other has."""
        flow, path = self._request.experiment.flows[name], self._flows.paths[name]
        packet = path.packet
        attributes: dict[str, Any] = {
            # Locked, it would keep commands from finding a path's smaller one.
            "mtu": packet.value if packet.value <= path.mtu else None,
            "advmss": packet.value - self._request.ip.headers,
            "congctl": self._controls.get((node, target)),
        }
        # What programs of others say to each other goes both ways.
        if node == flow.from_ or flow.application == "command":
            attributes["initcwnd"] = self._request.profile.initial_window
        if node == flow.to or flow.application == "command":
            receiver = self._flows.schemes[name].receiver
            needs = receiver is not None and receiver.quickack
            attributes["quickack"] = needs or not self._request.profile.delayed_acks
        return attributes

    def _merge(self, name: str, one: RoutePlan, other: RoutePlan) -> RoutePlan:
        """Two flows over the same route: what one leaves open, the other may say."""
        merged = one.model_dump()
        for key, value in other.model_dump().items():
            if value in (None, False):
                continue
            if merged.get(key) not in (None, False, value):
                raise self._request.error(
                    ("flows", name),
                    f"the flow needs {key} {value}, where another flow between the same hosts "
                    f"needs {merged[key]}",
                    "give the two flows the same payload, or different hosts",
                )
            merged[key] = value
        return RoutePlan(**merged)
