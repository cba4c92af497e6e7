# SPDX-License-Identifier: Apache-2.0
"""Traces in the experiment file: values that change over time in steps."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from nagi_contracts.base import Strict
from nagi_contracts.bounds import get_integer_range
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Duration, PositiveDuration

LATEST = Duration(get_integer_range("period_ns")[1])


def find_instant_problem(instant: Duration, previous: Duration | None) -> BadValue | None:
    """Return the error in the instant of a step, or None if the instant is valid.

    Args:
        instant: The instant of the step.
        previous: The instant of the step before it; None for the first step.
    """
    if previous is None and instant.value != 0:
        return BadValue(f"the first step is at {instant}", "give the value at 0 s first")
    if previous is not None and instant.value <= previous.value:
        return BadValue(f"{instant} is not after {previous}", "give every instant once, in order")
    if instant.value > LATEST.value:
        return BadValue(f"{instant} is too late", f"give at most {LATEST}")
    return None


def make_steps_field(value_description: str) -> Any:
    """Return the field `steps`, a mapping of instants to values, for subclasses of Steps.

    Args:
        value_description: The description of one value, for the JSON Schema.
    """
    return Field(
        min_length=1,
        description=f"instant -> {value_description}",
        json_schema_extra={"additionalProperties": False},
    )


class Steps(Strict):
    """A piecewise-constant value that repeats. Instants count from the start of the run."""

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
            raise BadValue(message, "give a longer period", "period")
        if self.period.value > LATEST.value:
            message = f"a period of {self.period} is too long"
            raise BadValue(message, f"give at most {LATEST}", "period")
        return self
