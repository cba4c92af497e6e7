# SPDX-License-Identifier: Apache-2.0
"""The findings of `nagi doctor --json`, and its measurements besides the agents' inspections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self, get_args

from pydantic import Field, model_validator

from nagi_contracts.base import Contract

HostStage = Literal[
    "ssh",
    "versions",
    "kernel",
    "schemes",
    "interfaces",
    "clocks",
    "paths",
    "mtu",
    "capture",
    "emulator",
    "radio",
    "fpga",
    "switch",
    "processors",
    "disk",
    "lock",
    "leftovers",
]
# Stages of `nagi doctor radio`: GNU Radio itself, nagi's blocks in it, waveforms in a loopback,
# packets of all sizes, packets of an interface. For radio hardware, also UHD's images, the devices
# and their rates.
StageOfRadio = Literal[
    "library", "flowgraph", "images", "device", "rate", "loopback", "packets", "ip"
]
# Stages of `nagi doctor fpga`, from the tools that load a board to packets through the board.
StageOfFpga = Literal[
    "tools", "cable", "board", "bitstream", "build", "registers", "link", "loopback"
]
Stage = HostStage | StageOfRadio | StageOfFpga
# The stages in the order in which they are examined.
STAGES: tuple[HostStage, ...] = get_args(HostStage)
STAGES_OF_RADIO: tuple[StageOfRadio, ...] = ("library", "flowgraph", "loopback", "packets", "ip")
STAGES_OF_DEVICES: tuple[StageOfRadio, ...] = (
    "library", "images", "device", "rate", "loopback", "packets", "ip"
)  # fmt: skip
STAGES_OF_FPGA: tuple[StageOfFpga, ...] = get_args(StageOfFpga)
Status = Literal["ok", "skipped", "warning", "failure"]


class ClockReading(Contract):
    """A reading of a host's clock: it is `offset_s` +- `halfwidth_s` ahead of the controller's."""

    offset_s: float
    halfwidth_s: float

    @classmethod
    def from_exchange(cls, request_s: float, reply_s: float, host_s: float) -> Self:
        """Return the reading of a request and its reply.

        Args:
            request_s: When the request was sent, by the controller's clock.
            reply_s: When the reply was received, by the controller's clock.
            host_s: The time of the host's clock in the reply.
        """
        return cls(
            offset_s=host_s - (request_s + reply_s) / 2,
            halfwidth_s=(reply_s - request_s) / 2,
        )


class PathReading(Contract):
    """A measurement of one link of an idle testbed by pings from one of its ends."""

    link: str
    from_node: str
    to_node: str
    sent: int = Field(description="pings of each size")
    answered: int = Field(description="small pings answered")
    rtt_min_ms: float | None = Field(description="null: no ping was answered")
    rtt_median_ms: float | None
    mtu: int = Field(description="MTU of the interface: size of the large pings in IP bytes")
    full_size_answered: int


class RadioStage(Contract):
    """A line of the output of `nagi-sdr doctor --json`: one stage of its test of this machine."""

    stage: StageOfRadio
    ok: bool
    detail: str = Field(description="the finding")
    cure: str | None = Field(None, description="for a failed stage: what helps")


class PortReading(Contract):
    """The packet counts of one interface of the emulator after the tests of the paths."""

    link: str
    node: str = Field(description="node at the other end of the interface's cable")
    interface: str
    received: int = Field(description="packets received")
    sent: int


class Finding(Contract):
    """The result of one examination."""

    stage: Stage
    cell: str | None = Field(description="null: the finding is about hosts of several cells")
    hosts: list[str]
    status: Status = Field(description="skipped: the examination was not possible")
    what: str
    cure: str = Field(description="empty if, and only if, the status is ok")

    @model_validator(mode="after")
    def _check_cure(self) -> Self:
        if (self.status == "ok") != (self.cure == ""):
            raise ValueError(f"a finding that is {self.status} with the cure {self.cure!r}")
        return self


class Doctor(Contract):
    """All findings, stage by stage."""

    schema_version: Literal[1] = 1
    status: Literal["ok", "warning", "failure"] = Field(
        description="the worst status of all findings; skipped ones do not count"
    )
    findings: list[Finding]

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> Self:
        """Collect findings, and derive the status of all."""
        collected = list(findings)
        statuses = {finding.status for finding in collected}
        if "failure" in statuses:
            return cls(status="failure", findings=collected)
        return cls(status="warning" if "warning" in statuses else "ok", findings=collected)

    @property
    def exit_status(self) -> int:
        """The exit status: 2 if a failure would prevent runs, else 0."""
        return 2 if self.status == "failure" else 0

    def count(self, status: Status) -> int:
        """Return the number of findings with a status."""
        return sum(finding.status == status for finding in self.findings)
