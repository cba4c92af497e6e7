# SPDX-License-Identifier: Apache-2.0
"""Nodes that are switches: their P4 pipeline and their ports."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nagi_contracts.base import Contract, is_none
from nagi_contracts.plan.direction import DirectionPlan

SwitchTarget = Literal["nagi", "bmv2", "p4runtime"]


# Targets that do not log every packet that they drop.
TARGETS_WITHOUT_DROP_LOG: tuple[SwitchTarget, ...] = ("bmv2",)


class SwitchPortPlan(Contract):
    """A port of a switch."""

    number: int
    link: str
    imposes: DirectionPlan | None = Field(
        None,
        description="rate, queue, marking and loss that the switch applies, in place of the "
        "emulator, to packets that leave by this port; null: the switch applies none",
    )
    packet_bytes: int | None = Field(
        None,
        description="IP bytes of a full-size packet, by which rates are converted for targets that "
        "support only rates in packets per second",
    )
    sample_every: int | None = Field(
        None, description="report the queue for one in this many packets; null: no reports"
    )


class OwnPipelinePlan(Contract):
    """A user's own P4 program with all its files, so that the plan is sufficient for a repetition.

    `program`, `p4info`, `entries` and the values of `files` are contents of files, not paths.
    """

    name: str = Field(description="name of the file in the experiment")
    program: str = Field(description="bmv2's JSON, as p4c compiled it")
    p4info: str | None = Field(
        None, description="P4Info of P4Runtime, in protobuf's text format; null: not given"
    )
    entries: str | None = Field(
        None, description="operations to apply at the start, one line of JSON each; null: none"
    )
    cpu_port: int | None = Field(
        None, description="port number of packet-in and packet-out; null: none"
    )
    controller: list[str] | None = Field(
        None, description="command line of the user's controller, started with the switch"
    )
    files: dict[str, str] = Field(
        {}, description="file name -> text of each file that the controller needs"
    )


class SwitchPlan(Contract):
    """The P4 pipeline of a switch, and its ports."""

    pipeline: Literal["edge", "own"] = Field(
        "edge", description="edge: p4/edge.p4; own: the user's program"
    )
    sha256: str = Field(description="SHA-256 of the P4 compiler's output")
    ports: list[SwitchPortPlan]
    own: OwnPipelinePlan | None = Field(
        None, exclude_if=is_none, description="for pipeline `own`: the user's program"
    )
