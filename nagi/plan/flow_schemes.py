# SPDX-License-Identifier: Apache-2.0
"""Plan the TCP schemes of flows: find them, and check their parameters and requirements."""

from __future__ import annotations

import math
from functools import partial

from nagi_contracts.errors import excerpt, format_value, suggest
from nagi_contracts.plan import SchemeObjectPlan

from nagi.plan import scheme_sources
from nagi.plan.flow_paths import FlowPath, FlowPaths
from nagi.plan.ip import IPV6
from nagi.plan.request import PlanRequest
from nagi.plan.scheme_objects import Parameter, plan_object
from nagi.plan.schemes import Scheme, find_scheme, read_receivers, read_schemes
from nagi.plan.trace_files import is_file
from nagi.spec.base import Name
from nagi.spec.experiment import Flow
from nagi.spec.yaml_source import KeyPath


class FlowSchemes:
    """The schemes of a point's flows.

    Attributes:
        schemes: Name of the flow -> its scheme.

    Raises:
        InputError: If a scheme or a parameter does not exist, or if no flow has a scheme.
    """

    def __init__(self, request: PlanRequest) -> None:
        self._request = request
        self.schemes = {name: self._plan_scheme(name, flow) for name, flow in request.list_flows()}
        request.memo.get_or_make(
            self._check_parameters, "parameters", request.experiment.parameters
        )
        if not self.schemes:
            raise request.error(
                ("flows",),
                "every flow has the scheme none at this point",
                "give one of the flows a scheme, or remove the value none from the axis",
            )

    def plan_receiver(self, name: Name, flow: Flow) -> Scheme | None:
        """Return the scheme that a flow's receiver runs, or None if only the sender runs one.

        Raises:
            InputError: If the receiver's scheme supports data in one direction only, and the flow
                is a user's command, which may send data in both.
        """
        scheme = self.schemes[name]
        if scheme.receiver is None or scheme.both_ends or flow.application != "command":
            return scheme.receiver
        raise self._request.error(
            ("flows", name, "scheme"),
            f"{scheme.receiver.name} needs data in one direction, and commands may send in both",
            f"use {excerpt(scheme.name)}, or other traffic",
        )

    def plan_object(self, scheme: Scheme) -> SchemeObjectPlan | None:
        """Return the plan of a scheme's eBPF object, with the parameters that the experiment sets.

        Return None if the scheme has no eBPF object.
        """
        if scheme.object_file is None:
            return None
        parameters = self._request.experiment.parameters
        return self._request.memo.get_or_make(
            partial(plan_object, scheme.object_file, parameters.get(scheme.name, {})),
            ("scheme object", scheme.name),
            parameters,
        )

    def plan_max_window(self, scheme: Scheme, path: FlowPath, paths: FlowPaths) -> int | None:
        """Return the largest congestion window of a flow in packets; None if it has no limit.

        The limit is the experiment's `max_window`. For a scheme that keeps its window constant, it
        is the constant window, or `max_window` if that is smaller.
        """
        max_window = self._request.experiment.max_window
        if not scheme.holds_window:
            return max_window.value if max_window else None
        parameter = self._request.experiment.parameters.get(scheme.name, {}).get("window", 0)
        rates = paths.list_rates([hop for hop in path.forward if not hop.is_hop])
        window = parameter or _find_filling_window(path, rates, paths.list_media_rates(path))
        return min(window, max_window.value) if max_window else window

    def require_marks(self, name: Name, flow: Flow, path: FlowPath) -> None:
        """Raise InputError if a flow's scheme needs ECN marks, and nothing on its path marks."""
        if not self.schemes[name].needs_marks or any(map(self._request.has_marking, path.forward)):
            return
        hops = ", ".join(
            f"{hop.link} ({hop.sender} to {hop.receiver})"
            if hop.is_hop
            else f"{hop.link} ({hop.direction})"
            for hop in path.forward
        )
        raise self._request.error(
            ("flows", name, "scheme"),
            f"{excerpt(flow.scheme)} reacts to marks (ECN), and no link marks on its path: {hops}",
            "let the bottleneck mark, such as `mark: {threshold: 10 packets}`",
        )

    def _plan_scheme(self, flow_name: Name, flow: Flow) -> Scheme:
        key_path = ("flows", flow_name, "scheme")
        scheme = self._require_scheme(key_path, flow.scheme)
        if scheme.receiver is not None and self._request.ip is IPV6:
            raise self._request.error(
                key_path,
                f"{scheme.receiver.name}, which the receiver runs, supports IPv4 only",
                "give the flow another scheme, or write `ip_version: 4`",
            )
        return scheme

    def _require_scheme(self, key_path: KeyPath, name: str) -> Scheme:
        """Return the scheme `name`, from the memo if possible; see _find_scheme."""
        return self._request.memo.get_or_make(
            partial(self._find_scheme, key_path, name), ("scheme", name)
        )

    def _find_scheme(self, key_path: KeyPath, name: str) -> Scheme:
        """Return the scheme `name`, which the experiment file gives at `key_path`.

        Raises:
            InputError: If the scheme or its file does not exist.
        """
        scheme = find_scheme(name, self._request.document.resolve_path)
        if scheme is None:
            schemes, receivers = read_schemes(), read_receivers()
            cure = f"{suggest(name, schemes)}; or the path of a C file or an eBPF object"
            sender, _, receiver = name.rpartition("-")
            if receiver in receivers and sender in schemes:
                is_udp = schemes[sender].is_datagrams
                reason = "no ACKs" if is_udp else "another scheme for its receiver"
                message = f"{sender} has {reason}, so it cannot be combined with {receiver}"
                cure = f"use {sender} alone, or combine another scheme with {receiver}"
                raise self._request.error(key_path, message, cure)
            raise self._request.error(key_path, f"unknown scheme {format_value(name)}", cure)
        file = scheme.own_file
        if file is not None and not is_file(scheme_sources.find_source(file)):
            raise self._request.missing_file(key_path, name)
        return scheme

    def _check_parameters(self) -> None:
        """Check the parameters of all schemes, also of schemes that only other points use."""
        for name, values in self._request.experiment.parameters.items():
            key_path: KeyPath = ("parameters", name)
            scheme = read_receivers().get(name) or self._require_scheme(key_path, name)
            if scheme.name != name:
                raise self._request.error(
                    key_path,
                    f"{excerpt(name)} combines two schemes, which have separate parameters",
                    f"give parameters of {excerpt(scheme.name)}, or of "
                    f"{excerpt(name.rpartition('-')[2])}",
                )
            parameters = scheme.parameters
            if not parameters:
                kind = "does not use TCP" if scheme.is_datagrams else "is a part of the kernel"
                raise self._request.error(
                    key_path,
                    f"scheme {name} {kind} and has no parameters",
                    "remove it; `nagi schemes` lists parameters",
                )
            for key, value in values.items():
                self._check_parameter((*key_path, key), name, value, parameters)

    def _check_parameter(
        self, key_path: KeyPath, scheme: str, value: int, parameters: dict[str, Parameter]
    ) -> None:
        """Check that a scheme has the parameter at `key_path`, and that the value is in range."""
        key = str(key_path[-1])
        if key not in parameters:
            message = f"scheme {excerpt(scheme)} has no parameter {format_value(key)}"
            raise self._request.error(key_path, message, suggest(key, parameters, "it has"))
        parameter = parameters[key]
        minimum, maximum = parameter.minimum, parameter.maximum
        if not minimum <= value <= maximum:
            limits = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
            raise self._request.error(
                key_path,
                f"{format_value(value)} is out of range",
                f"give {limits} {parameter.unit} ({parameter.meaning})",
            )


def _find_filling_window(path: FlowPath, link_rates: list[int], media_rates: list[int]) -> int:
    """Return the number of packets in flight that keep a path busy without filling a queue.

    The slowest link or medium sends this number of full-size packets during the round trip of one
    packet. A round trip consists of the propagation in both directions, the exchanges on media, and
    one transmission on each link.

    Args:
        path: The path of a flow.
        link_rates: Rates of the links on the path, in bit/s.
        media_rates: Rates at which media carry packets over the path's hops, in bit/s.
    """
    bits = path.packet.value * 8
    round_trip_s = path.base_rtt_ns / 1e9 + sum(bits / rate for rate in link_rates)
    slowest_bps = min([*link_rates, *media_rates])
    return max(1, math.ceil(round(slowest_bps * round_trip_s / bits, 6)))
