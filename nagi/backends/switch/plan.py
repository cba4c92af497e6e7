# SPDX-License-Identifier: Apache-2.0
"""Plan switches: their ports, their programs, and the directions of links that they shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from nagi_contracts.plan import (
    DirectionName,
    DirectionPlan,
    NodePlan,
    OwnPipelinePlan,
    SwitchPlan,
    SwitchPortPlan,
)

from nagi.backends.interface import Planner
from nagi.backends.switch.own_programs import hash_text, plan_own_pipeline
from nagi.backends.switch.shaping import (
    UnsupportedShaping,
    find_sample_interval,
    get_switch_share,
    hash_edge_program,
    remove_switch_share,
)
from nagi.backends.switch.spec import OwnProgram, SwitchSettings
from nagi.backends.switch.targets import TARGETS
from nagi.plan.request import PlanRequest
from nagi.plan.seeds import restore_format_0_1
from nagi.spec.links import DirectionSettings

CONTROLLER_START_S = 2.0  # assumed time to start users' controllers


class SwitchPlanner(Planner):
    """The planner of nodes that are switches, and of the directions that switches shape."""

    def __init__(self, request: PlanRequest) -> None:
        super().__init__(request)
        self._target = TARGETS[request.switch]
        self.nodes = request.experiment.list_nodes("switch")

    @property
    def start_s(self) -> float:
        """Seconds that switches and users' controllers need before captures begin."""
        if not self.nodes:
            return 0.0
        programs = [self._get_own_program(node) for node in self.nodes]
        has_controllers = any(
            program is not None and program.controller is not None for program in programs
        )
        return self._target.start_s + (CONTROLLER_START_S if has_controllers else 0.0)

    def require_settings(
        self, link: str, direction: DirectionName, settings: DirectionSettings
    ) -> None:
        """Raise InputError if a switch shapes a direction with ARQ."""
        if settings.arq is not None and settings.shaped_by == "switch":
            raise self._request.error(
                self._request.locate_setting(link, direction, "arq"),
                "the emulator's ARQ cannot repeat packets that a switch loses",
                "remove `arq`, or write `shaped_by: emulator`",
            )

    def get_emulator_share(
        self, link: str, direction: DirectionName, plan: DirectionPlan
    ) -> DirectionPlan:
        """Return a direction without the settings that a switch applies.

        If no switch shapes the direction, `plan` is returned unchanged.

        Raises:
            InputError: `shaped_by: switch` is set, but the sending node is not a switch.
        """
        return remove_switch_share(plan) if self._is_shaped(link, direction) else plan

    def plan_node(
        self,
        node: str,
        directions: Mapping[tuple[str, DirectionName], DirectionPlan],
        max_packet_bytes: Mapping[str, int | None],
    ) -> SwitchPlan:
        """Return the plan of a switch: its pipeline, and one port per link.

        A port has the settings that the switch applies to the direction that leaves by the port.

        Raises:
            InputError: The switch does not support a setting, or a file of the user's program is
                wrong.
        """
        links = [
            name for name, link in self._request.experiment.links.items() if node in link.between
        ]
        own_pipeline = self._plan_own_pipeline(node, len(links))
        ports = []
        for number, link in enumerate(links, start=1):
            direction = self._request.topology.get_direction(link, node)
            shaped_settings = None
            if self._is_shaped(link, direction):
                shaped_settings = self._plan_shaped_settings(
                    node, link, direction, directions[link, direction]
                )
            packet_bytes = max_packet_bytes[link]
            rate_bps = shaped_settings.rate_bps if shaped_settings else None
            if rate_bps is not None and packet_bytes is None and self._target.counts_packets:
                raise self._request.error(
                    self._request.locate_setting(link, direction, "rate"),
                    f"{self._target.title} needs the size of packets to shape a rate, but no flow "
                    "crosses this link",
                    "use --switch nagi, or write `shaped_by: emulator`",
                )
            ports.append(
                SwitchPortPlan(
                    number=number,
                    link=link,
                    imposes=shaped_settings,
                    packet_bytes=packet_bytes,
                    sample_every=find_sample_interval(rate_bps, packet_bytes)
                    if rate_bps and packet_bytes and own_pipeline is None
                    else None,
                )
            )
        if own_pipeline is None:
            return SwitchPlan(sha256=hash_edge_program(), ports=ports)
        return SwitchPlan(
            pipeline="own",
            sha256=hash_text(own_pipeline.program),
            ports=ports,
            own=own_pipeline,
        )

    def list_shares_for_seed(self, nodes: Sequence[NodePlan]) -> list[Any]:
        """Return [node, {"link": ..., "imposes": settings}] for each direction that nodes shape."""
        shares = []
        for node in nodes:
            for port in node.switch.ports if node.switch else ():
                if port.imposes is None:
                    continue
                share = port.model_dump(mode="json", include={"link", "imposes"})
                restore_format_0_1(share["imposes"])
                shares.append([node.name, share])
        return shares

    def _plan_shaped_settings(
        self, node: str, link: str, direction: DirectionName, plan: DirectionPlan
    ) -> DirectionPlan:
        """Return the settings of a direction that its switch applies.

        Raises:
            InputError: The switch does not support a setting of the direction.
        """
        has_user_program = self._get_own_program(node) is not None
        try:
            return get_switch_share(plan, self._target, has_user_program=has_user_program)
        except UnsupportedShaping as error:
            key_path = self._request.locate_setting(link, direction, error.key)
            raise self._request.error(key_path, error.message, error.cure) from None

    def _is_shaped(self, link: str, direction: DirectionName) -> bool:
        """Return whether a switch shapes a direction.

        Raises:
            InputError: `shaped_by: switch` is set, but the sending node is not a switch.
        """
        experiment = self._request.experiment
        settings = self._request.get_settings(experiment.links[link], direction)
        if settings.shaped_by != "switch":
            return False
        node = self._request.find_sending_node(link, direction)
        if node not in self.nodes:
            other: DirectionName = "backward" if direction == "forward" else "forward"
            raise self._request.error(
                self._request.locate_setting(link, direction, "shaped_by"),
                f"the sending node of direction {direction} is {node}, which is a "
                f"{experiment.get_kind(node)} and not a switch",
                f"write `shaped_by` only under `{other}:`, or make {node} a switch",
            )
        return True

    def _get_own_program(self, node: str) -> OwnProgram | None:
        """Return the settings of the user's P4 program of a switch, or None for edge.p4."""
        settings = self._request.experiment.nodes[node]
        return settings.switch if isinstance(settings, SwitchSettings) else None

    def _plan_own_pipeline(self, node: str, port_count: int) -> OwnPipelinePlan | None:
        """Return the plan of the user's P4 program of a switch, or None for edge.p4.

        Args:
            node: The switch.
            port_count: The number of ports of the switch.
        """
        settings = self._get_own_program(node)
        if settings is None:
            return None
        key_path = ("nodes", node, "switch")
        return self._request.memo.get_or_make(
            partial(plan_own_pipeline, self._request, key_path, settings, self._target, port_count),
            ("own", node, port_count),
            settings,
        )


part = SwitchPlanner
