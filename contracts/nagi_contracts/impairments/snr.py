# SPDX-License-Identifier: Apache-2.0
"""Traces of the signal-to-noise ratio (SNR), which changes over time."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from nagi_contracts.base import Contract, Strict
from nagi_contracts.impairments.steps import Steps, make_steps_field
from nagi_contracts.traces import spans
from nagi_contracts.units import Duration, Level


class SnrTracePlan(Contract):
    """A piecewise-constant SNR that repeats. Instants count from the start of the run."""

    steps: list[tuple[int, float]] = Field(
        description="(instant in ns, SNR in dB from then on); the first at 0, strictly increasing"
    )
    period_ns: int = Field(
        description="time after which the trace repeats; later than every instant"
    )

    @property
    def mean_db(self) -> float:
        """The mean over time of the SNR in dB."""
        weighted = (level * (end - at) for at, end, level in spans(self.steps, self.period_ns))
        return sum(weighted) / self.period_ns


class SnrTraceFile(Strict):
    """An SNR trace in a file, whose format nagi/spec/traces.py describes."""

    file: str = Field(min_length=1, description="path relative to the experiment file")
    format: Literal["steps"] = Field("steps", description="format of the file")


class SnrSteps(Steps):
    """An SNR trace in the experiment file: a piecewise-constant SNR that repeats."""

    steps: dict[Duration, Level] = make_steps_field("SNR from then on")

    def to_plan(self) -> SnrTracePlan:
        steps = [(at.value, level.value) for at, level in self.steps.items()]
        return SnrTracePlan(steps=steps, period_ns=self.period.value)


def _find_tag(value: object) -> str:
    has_steps = "steps" in value if isinstance(value, dict) else isinstance(value, Steps)
    return "trace in place" if has_steps else "trace in a file"


SnrTrace = Annotated[
    Annotated[SnrTraceFile, Tag("trace in a file")] | Annotated[SnrSteps, Tag("trace in place")],
    Discriminator(_find_tag),
]
