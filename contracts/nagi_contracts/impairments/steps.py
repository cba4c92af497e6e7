# SPDX-License-Identifier: Apache-2.0
"""Values that change over time, written in place."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from nagi_contracts.base import Strict
from nagi_contracts.bounds import whole
from nagi_contracts.errors import BadValue
from nagi_contracts.units import Duration, PositiveDuration

LATEST = Duration(whole("period_ns")[1])


def problem_with_instant(at: Duration, before: Duration | None) -> BadValue | None:
    """Why no step can be `at` that instant, after a step at `before`. None: it can."""
    if before is None and at.value != 0:
        return BadValue(f"the first step is at {at}", "give the value at 0 s first")
    if before is not None and at.value <= before.value:
        return BadValue(f"{at} is not after {before}", "give every instant once, in order")
    if at.value > LATEST.value:
        return BadValue(f"{at} is too late", f"give at most {LATEST}")
    return None


def steps_field(values: str) -> Any:
    """The field `steps`: instants to `values`."""
    return Field(
        min_length=1,
        description=f"instant -> {values}",
        json_schema_extra={"additionalProperties": False},
    )


class Steps(Strict):
    """A piecewise-constant value, from the start of the run."""

    steps: dict[Duration, Any]
    period: PositiveDuration = Field(description="after which the trace repeats")

    @field_validator("steps", mode="before")
    @classmethod
    def _in_order(cls, steps: object) -> object:
        before: Duration | None = None
        for text in steps if isinstance(steps, dict) else ():
            try:
                at = Duration.parse(text)
            except ValueError:
                continue  # is said of the key itself
            problem = problem_with_instant(at, before)
            if problem is not None:
                raise problem
            before = at
        return steps

    @model_validator(mode="after")
    def _ends_after_its_steps(self) -> Self:
        last = max(self.steps)
        if self.period.value <= last.value:
            what = f"a period of {self.period} ends before the step at {last}"
            raise BadValue(what, "give a longer one", "period")
        if self.period.value > LATEST.value:
            what = f"a period of {self.period} is too long"
            raise BadValue(what, f"give at most {LATEST}", "period")
        return self
