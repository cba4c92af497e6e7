# SPDX-License-Identifier: Apache-2.0
"""The plan of one run: nodes, links, flows, captures and the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import (
    RUN_CURE,
    Contract,
    Instant,
    PlainNameOrEmpty,
    is_empty,
    is_none,
)
from nagi_contracts.media import FRAMING_BYTES, MediumPlan
from nagi_contracts.memo import Memo
from nagi_contracts.plan.direction import SHAPED_FIELDS, DirectionPlan
from nagi_contracts.plan.flow import CapturePlan, CommandFile, FlowPlan
from nagi_contracts.plan.ids import hash_text, join_object, part_to_json, to_canonical_json
from nagi_contracts.plan.link import LinkDirection, LinkPlan
from nagi_contracts.plan.node import NodePlan
from nagi_contracts.plan.switch import SwitchPortPlan, SwitchTarget


class Timeline(Contract):
    """The instants at which the phases of a run begin, and at which the run must have ended."""

    capture_s: Instant
    serve_s: Instant
    traffic_s: Instant
    traffic_end_s: Instant
    capture_end_s: Instant
    end_s: Instant


class Interval(Contract):
    """The interval of a run over which results are computed."""

    start_s: Instant
    end_s: Instant


class ExperimentRef(Contract):
    """The experiment, and its variant if it has variants, to which a run belongs."""

    name: str
    variant: str | None


class RunPlan(Contract):
    """The plan of one run."""

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty = Field("", description="hash of the plan and the build")
    point_id: str = Field(
        "", description="hash of the plan without repeat, seed and the switches' target"
    )
    experiment: ExperimentRef
    point: dict[str, str] = Field(
        description="axis of the matrix -> value, as written in the experiment file"
    )
    repeat: int
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    host_profile: str = Field(description="entry of hosts/profiles.yaml with the hosts' sysctls")
    switch_target: SwitchTarget | None = Field(
        None,
        exclude_if=is_none,
        description="kind of all switches: nagi-switch, bmv2's simple_switch, or a switch "
        "controlled by P4Runtime; null: the topology has no switches",
    )
    nodes: list[NodePlan]
    links: list[LinkPlan]
    media: list[MediumPlan] = Field([], exclude_if=is_empty)
    flows: list[FlowPlan]
    captures: list[CapturePlan]
    tcp_info_interval_s: float
    timeline: Timeline
    measure: Interval = Field(description="measurement interval")

    def with_ids(self, build: str, memo: Memo | None = None) -> RunPlan:
        """Return a copy of this plan with its run id and its point id.

        Both are hashes of the plan. The run id also depends on the build. The point id does not
        depend on the repeat, the seed or the switch target.

        Args:
            build: The id of the build that executes the run.
            memo: A cache that several calls share, so that objects that several plans have in
                common are converted to JSON only once. None means no cache.
        """
        texts = self._encode_fields(memo or Memo())
        without = ("repeat", "seed", "switch_target")
        point = join_object({key: text for key, text in texts.items() if key not in without})
        run = join_object({"plan": join_object(texts), "build": to_canonical_json(build)})
        return self.model_copy(update={"run_id": hash_text(run), "point_id": hash_text(point)})

    def _encode_fields(self, memo: Memo) -> dict[str, str]:
        """Return name of the field -> canonical JSON of its value, without the ids."""
        shared: dict[str, Sequence[Contract]] = {
            "nodes": self.nodes,
            "links": self.links,
            "flows": self.flows,
            "captures": self.captures,
        }
        if self.media:
            shared["media"] = self.media
        others = self.model_dump(mode="json", exclude={"run_id", "point_id", *shared})
        texts = {key: to_canonical_json(value) for key, value in others.items()}
        for key, parts in shared.items():
            written = [
                memo.get_or_make(partial(part_to_json, part), "JSON", part) for part in parts
            ]
            texts[key] = f"[{','.join(written)}]"
        return texts

    def node(self, name: str) -> NodePlan:
        """Return the node with a name, which must exist."""
        return next(node for node in self.nodes if node.name == name)

    def link(self, name: str) -> LinkPlan:
        """Return the link with a name, which must exist."""
        return next(link for link in self.links if link.name == name)

    def medium(self, name: str) -> MediumPlan:
        """Return the medium with a name, which must exist."""
        return next(medium for medium in self.media if medium.name == name)

    def ip_version(self) -> Literal[4, 6]:
        """Return the IP version of all addresses of the run."""
        return 6 if ":" in self.flows[0].sender_address else 4

    def files(self) -> list[CommandFile]:
        """Return the `files` of all flows with a command; a file of two flows occurs twice."""
        return [file for flow in self.flows if flow.command for file in flow.command.files]

    def carried_by(self, backend: str) -> list[LinkPlan]:
        """Return the links that a backend, such as `radio`, emulates; `link` is nagi-link."""
        return [link for link in self.links if link.backend == backend]

    def records_transmissions(self) -> bool:
        """Return whether the emulator records the transmissions of any link."""
        return any(link.records_transmissions for link in self.links)

    def switches(self) -> list[NodePlan]:
        """Return the nodes that are switches."""
        return [node for node in self.nodes if node.switch is not None]

    def sender_of(self, direction: LinkDirection) -> str:
        """Return the node that sends packets into a direction of a link or medium."""
        if direction.sender is not None:
            return direction.sender
        return self.link(direction.link).ends[0 if direction.direction == "forward" else 1].node

    def receiver_of(self, direction: LinkDirection) -> str:
        """Return the node that receives packets from a direction of a link or medium."""
        return self.sender_of(direction.reversed())

    def port(self, direction: LinkDirection) -> SwitchPortPlan | None:
        """Return the switch port that sends packets into a direction.

        Return None for a hop over a medium, and if the direction's sender is not a switch.
        """
        switch = None if direction.is_hop else self.node(self.sender_of(direction)).switch
        if switch is None:
            return None
        return next(port for port in switch.ports if port.link == direction.link)

    def switch_settings(self, direction: LinkDirection) -> DirectionPlan | None:
        """Return the settings that a switch applies to a direction in place of the emulator.

        Return None if no switch applies settings to the direction.
        """
        port = self.port(direction)
        return None if port is None else port.imposes

    def channel(self, direction: LinkDirection) -> DirectionPlan:
        """Return all settings of a direction, whether the emulator or a switch applies them.

        For a hop over a medium, return only the data rate, framing, queue and loss, which do not
        depend on other stations.
        """
        if direction.is_hop:
            medium = self.medium(direction.link)
            return DirectionPlan(
                rate_bps=medium.data_rate_bps,
                overhead_bytes=FRAMING_BYTES,
                queue=medium.queue,
                loss=medium.loss,
            )
        emulator_plan = self.link(direction.link).direction(direction.direction)
        switch_plan = self.switch_settings(direction)
        if switch_plan is None:
            return emulator_plan
        shaped_values = {name: getattr(switch_plan, name) for name in SHAPED_FIELDS}
        return emulator_plan.model_copy(update=shaped_values)
