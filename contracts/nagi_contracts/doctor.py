# SPDX-License-Identifier: Apache-2.0
"""The findings of `nagi doctor --json`, and its measurements besides the agents' inspections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import Contract

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


class PortReading(Contract):
    """The packet counts of one interface of the emulator after the tests of the paths."""

    link: str
    node: str = Field(description="node at the other end of the interface's cable")
    interface: str
    received: int = Field(description="packets received")
    sent: int


class Finding(Contract):
    """The result of one examination."""

    stage: str = Field(
        description="what was examined, such as ssh, or a step of `nagi doctor NAME`"
    )
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
