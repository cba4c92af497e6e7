# SPDX-License-Identifier: Apache-2.0
"""live.json: a topology that `nagi up` keeps, for `nagi shell` and `nagi down`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract


class LiveNode(Contract):
    """A node that is up."""

    node: str
    host: str = Field(description="Ansible's name for it")
    addresses: dict[str, str] = Field(description="link -> its address there, with prefix length")
    spool: str = Field(description="on the emulator: where nagi-link's control socket is")
    nagi_link: str = Field(description="on the emulator: the program")


class Live(Contract):
    """One live topology."""

    schema_version: Literal[1] = 1
    lab: Literal["netns", "physical"]
    experiment: str
    point: dict[str, str]
    directory: str = Field(description="the controller's files for it")
    nodes: list[LiveNode]
    keeper: int | None = Field(None, description="netns: the process in whose namespaces it is")
    keeper_started: int | None = Field(
        None, description="when that process began (proc(5), field 22), as numbers are used again"
    )
    cell: str
    inventory: str | None = Field(None, description="physical: the inventory")
    expires_s: float | None = Field(
        None, description="physical: when hosts put themselves back; seconds since the epoch"
    )
