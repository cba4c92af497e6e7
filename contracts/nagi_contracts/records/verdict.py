# SPDX-License-Identifier: Apache-2.0
"""verdict.json: the certificate of a run."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from nagi_contracts.base import RUN_CURE, Contract, PlainNameOrEmpty, is_empty, is_false

Status = Literal["valid", "invalid", "failed"]


class Check(Contract):
    """One check of the certificate: a measured value, and the limit that it must not exceed."""

    name: str
    description: str
    value: float | None = Field(description="null: not applicable")
    limit: float
    unit: str
    ok: bool
    subject: str = Field(
        "",
        description="link, capture or node with the worst value; or the reason why the value of "
        "some of them is unknown",
    )


class Information(Contract):
    """A measured value that has no limit."""

    name: str
    description: str
    value: float
    unit: str
    subject: str


class HostClock(Contract):
    """The offset of a host's clock from the emulator's clock during a run.

    The offset is a polyline through knots. See nagi_captures/clocks.py.
    """

    knots: list[tuple[int, int]] = Field(
        description="(ns since the run began by the host's clock, ns by which that clock is ahead "
        "of the emulator's)"
    )
    bound_ns: int = Field(description="largest error of the polyline")


NoiseCause = Literal[
    "stolen time",
    "cgroup limit",
    "hot processors",
    "busy processors",
    "waiting for processors",
    "waiting for memory",
    "waiting for input and output",
    "no noise recorded",
]


class Explanation(Contract):
    """The probable reason why a run failed its timing checks."""

    cause: NoiseCause
    description: str = Field(description="the recorded noise, as a sentence")
    cure: str = Field(description="what the user can do")


class Verdict(Contract):
    """verdict.json: the certificate of a run.

    The status is `valid` if every check is ok, and `failed` if the run did not complete.
    """

    damage_cure: ClassVar[str] = RUN_CURE

    schema_version: Literal[1] = 1
    run_id: PlainNameOrEmpty
    status: Status
    reasons: list[str]
    too_late: bool = Field(
        False,
        exclude_if=is_false,
        description="the run failed because a host was too busy to begin in time; another attempt "
        "may succeed",
    )
    checks: list[Check]
    explanations: list[Explanation] = Field(
        [],
        exclude_if=is_empty,
        description="probable reasons for failed timing checks, the likeliest first",
    )
    information: list[Information] = Field([], description="measured values without a limit")
    clocks: dict[str, HostClock | None] = Field(
        {},
        exclude_if=is_empty,
        description="host with captures and with another clock than the emulator -> its clock; "
        "null: unknown",
    )
