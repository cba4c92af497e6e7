# SPDX-License-Identifier: Apache-2.0
"""The run plan: everything one run needs, resolved. The one contract between the experiment side
and every lab; a lab adds nothing to a run that its plan does not say.

Instants are seconds from the start of the run.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from nagi.contracts.base import Contract

Way = Literal["forward", "backward"]


class QueueLimit(Contract):
    """Drop-tail limit of what waits; one of the two."""

    packets: int | None = None
    bytes: int | None = None


class LossPlan(Contract):
    """A loss model with its parameters, in the terms of nagi-link's configuration."""

    model: Literal["none", "bernoulli", "poisson"]
    probability: float | None = None
    packet_loss_rate: float | None = None
    packet_bytes: int | None = None
    at: Literal["ingress", "egress"] = "egress"


class DirectionPlan(Contract):
    """One direction of a link; nagi-link takes it as it stands, without what is null."""

    rate_bps: int | None = None
    overhead_bytes: int = 0
    delay_ns: int = 0
    queue: QueueLimit | None = None
    loss: LossPlan = LossPlan(model="none")


class LinkEnd(Contract):
    node: str
    address: str = Field(description="of the node's interface on this link, with prefix length")


class LinkPlan(Contract):
    """A link; forward is from its first end to its second."""

    name: str
    id: int = Field(description="names the link in random draws")
    ends: tuple[LinkEnd, LinkEnd]
    forward: DirectionPlan
    backward: DirectionPlan


class RoutePlan(Contract):
    """A route of a node, with what Linux attaches to it: see ip-route(8)."""

    destination: str
    via: str | None = Field(description="next hop; null if the destination is on the link")
    link: str
    mtu: int | None = Field(None, description="locked: IP bytes of a full-size packet")
    advmss: int | None = Field(None, description="MSS to advertise, options included")
    initcwnd: int | None = Field(None, description="initial window, packets")
    quickack: bool = Field(False, description="acknowledge every segment at once")


class NodePlan(Contract):
    name: str
    kind: Literal["host", "router"]
    sysctls: dict[str, str]
    routes: list[RoutePlan]


class Hop(Contract):
    link: str
    way: Way


class FlowPlan(Contract):
    """One TCP connection."""

    name: str
    sender: str
    receiver: str
    sender_address: str
    receiver_address: str
    port: int
    scheme: str
    congestion_control: str = Field(description="the kernel's name")
    traffic: Literal["bulk"]
    payload_bytes: int = Field(description="payload of a full-size segment (MSS)")
    packet_bytes: int = Field(description="IP bytes of a full-size segment")
    max_window: int | None = Field(None, description="cap of the congestion window, packets")
    start_s: float
    end_s: float
    path: list[Hop]
    bottleneck_bps: int = Field(description="smallest configured rate on the path")
    base_rtt_s: float = Field(description="propagation there and back")


class CapturePlan(Contract):
    node: str
    link: str
    file: str
    snap_bytes: int = 128


class Timeline(Contract):
    """When each phase of the run begins, and when the run must be over."""

    capture_s: float
    serve_s: float
    traffic_s: float
    traffic_end_s: float
    capture_end_s: float
    end_s: float


class Interval(Contract):
    start_s: float
    end_s: float


class ExperimentRef(Contract):
    name: str
    form: str | None


class RunPlan(Contract):
    """One run."""

    schema_version: Literal[1] = 1
    run_id: str = Field("", description="hash of plan and build")
    point_id: str = Field("", description="hash of the plan without repeat and seed")
    experiment: ExperimentRef
    point: dict[str, str] = Field(description="axis of the matrix -> value, as the file has it")
    repeat: int
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    host_profile: str
    nodes: list[NodePlan]
    links: list[LinkPlan]
    flows: list[FlowPlan]
    captures: list[CapturePlan]
    tcp_info_interval_s: float
    timeline: Timeline
    measure: Interval

    def with_ids(self, build: str) -> RunPlan:
        """This plan with its ids, when run by `build`."""
        everything = self.model_dump(mode="json", exclude={"run_id", "point_id"})
        point = {key: value for key, value in everything.items() if key not in ("repeat", "seed")}
        return self.model_copy(
            update={
                "run_id": digest({"plan": everything, "build": build}),
                "point_id": digest(point),
            }
        )

    def node(self, name: str) -> NodePlan:
        return next(node for node in self.nodes if node.name == name)

    def link(self, name: str) -> LinkPlan:
        return next(link for link in self.links if link.name == name)


def digest(value: object) -> str:
    """16 hexadecimal digits that stand for a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
