# SPDX-License-Identifier: Apache-2.0
"""live.json: a topology that `nagi up` keeps running, for `nagi shell` and `nagi down`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract


class LiveNode(Contract):
    """A node of a live topology."""

    node: str
    host: str = Field(description="the host's name in Ansible")
    addresses: dict[str, str] = Field(
        description="link -> the node's IP address on this link, with prefix length"
    )
    spool: str = Field(description="on the emulator: directory of nagi-link's control socket")
    nagi_link: str = Field(description="on the emulator: path of nagi-link")


class Live(Contract):
    """live.json: a topology that keeps running, with its nodes, files and processes."""

    schema_version: Literal[1] = 1
    lab: Literal["netns", "physical"]
    experiment: str
    point: dict[str, str]
    directory: str = Field(description="directory of the controller's files for the topology")
    nodes: list[LiveNode]
    keeper: int | None = Field(
        None, description="lab netns: id of the process that owns the namespaces"
    )
    keeper_started: int | None = Field(
        None,
        description="start time of process `keeper` (proc(5), field 22), because ids are reused",
    )
    cell: str
    inventory: str | None = Field(None, description="lab physical: path of the inventory")
    expires_s: float | None = Field(
        None,
        description="lab physical: when the hosts restore themselves; seconds since the epoch",
    )
