# SPDX-License-Identifier: Apache-2.0
"""What `nagi doctor` finds: its `--json`. And what it reads beside the inspections of agents."""

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
# Of `nagi doctor radio`: GNU Radio itself, our blocks in it, waveforms there and back, packets of
# all sizes, packets of an interface. Of radio hardware also UHD's images, devices and their rates.
StageOfRadio = Literal[
    "library", "flowgraph", "images", "device", "rate", "loopback", "packets", "ip"
]
# Of `nagi doctor fpga`, from what loads a board to packets through it.
StageOfFpga = Literal[
    "tools", "cable", "board", "bitstream", "build", "registers", "link", "loopback"
]
Stage = HostStage | StageOfRadio | StageOfFpga
# In the order in which they are looked at.
STAGES: tuple[HostStage, ...] = get_args(HostStage)
STAGES_OF_RADIO: tuple[StageOfRadio, ...] = ("library", "flowgraph", "loopback", "packets", "ip")
STAGES_OF_DEVICES: tuple[StageOfRadio, ...] = (
    "library", "images", "device", "rate", "loopback", "packets", "ip"
)  # fmt: skip
STAGES_OF_FPGA: tuple[StageOfFpga, ...] = get_args(StageOfFpga)
Status = Literal["ok", "skipped", "warning", "failure"]


class ClockReading(Contract):
    """A host's clock against the controller's: `offset_s` ahead of it, give or take
    `halfwidth_s`."""

    offset_s: float
    halfwidth_s: float

    @classmethod
    def within(cls, begun_s: float, ended_s: float, said_s: float) -> Self:
        """The host said it was `said_s` at some time between two of the controller's."""
        return cls(
            offset_s=said_s - (begun_s + ended_s) / 2,
            halfwidth_s=(ended_s - begun_s) / 2,
        )


class PathReading(Contract):
    """One link of an idle testbed, tried from one of its ends: pings there and back."""

    link: str
    from_node: str
    to_node: str
    sent: int = Field(description="pings of each size")
    answered: int = Field(description="small ones")
    rtt_min_ms: float | None = Field(description="null: none was answered")
    rtt_median_ms: float | None
    mtu: int = Field(description="of the interface; size of the large pings in IP bytes")
    full_size_answered: int


class RadioStage(Contract):
    """A line of what `nagi-sdr doctor --json` prints: how far this machine can be a radio."""

    stage: StageOfRadio
    ok: bool
    detail: str = Field(description="what was found")
    cure: str | None = Field(None, description="of one that does not do")


class PortReading(Contract):
    """One interface of the emulator, after the paths have been tried."""

    link: str
    node: str = Field(description="which it faces")
    interface: str
    received: int = Field(description="packets")
    sent: int


class Finding(Contract):
    """One thing that was looked at."""

    stage: Stage
    cell: str | None = Field(description="null: about hosts of several cells")
    hosts: list[str]
    status: Status = Field(description="skipped: it could not be looked at")
    what: str
    cure: str = Field(description="empty if, and only if, the status is ok")

    @model_validator(mode="after")
    def _has_its_cure(self) -> Self:
        if (self.status == "ok") != (self.cure == ""):
            raise ValueError(f"a finding that is {self.status} with the cure {self.cure!r}")
        return self


class Doctor(Contract):
    """Everything that was looked at, stage by stage."""

    schema_version: Literal[1] = 1
    status: Literal["ok", "warning", "failure"] = Field(
        description="the worst of the findings'; what was skipped does not count"
    )
    findings: list[Finding]

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Self:
        listed = list(findings)
        found = {finding.status for finding in listed}
        if "failure" in found:
            return cls(status="failure", findings=listed)
        return cls(status="warning" if "warning" in found else "ok", findings=listed)

    @property
    def exit_status(self) -> int:
        """0, or 2 if anything would keep runs from being done."""
        return 2 if self.status == "failure" else 0

    def count(self, status: Status) -> int:
        return sum(finding.status == status for finding in self.findings)
