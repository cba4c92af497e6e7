# SPDX-License-Identifier: Apache-2.0
"""What a lab ships to one agent: its place in the lab, and the runs to take part in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_empty, is_none
from nagi_contracts.plan import RunPlan


class ScheduledRun(Contract):
    offset_s: float = Field(description="begins so long after the batch does")
    plan: RunPlan


class P4RuntimeAccess(Contract):
    """How a host reaches a switch by P4Runtime."""

    address: str = Field(description="HOST:PORT of the P4Runtime server, or unix:PATH")
    device_id: int = 1
    ports: dict[str, int] = Field(
        {}, description="link -> number of the switch's port; none: as plans number them"
    )
    pipeline: Literal["set", "running"] = Field(
        "set", description="whether the switch is given its pipeline, or runs it already"
    )
    modules: str | None = Field(
        None, description="directory of Python modules, finsy among them; null: where Python looks"
    )


class P4RuntimePrograms(Contract):
    """What a host that reaches no switch starts in the place of one, by path."""

    simple_switch_grpc: str | None = Field(None, description="bmv2's; it is preferred")
    nagi_p4runtime: str | None = Field(None, description="P4Runtime's server over nagi-switch")
    modules: str | None = Field(None, description="as P4RuntimeAccess has it")


class Batch(Contract):
    """batch.json"""

    schema_version: Literal[1] = 1
    node: str
    is_emulator: bool
    interfaces: dict[str, str] | dict[str, tuple[str, ...]] = Field(
        description="link or medium -> interface; on the emulator, the interfaces that face the "
        "link's two ends, or all of the medium's stations"
    )
    macs: dict[str, tuple[str, ...]] = Field(
        {},
        exclude_if=is_empty,
        description="on the emulator, medium -> MAC addresses of its stations, where they are not "
        "the plan's",
    )
    spool: str = Field(description="directory on the agent's host for its records")
    state: str = Field(description="directory on that host for locks and journals")
    user: str | None = Field(
        None,
        description="traffic programs and tcpdump run as this user; null: as `nagi` where there is "
        "such a service user, else as nobody",
    )
    token: str | None = Field(
        None, description="for whom the host must be held; null: hosts need not be held"
    )
    nagi_link: str = Field(description="path of the program nagi-link")
    nagi_sdr: str | None = Field(
        None,
        exclude_if=is_none,
        description="path of the program nagi-sdr, which is the emulator of plans with radios",
    )
    nagi_fpga: str | None = Field(
        None,
        exclude_if=is_none,
        description="path of the program nagi-fpga, which simulates an FPGA's core",
    )
    fpga_images: str | None = Field(
        None,
        exclude_if=is_none,
        description="directory of boards' bitstreams, of plans whose links are on boards",
    )
    nagi_switch: str | None = Field(None, description="path of nagi-switch; null: not a switch")
    simple_switch: str | None = Field(
        None, description="path of bmv2's program; null: where the host's programs are"
    )
    simple_switch_client: str | None = Field(
        None, description="directory of bmv2's Python modules; null: where Python looks for such"
    )
    p4runtime: P4RuntimeAccess | None = Field(
        None, exclude_if=is_none, description="the switch that this node is; null: none is given"
    )
    p4runtime_here: P4RuntimePrograms | None = Field(
        None,
        exclude_if=is_none,
        description="what is started instead, in labs on one machine; null: nothing",
    )
    virtual: bool = Field(
        False,
        description="in a guest of the virtual lab: time stands still while programs run, and the "
        "kernel has schemes of ours as modules, by the plans' names",
    )
    files: dict[str, str] = Field(
        {},
        exclude_if=is_empty,
        description="where the agent's host has the files of commands: SHA-256/NAME -> path",
    )
    runs: list[ScheduledRun]
    collected: list[str] = Field(
        [], description="earlier runs whose records are no longer needed on that host"
    )
