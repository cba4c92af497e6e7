# SPDX-License-Identifier: Apache-2.0
"""Nodes: hosts, routers and switches, and their routes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, PlainName, is_none
from nagi_contracts.plan.switch import SwitchPlan


class RoutePlan(Contract):
    """A route of a node with the attributes that Linux attaches to it, see ip-route(8)."""

    destination: str
    via: str | None = Field(description="next hop; null if the destination is on the link")
    link: str
    mtu: int | None = Field(
        None, description="locked MTU of the route: IP bytes of a full-size packet"
    )
    advmss: int | None = Field(None, description="MSS to advertise, TCP options included")
    initcwnd: int | None = Field(None, description="initial window in packets")
    quickack: bool = Field(False, description="acknowledge every segment at once")
    congctl: str | None = Field(
        None, exclude_if=is_none, description="congestion control of all connections, locked"
    )


class NodePlan(Contract):
    """A node: its kind, its sysctls and its routes."""

    name: PlainName
    kind: Literal["host", "router", "switch"]
    sysctls: dict[str, str]
    routes: list[RoutePlan]
    switch: SwitchPlan | None = Field(
        None, exclude_if=is_none, description="for a node that is a switch: its pipeline and ports"
    )
