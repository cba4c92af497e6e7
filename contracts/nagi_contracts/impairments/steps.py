# SPDX-License-Identifier: Apache-2.0
"""Values that change over time, written in the experiment file."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from nagi_contracts.base import Strict
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Duration, PositiveDuration

LATEST = Duration(get_integer_range("period_ns")[1])


def find_instant_problem(instant: Duration, previous: Duration | None) -> BadValue | None:
    """Return the error of a step's instant, or None if it may follow the `previous` step's."""
    if previous is None and instant.value != 0:
        return BadValue(f"the first step is at {instant}", "give the value at 0 s first")
    if previous is not None and instant.value <= previous.value:
        return BadValue(f"{instant} is not after {previous}", "give every instant once, in order")
    if instant.value > LATEST.value:
        return BadValue(f"{instant} is too late", f"give at most {LATEST}")
    return None


def make_steps_field(values: str) -> Any:
    """Return the pydantic field `steps`, a mapping of instants to what `values` describes."""
    return Field(
        min_length=1,
        description=f"instant -> {values}",
        json_schema_extra={"additionalProperties": False},
    )


class Steps(Strict):
    """A piecewise-constant value, from the start of the run."""

    steps: dict[Duration, Any]
    period: PositiveDuration = Field(description="time after which the trace repeats")

    @field_validator("steps", mode="before")
    @classmethod
    def _check_order(cls, steps: object) -> object:
        previous: Duration | None = None
        for text in steps if isinstance(steps, dict) else ():
            try:
                instant = Duration.parse(text)
            except ValueError:
                continue  # the validation of the key itself reports the error
            problem = find_instant_problem(instant, previous)
            if problem is not None:
                raise problem
            previous = instant
        return steps

    @model_validator(mode="after")
    def _check_period(self) -> Self:
        last = max(self.steps)
        if self.period.value <= last.value:
            message = f"a period of {self.period} ends before the step at {last}"
            raise BadValue(message, "give a longer one", "period")
        if self.period.value > LATEST.value:
            message = f"a period of {self.period} is too long"
            raise BadValue(message, f"give at most {LATEST}", "period")
        return self
