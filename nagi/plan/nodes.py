# SPDX-License-Identifier: Apache-2.0
"""Plan nodes: sysctls and routes, and the plans of switches, which their backend makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nagi_contracts.errors import excerpt
from nagi_contracts.plan import DirectionName, DirectionPlan, NodePlan, RoutePlan

from nagi.plan.flow_paths import FlowPath
from nagi.plan.flows import Flows
from nagi.plan.ip import IPV6
from nagi.plan.request import PlanRequest
from nagi.plan.schemes import read_base_sysctls


class Nodes:
    """The planner of a point's nodes: their sysctls, routes and switches.

    Raises:
        InputError: If two flows need different settings of the same host.
    """

    def __init__(self, request: PlanRequest, flows: Flows) -> None:
        self._request = request
        self._flows = flows
        # Plans of hosts depend only on these values and on the topology.
        self.settings = (
            request.experiment.host_profile,
            request.experiment.min_rto,
            request.is_ecn_requested(),
            *(
                (name, flow.from_, flow.to, flow.application, flow.scheme, flows.paths[name].packet)
                for name, flow in request.list_flows()
            ),
        )
        memo, topology = request.memo, request.topology
        self._sysctls = memo.get_or_make(
            self._merge_host_sysctls, ("sysctls", self.settings), topology
        )
        self._controls = memo.get_or_make(
            self._plan_route_controls, ("controls", self.settings), topology
        )

    def plan_nodes(
        self,
        directions: Mapping[tuple[str, DirectionName], DirectionPlan],
        packets: Mapping[str, int | None],
    ) -> list[NodePlan]:
        """Return the plans of all nodes, in the order of the experiment file.

        Args:
            directions: The directions of all links.
            packets: IP bytes of the largest packet on each link, or None if no flow crosses it.
        """
        if self._request.planners.has_forwarders():  # plans of switches depend on `directions`
            return self._make_nodes(directions, packets)
        memo, topology = self._request.memo, self._request.topology
        return memo.get_or_make(
            lambda: self._make_nodes(directions, packets), ("nodes", self.settings), topology
        )

    def _make_nodes(
        self,
        directions: Mapping[tuple[str, DirectionName], DirectionPlan],
        packets: Mapping[str, int | None],
    ) -> list[NodePlan]:
        nodes = []
        for name in self._request.experiment.nodes:
            kind = self._request.experiment.get_kind(name)
            forwarder = self._request.planners.find_forwarder(name)
            if forwarder is not None:
                sysctls = self._request.ip.not_forwarding
            elif kind == "router":
                sysctls = self._request.ip.forwarding
            else:
                sysctls = self._sysctls[name]
            if self._request.topology.is_station(name):
                sysctls = {
                    **self._request.ip.forwarding,
                    **sysctls,
                    **self._get_redirect_sysctls(name),
                }
            nodes.append(
                NodePlan(
                    name=name,
                    kind=kind,
                    sysctls=sysctls,
                    routes=self._plan_routes(name),
                    switch=forwarder.plan_node(name, directions, packets) if forwarder else None,
                )
            )
        return nodes

    def _get_redirect_sysctls(self, node: str) -> dict[str, str]:
        """Return the sysctls by which a station neither sends nor accepts ICMP redirects.

        A station often forwards a packet over the interface on which the packet arrived. The
        kernel would then send a redirect, although there is no shorter path. IPv6 needs no such
        settings, because redirects need link-local addresses (RFC 4861, section 8.2).
        """
        if self._request.ip is IPV6:
            return {}
        names = ["all", *(f"{{{name}}}" for name in self._request.topology.list_media(node))]
        sends = {f"net.ipv4.conf.{name}.send_redirects": "0" for name in names}
        return {**sends, "net.ipv4.conf.all.accept_redirects": "0"}

    def _get_min_rto_sysctl(self) -> dict[str, str]:
        """Return the sysctl for the experiment's `min_rto`, or {} if the experiment sets none."""
        min_rto = self._request.experiment.min_rto
        return {} if min_rto is None else {"net.ipv4.tcp_rto_min_us": str(min_rto.value // 1000)}

    def _merge_host_sysctls(self) -> dict[str, dict[str, str]]:
        """Return the sysctls of each host.

        Raises:
            InputError: If flows whose schemes need different settings share a host.
        """
        sysctls: dict[str, dict[str, str]] = {}
        flow_by_setting: dict[tuple[str, str], str] = {}
        for node in self._request.experiment.list_nodes("host"):
            profile = {key: str(value) for key, value in self._request.profile.sysctls.items()}
            ecn = {"net.ipv4.tcp_ecn": "1"} if self._request.is_ecn_requested() else {}
            sysctls[node] = read_base_sysctls() | ecn | profile | self._get_min_rto_sysctl()
        for name, flow in self._request.list_flows():
            for node in (flow.from_, flow.to):
                for key, value in self._flows.schemes[name].sysctls.items():
                    other_flow = flow_by_setting.get((node, key))
                    if other_flow is not None and sysctls[node][key] != str(value):
                        raise self._request.error(
                            ("flows", name, "scheme"),
                            f"scheme {excerpt(flow.scheme)} needs {key}={value} on {node}, where "
                            f"flow {other_flow} needs {sysctls[node][key]}",
                            "give the two flows different hosts",
                        )
                    sysctls[node][key] = str(value)
                    flow_by_setting[node, key] = name
        return sysctls

    def _plan_route_controls(self) -> dict[tuple[str, str], str]:
        """Return (host, other host) -> congestion control, for routes that set one.

        A user's program and the receiver of a scheme with two parts do not set a congestion control
        on their sockets, and get it from the route to the other host. The route's congestion
        control has priority over the one that a bulk flow sets on its socket.

        Raises:
            InputError: If flows with the same route need different congestion controls.
        """
        # (host, other host) -> flow -> the congestion control that the flow needs on this route
        controls_by_route: dict[tuple[str, str], dict[str, str]] = {}
        # (host, other host) of programs that do not set a congestion control on their sockets
        routes_with_control = set()
        for name, flow in self._request.list_flows():
            forward, backward = (flow.from_, flow.to), (flow.to, flow.from_)
            scheme = self._flows.schemes[name]
            if scheme.is_datagrams:
                continue
            controls_by_route.setdefault(forward, {})[name] = scheme.congestion_control
            if flow.application == "command":
                controls_by_route.setdefault(backward, {})[name] = scheme.congestion_control
                routes_with_control |= {forward, backward}
            elif scheme.receiver is not None:
                controls_by_route.setdefault(backward, {})[name] = (
                    scheme.receiver.congestion_control
                )
                routes_with_control.add(backward)
        for name, flow in self._request.list_flows():
            # If the receiver of another flow with the same route runs a scheme, the route would
            # also make the receiver of this flow run that scheme.
            backward = (flow.to, flow.from_)
            if any(
                (flow.to, flow.from_) == (other_flow.to, other_flow.from_)
                and self._flows.schemes[other_name].receiver is not None
                for other_name, other_flow in self._request.list_flows()
            ):
                controls_by_route[backward].setdefault(name, "(none)")
        controls = {}
        for route in routes_with_control:
            (first_name, control), *other_flows = controls_by_route[route].items()
            controls[route] = control
            for name, other_control in other_flows:
                if other_control != control:
                    raise self._request.error(
                        ("flows", name, "scheme"),
                        f"the flow needs congestion control {other_control} from {route[0]} to "
                        f"{route[1]}, but flow {first_name} needs {control} (all flows between two "
                        "hosts have the same one if one flow has `traffic: command`, or a scheme "
                        "for its receiver)",
                        "give the two flows the same scheme, or different hosts",
                    )
        return controls

    def _plan_routes(self, node: str) -> list[RoutePlan]:
        """Return a node's routes to the senders and receivers of flows.

        At the two hosts of a flow, the route has the attributes that the flow needs, such as its
        MSS.
        """
        routes: dict[str, RoutePlan] = {}
        for name, flow in self._request.list_flows():
            path = self._flows.paths[name]
            for target, last_hop, is_end in (
                (flow.to, path.forward[-1], flow.from_ == node),
                (flow.from_, path.forward[0], flow.to == node),
            ):
                if target == node:
                    continue
                hop = self._request.topology.find_next_hop(node, target)
                if hop is None or not (is_end or self._needs_route(node, path)):
                    continue
                destination = self._request.get_address(target, last_hop)
                neighbour = self._request.topology.find_receiving_node(hop)
                via = self._request.get_address(neighbour, hop)
                route = RoutePlan(
                    destination=f"{destination}/{self._request.ip.host_prefix}",
                    via=None if via == destination else via,
                    link=hop.link,
                    **self._plan_route_attributes(name, node, target) if is_end else {},
                )
                existing = routes.setdefault(destination, route)
                if existing != route and is_end:
                    routes[destination] = self._merge_routes(name, existing, route)
        return list(routes.values())

    def _needs_route(self, node: str, path: FlowPath) -> bool:
        """Return whether a node between the hosts of a flow needs routes to these hosts.

        A station needs the routes if it is on the flow's path. Other nodes need the routes if they
        forward packets.
        """
        topology = self._request.topology
        if topology.is_station(node):
            return any(
                topology.find_receiving_node(hop) == node for hop in (*path.forward, *path.backward)
            )
        return topology.can_forward(node)

    def _plan_route_attributes(self, name: str, node: str, target: str) -> dict[str, Any]:
        """Return the attributes of the route from `node` to `target`, the hosts of flow `name`."""
        flow, path = self._request.experiment.flows[name], self._flows.paths[name]
        packet = path.packet
        attributes: dict[str, Any] = {
            # A locked MTU would keep commands from discovering the smaller MTU of a path.
            "mtu": packet.value if packet.value <= path.mtu else None,
            "advmss": packet.value - self._request.ip.tcp_header_bytes,
            "congctl": self._controls.get((node, target)),
        }
        # Commands may send data in both directions.
        if node == flow.from_ or flow.application == "command":
            attributes["initcwnd"] = self._request.profile.initial_window
        if node == flow.to or flow.application == "command":
            receiver = self._flows.schemes[name].receiver
            needs_quickack = receiver is not None and receiver.quickack
            attributes["quickack"] = needs_quickack or not self._request.profile.delayed_acks
        return attributes

    def _merge_routes(self, name: str, first: RoutePlan, second: RoutePlan) -> RoutePlan:
        """Return one route with the attributes of the routes of two flows.

        Args:
            name: The flow with the second route.
            first: The route of the other flow.
            second: The route of flow `name`.

        Raises:
            InputError: If the two routes set an attribute to different values.
        """
        merged = first.model_dump()
        for key, value in second.model_dump().items():
            if value in (None, False):
                continue
            if merged.get(key) not in (None, False, value):
                raise self._request.error(
                    ("flows", name),
                    f"the flow needs {key} {value}, but another flow between the same hosts "
                    f"needs {merged[key]}",
                    "give the two flows the same payload, or different hosts",
                )
            merged[key] = value
        return RoutePlan(**merged)
