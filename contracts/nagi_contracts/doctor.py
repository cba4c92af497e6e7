# SPDX-License-Identifier: Apache-2.0
"""The output of `nagi doctor --json`, and the measurements that nagi makes for its findings.

Agents report the other facts: nagi_contracts/inspection.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from nagi_contracts.base import Contract

Status = Literal["ok", "skipped", "warning", "failure"]


class ClockReading(Contract):
    """A comparison of two clocks: a host's clock is `offset_s` +- `halfwidth_s` ahead of nagi's."""

    offset_s: float
    halfwidth_s: float

    @classmethod
    def from_exchange(cls, request_s: float, reply_s: float, host_s: float) -> Self:
        """Compute the comparison from one request to the host and its reply.

        The offset assumes that request and reply take the same time. Its halfwidth is half the time
        from the request to the reply.

        Args:
            request_s: The time of sending the request, by the clock of the machine that runs nagi.
            reply_s: The time of receiving the reply, by the same clock.
            host_s: The time of the host's clock, as the reply contains it.
        """
        return cls(
            offset_s=host_s - (request_s + reply_s) / 2,
            halfwidth_s=(reply_s - request_s) / 2,
        )


class PathReading(Contract):
    """The results of pings over one link of an idle testbed, from one end to the other end."""

    link: str
    from_node: str
    to_node: str
    sent: int = Field(description="number of small pings sent, and of large pings sent")
    answered: int = Field(description="number of small pings answered")
    rtt_min_ms: float | None = Field(description="null: no ping was answered")
    rtt_median_ms: float | None
    mtu: int = Field(description="MTU of the interface: size of the large pings in IP bytes")
    full_size_answered: int = Field(description="number of large pings answered")


class PortReading(Contract):
    """The packet counts of one interface of the emulator after the pings of PathReading."""

    link: str
    node: str = Field(description="node at the other end of the interface's cable")
    interface: str
    received: int = Field(description="packets received")
    sent: int


class Finding(Contract):
    """The result of one check of `nagi doctor`."""

    stage: str = Field(
        description="group of checks, such as ssh; for `nagi doctor NAME`, the step of the check"
    )
    cell: str | None = Field(description="null: the finding is about hosts of several cells")
    hosts: list[str]
    status: Status = Field(description="skipped: the check was not possible")
    what: str = Field(description="the result, in words")
    cure: str = Field(description="empty if, and only if, the status is ok")

    @model_validator(mode="after")
    def _check_cure(self) -> Self:
        if (self.status == "ok") != (self.cure == ""):
            raise ValueError(f"a finding that is {self.status} with the cure {self.cure!r}")
        return self


class Doctor(Contract):
    """The output of `nagi doctor --json`: all findings, ordered by stage."""

    schema_version: Literal[1] = 1
    status: Literal["ok", "warning", "failure"] = Field(
        description="the worst status of all findings; skipped checks do not count"
    )
    findings: list[Finding]

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> Self:
        """Return the output for these findings, with the worst of their statuses.

        Skipped checks count like checks that are ok.
        """
        collected = list(findings)
        statuses = {finding.status for finding in collected}
        if "failure" in statuses:
            return cls(status="failure", findings=collected)
        return cls(status="warning" if "warning" in statuses else "ok", findings=collected)

    @property
    def exit_status(self) -> int:
        """The exit status of `nagi doctor`: 2 if any finding is a failure, otherwise 0."""
        return 2 if self.status == "failure" else 0

    def count(self, status: Status) -> int:
        """Return the number of findings with a status."""
        return sum(finding.status == status for finding in self.findings)
