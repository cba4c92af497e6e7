# SPDX-License-Identifier: Apache-2.0
"""Plan the traffic of flows: bulk data, applications, paced datagrams, or users' commands."""

from __future__ import annotations

import math

from nagi_contracts.applications import AnyPlan, ApplicationSettings
from nagi_contracts.applications.cbr import SEARCH_TRAINS, CbrPlan
from nagi_contracts.applications.onoff import OnOffPlan
from nagi_contracts.errors import BadValue, excerpt, split_message
from nagi_contracts.plan import CommandPlan
from nagi_contracts.units import Duration

from nagi.plan.command_files import plan_files, require_own_program
from nagi.plan.flow_paths import FlowPaths
from nagi.plan.request import PlanRequest
from nagi.plan.schemes import Scheme
from nagi.spec.commands import fill_fields
from nagi.spec.experiment import Flow

MIN_TRAIN = 25  # smallest number of packets in each step of a search for a rate


class FlowTraffic:
    """The planner of the traffic of a point's flows: applications and commands."""

    def __init__(self, request: PlanRequest, paths: FlowPaths) -> None:
        self._request = request
        self._paths = paths

    def plan_application(self, name: str, flow: Flow, scheme: Scheme) -> AnyPlan | None:
        """Return the plan of a flow's application, or None for bulk data over TCP and commands.

        Raises:
            InputError: If the application's settings do not fit the flow.
        """
        is_udp = isinstance(flow.traffic, ApplicationSettings) and flow.traffic.is_udp
        if scheme.is_datagrams and not is_udp:
            return self._plan_paced_datagrams(name, flow)
        if not isinstance(flow.traffic, ApplicationSettings):
            return None
        try:
            return flow.traffic.to_plan(flow.payload.value, self._request.ip.header_bytes)
        except BadValue as error:
            message, cure = split_message(error)
            key_path = ("flows", name, "traffic", *filter(None, [error.key]))
            raise self._request.error(key_path, message, cure) from None

    def plan_command(self, name: str, flow: Flow, port: int) -> CommandPlan | None:
        """Return the plan of a user's command with its fields filled in; None for other traffic.

        Raises:
            InputError: If a file of the command does not exist, or its program is not executable.
        """
        if flow.client is None:
            return None
        path = self._paths.paths[name]
        seconds = self._request.experiment.duration.seconds - flow.start.seconds
        values = {
            "sender": self._request.get_address(flow.from_, path.forward[0]),
            "receiver": self._request.get_address(flow.to, path.forward[-1]),
            "port": str(port),
            "duration_s": f"{seconds:.6f}".rstrip("0").rstrip("."),
            "flow": name,
        }
        key_path = ("flows", name)
        files = self._request.memo.get_or_make(
            lambda: plan_files(self._request, (*key_path, "files"), flow.files),
            ("files", name, tuple(flow.files)),
        )
        require_own_program(self._request, (*key_path, "client"), flow.client, files)
        if flow.server is not None:
            require_own_program(self._request, (*key_path, "server"), flow.server, files)
        return CommandPlan(
            client=fill_fields(flow.client, values),
            server=None if flow.server is None else fill_fields(flow.server, values),
            listens="sender" if flow.listen == "from" else "receiver",
            files=files,
        )

    def _plan_paced_datagrams(self, name: str, flow: Flow) -> CbrPlan:
        """Return the plan of a bulk flow that sends paced UDP datagrams instead of using TCP.

        During the warm-up, the flow searches for the largest rate that its path carries.

        Raises:
            InputError: If the flow has an application, or if the warm-up is too short.
        """
        if flow.application != "bulk":
            raise self._request.error(
                ("flows", name, "scheme"),
                f"{excerpt(flow.scheme)} does not use TCP, which `traffic: {flow.application}` "
                "needs",
                "give the flow another scheme, or remove `traffic`",
            )
        payload, warmup = flow.payload.value, self._request.experiment.warmup
        path = self._paths.paths[name]
        rates = [*self._paths.list_rates(path.forward), *self._paths.list_media_rates(path)]
        packet_bytes = payload + self._request.ip.udp_header_bytes
        packet_ns = math.ceil(packet_bytes * 8e9 / min(rates))
        train_ns = max(MIN_TRAIN * packet_ns, 2 * path.base_rtt_ns)
        needed_ns = SEARCH_TRAINS * train_ns + flow.start.value
        if warmup.value < needed_ns:
            min_warmup = Duration(math.ceil(needed_ns / 1e8) * 10**8)
            raise self._request.error(
                ("flows", name, "scheme"),
                f"{excerpt(flow.scheme)} searches for its rate in the warm-up, and {warmup} is too "
                "short",
                f"set `warmup: {min_warmup}` or more; or give another scheme, and "
                "`traffic: {application: cbr, rate: ...}` with a rate of your own",
            )
        return CbrPlan(
            rate_bps=self._paths.find_max_rate_bps(path),
            payload_bytes=payload,
            search_ns=warmup.value - flow.start.value,
        )


def get_datagram_payload(application: AnyPlan | None) -> int | None:
    """Return the payload of an application's UDP datagrams in bytes.

    Return None if there is no application, or if it uses TCP.
    """
    if isinstance(application, CbrPlan | OnOffPlan) and application.is_udp:
        return application.payload_bytes
    return None
