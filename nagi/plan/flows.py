# SPDX-License-Identifier: Apache-2.0
"""Plan flows: their schemes, their paths, their traffic, and the captures of their packets."""

from __future__ import annotations

from nagi_contracts.media import MediumPlan
from nagi_contracts.plan import CapturePlan, FlowPlan, SchemeObjectPlan

from nagi.plan.channels import Channels
from nagi.plan.flow_paths import FlowPaths
from nagi.plan.flow_schemes import FlowSchemes
from nagi.plan.flow_traffic import FlowTraffic, get_datagram_payload
from nagi.plan.request import PlanRequest
from nagi.plan.schemes import Scheme
from nagi.plan.timeline import round_to_us
from nagi.spec.experiment import Flow

FIRST_PORT = 5001


class Flows:
    """The planner of a point's flows, which leaves out absent flows (`scheme: none`).

    Attributes:
        schemes: Name of the flow -> its scheme.
        paths: Name of the flow -> its paths. Absent flows (`scheme: none`) have an entry, too.
        loads: Name of the link or medium -> the longest RTT and the largest packet of the flows
            that cross it.

    Raises:
        InputError: If schemes, parameters or paths of flows are wrong.
    """

    def __init__(self, request: PlanRequest, channels: Channels) -> None:
        self._request = request
        self._schemes = FlowSchemes(request)
        self._paths = FlowPaths(request, channels)
        self._traffic = FlowTraffic(request, self._paths)
        self.schemes = self._schemes.schemes
        self.paths = self._paths.paths
        self.loads = self._paths.loads

    def plan_flows(self, traffic_s: float) -> list[FlowPlan]:
        """Return the plans of all flows, in the order of the file; absent flows are left out.

        Args:
            traffic_s: Start of the traffic, in seconds since the start of the run.

        Raises:
            InputError: If no link on a flow's path has a rate, if a scheme does not fit its flow,
                if two flows use the same port of a host, or if two schemes have the same name.
        """
        plans = []
        flow_by_port: dict[tuple[str, int], str] = {}
        object_by_control: dict[str, SchemeObjectPlan | None] = {}
        numbers = {name: number for number, name in enumerate(self._request.experiment.flows)}
        for name, flow in self._request.list_flows():
            path = self.paths[name]
            port = flow.port or FIRST_PORT + numbers[name]
            self._reserve_port(name, flow, port, flow_by_port)
            rates = self._paths.list_rates(path.forward)
            if not rates:
                raise self._request.error(
                    ("flows", name),
                    "no link on the flow's path has a rate",
                    "give one a rate, because goodput is compared with the smallest rate",
                )
            self._schemes.require_marks(name, flow, path)
            scheme = self.schemes[name]
            receiver = self._schemes.plan_receiver(name, flow)
            scheme_object = self._schemes.plan_object(scheme)
            receiver_object = self._schemes.plan_object(receiver) if receiver else None
            scheme_ends = ((scheme, scheme_object), (receiver, receiver_object))
            self._require_distinct_names(name, scheme_ends, object_by_control)
            application = self._traffic.plan_application(name, flow, scheme)
            datagram = get_datagram_payload(application)
            udp_header_bytes = self._request.ip.udp_header_bytes
            plans.append(
                FlowPlan(
                    name=name,
                    sender=flow.from_,
                    receiver=flow.to,
                    sender_address=self._request.get_address(flow.from_, path.forward[0]),
                    receiver_address=self._request.get_address(flow.to, path.forward[-1]),
                    port=port,
                    scheme=flow.scheme,
                    congestion_control=scheme.congestion_control,
                    scheme_object=scheme_object,
                    receiver_control=receiver.congestion_control if receiver else None,
                    receiver_object=receiver_object,
                    traffic=application.application if application else flow.application,
                    command=self._traffic.plan_command(name, flow, port),
                    program=None if application else flow.program,
                    application=application,
                    background=flow.background,
                    payload_bytes=datagram or flow.payload.value,
                    packet_bytes=datagram + udp_header_bytes if datagram else path.packet.value,
                    max_window=self._schemes.plan_max_window(scheme, path, self._paths),
                    start_s=round_to_us(traffic_s + flow.start.seconds),
                    end_s=round_to_us(traffic_s + self._request.experiment.duration.seconds),
                    path=path.forward,
                    back=path.find_other_return_path(),
                    bottleneck_bps=min(rates),
                    base_rtt_s=path.base_rtt_ns / 1e9,
                )
            )
        return plans

    def plan_captures(self) -> list[CapturePlan]:
        """Return a capture for each interface where flows begin or end, sorted by node and link."""
        interfaces = {
            (node, direction.link)
            for name, flow in self._request.list_flows()
            for node, direction in (
                (flow.from_, self.paths[name].forward[0]),
                (flow.to, self.paths[name].forward[-1]),
            )
        }
        return [
            CapturePlan(node=node, link=link, file=f"{node}.{link}.pcap")
            for node, link in sorted(interfaces)
        ]

    def find_max_medium_queueing_s(self, media: list[MediumPlan]) -> float:
        """Return the longest time in s in which a medium's full queues empty; 0 without media."""
        return self._paths.find_max_medium_queueing_s(media)

    def find_max_rtt_ns(self) -> int:
        """Return the longest RTT of all flows in ns, with empty queues.

        A delay trace counts with its largest delay.
        """
        return self._paths.find_max_rtt_ns()

    def _reserve_port(
        self, name: str, flow: Flow, port: int, flow_by_port: dict[tuple[str, int], str]
    ) -> None:
        """Add a flow to `flow_by_port`: (listening host, port) -> name of the flow.

        Raises:
            InputError: If another flow already uses the port.
        """
        listener = flow.from_ if flow.listen == "from" else flow.to
        other_flow = flow_by_port.setdefault((listener, port), name)
        if other_flow != name:
            raise self._request.error(
                ("flows", name, "port"),
                f"flow {other_flow} already uses port {port} of {listener}",
                "give the flow another port",
            )

    def _require_distinct_names(
        self,
        name: str,
        scheme_ends: tuple[tuple[Scheme | None, SchemeObjectPlan | None], ...],
        object_by_control: dict[str, SchemeObjectPlan | None],
    ) -> None:
        """Raise InputError if two schemes of a run would have the same name in the kernel.

        Args:
            name: Name of the flow.
            scheme_ends: The scheme and its eBPF object at the sender, then at the receiver.
            object_by_control: Name in the kernel -> eBPF object, of all flows so far; is extended.
        """
        for scheme, scheme_object in scheme_ends:
            control = scheme.congestion_control if scheme else ""
            if object_by_control.setdefault(control, scheme_object) != scheme_object:
                raise self._request.error(
                    ("flows", name, "scheme"),
                    f"two schemes of this run are called {control}",
                    "rename the file of one",
                )
