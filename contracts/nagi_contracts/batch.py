# SPDX-License-Identifier: Apache-2.0
"""The batch that a lab sends to one agent: the agent's role in the lab, and its runs."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_empty
from nagi_contracts.plan import RunPlan


class ScheduledRun(Contract):
    """A run of a batch, and the time of its start."""

    offset_s: float = Field(description="start of the run, in seconds from the start of the batch")
    plan: RunPlan


class P4RuntimeAccess(Contract):
    """The P4Runtime server of a switch, and the settings to use it."""

    address: str = Field(description="HOST:PORT of the P4Runtime server, or unix:PATH")
    device_id: int = 1
    ports: dict[str, int] = Field(
        {}, description="link -> number of the switch's port; empty: use the numbers in the plans"
    )
    pipeline: Literal["set", "running"] = Field(
        "set",
        description="set: nagi sets the switch's pipeline; running: the switch already has it",
    )
    modules: str | None = Field(
        None,
        description="directory of Python modules that contains finsy; null: Python's search path",
    )


class P4RuntimePrograms(Contract):
    """The paths of programs that a host can start as a P4Runtime switch if it has none."""

    simple_switch_grpc: str | None = Field(
        None, description="bmv2's switch; it is used if both programs are available"
    )
    nagi_p4runtime: str | None = Field(None, description="P4Runtime server in front of nagi-switch")
    modules: str | None = Field(None, description="see P4RuntimeAccess.modules")


class SwitchPrograms(Contract):
    """The entry of the backend `switch` in Batch.backends."""

    nagi_switch: str | None = Field(
        None, description="path of nagi-switch; null: the node is not a switch"
    )
    simple_switch: str | None = Field(
        None, description="path of bmv2's program; null: search the host's PATH"
    )
    simple_switch_client: str | None = Field(
        None, description="directory of bmv2's Python modules; null: Python's search path"
    )
    p4runtime: P4RuntimeAccess | None = Field(
        None, description="the P4Runtime switch of this node; null: none in the inventory"
    )
    p4runtime_here: P4RuntimePrograms | None = Field(
        None,
        description="in labs on one machine: programs that the agent can start as P4Runtime "
        "switch; null: the plans need none",
    )


class Batch(Contract):
    """batch.json: the runs in which an agent takes part, and its role in the lab."""

    schema_version: Literal[1] = 1
    node: str
    is_emulator: bool
    interfaces: dict[str, str] | dict[str, tuple[str, ...]] = Field(
        description="link or medium -> interface of this node; on the emulator, its interfaces to "
        "the two ends of the link, or to all stations of the medium"
    )
    macs: dict[str, tuple[str, ...]] = Field(
        {},
        exclude_if=is_empty,
        description="on the emulator, medium -> MAC addresses of the medium's stations, if they "
        "differ from the addresses in the plan",
    )
    spool: str = Field(description="directory on the host in which the agent writes records")
    state: str = Field(description="directory on the host for the agent's locks and journals")
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
        description="backend -> programs and settings that only the backend's code in the agent "
        "reads (nagi/backends); a backend is left out if this node does nothing for it",
    )
    virtual: bool = Field(
        False,
        description="whether the host is a guest of the virtual lab, in which time stands still "
        "while programs run, and nagi's schemes are kernel modules with the names in the plans",
    )
    files: dict[str, str] = Field(
        {},
        exclude_if=is_empty,
        description="files of users' commands: SHA-256/NAME -> path on the agent's host",
    )
    runs: list[ScheduledRun]
    collected: list[str] = Field(
        [], description="earlier runs whose records are no longer needed on the agent's host"
    )
