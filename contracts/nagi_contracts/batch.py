# SPDX-License-Identifier: Apache-2.0
"""The batch that a lab sends to one agent: the agent's role in the lab, and its runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_empty
from nagi_contracts.plan import RunPlan


class ScheduledRun(Contract):
    offset_s: float = Field(description="time from the start of the batch to that of the run")
    plan: RunPlan


class P4RuntimeAccess(Contract):
    """The P4Runtime server of a switch, and the settings to use it."""

    address: str = Field(description="HOST:PORT of the P4Runtime server, or unix:PATH")
    device_id: int = 1
    ports: dict[str, int] = Field(
        {}, description="link -> number of the switch's port; empty: as in the plans"
    )
    pipeline: Literal["set", "running"] = Field(
        "set",
        description="set: nagi sets the switch's pipeline; running: the switch already has it",
    )
    modules: str | None = Field(
        None,
        description="directory of Python modules, with finsy; null: Python's own search path",
    )


class P4RuntimePrograms(Contract):
    """The paths of programs that a host without a P4Runtime switch starts as one."""

    simple_switch_grpc: str | None = Field(None, description="bmv2's switch; it is preferred")
    nagi_p4runtime: str | None = Field(None, description="P4Runtime server in front of nagi-switch")
    modules: str | None = Field(None, description="as in P4RuntimeAccess")


class SwitchPrograms(Contract):
    """Batch.backends of the backend `switch`."""

    nagi_switch: str | None = Field(
        None, description="path of nagi-switch; null: the node is not a switch"
    )
    simple_switch: str | None = Field(
        None, description="path of bmv2's program; null: search the host's PATH"
    )
    simple_switch_client: str | None = Field(
        None, description="directory of bmv2's Python modules; null: Python's own search path"
    )
    p4runtime: P4RuntimeAccess | None = Field(
        None, description="the P4Runtime switch of this node; null: the inventory names none"
    )
    p4runtime_here: P4RuntimePrograms | None = Field(
        None,
        description="in labs on one machine: programs to start as P4Runtime switch; null: none",
    )


class Batch(Contract):
    """batch.json: the runs in which an agent takes part, and its role in the lab."""

    schema_version: Literal[1] = 1
    node: str
    is_emulator: bool
    interfaces: dict[str, str] | dict[str, tuple[str, ...]] = Field(
        description="link or medium -> interface; on the emulator, the interfaces towards the two "
        "ends of the link, or towards all stations of the medium"
    )
    macs: dict[str, tuple[str, ...]] = Field(
        {},
        exclude_if=is_empty,
        description="on the emulator, medium -> MAC addresses of its stations, if they differ from "
        "the plan's",
    )
    spool: str = Field(description="directory on the agent's host for its records")
    state: str = Field(description="directory on the agent's host for locks and journals")
    user: str | None = Field(
        None,
        description="user that runs traffic programs and tcpdump; null: the service user `nagi` if "
        "it exists, else nobody",
    )
    token: str | None = Field(
        None,
        description="token of the campaign for which the host must be reserved; null: the host "
        "need not be reserved",
    )
    nagi_link: str = Field(description="path of nagi-link")
    backends: dict[str, dict[str, Any]] = Field(
        {},
        exclude_if=is_empty,
        description="backend -> programs and settings of its share in the agent, which only the "
        "backend reads (nagi/backends); it is left out if this node does nothing for the backend",
    )
    virtual: bool = Field(
        False,
        description="whether the host is a guest of the virtual lab: time stands still while "
        "programs run, and the kernel has nagi's schemes as modules, by the plans' names",
    )
    files: dict[str, str] = Field(
        {},
        exclude_if=is_empty,
        description="files of commands on the agent's host: SHA-256/NAME -> path",
    )
    runs: list[ScheduledRun]
    collected: list[str] = Field(
        [], description="earlier runs whose records are no longer needed on the agent's host"
    )
