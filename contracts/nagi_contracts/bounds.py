# SPDX-License-Identifier: Apache-2.0
"""What values of a link may be: link-emulator/model/bounds.json, of which nagi-link is made, too.

So a value that an experiment may have is one that nagi-link takes.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from nagi_contracts import paths


class Bound(BaseModel):
    """The least and the greatest possible value of one key, in `unit`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["integer", "number"]
    least: int | float
    most: int | float
    unit: str
    why: str

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.type == "integer" and not (
            isinstance(self.least, int) and isinstance(self.most, int)
        ):
            raise ValueError("the bounds of an integer are integers")
        if self.least > self.most:
            raise ValueError("the least value is greater than the greatest")
        return self


@cache
def bounds() -> dict[str, Bound]:
    """Every bound, by nagi-link's name of the value. The file is nagi's own: it is taken to be
    right."""
    return TypeAdapter(dict[str, Bound]).validate_json(paths.BOUNDS.read_bytes())


def whole(key: str) -> tuple[int, int]:
    """Least and greatest value of an integer."""
    bound = bounds()[key]
    assert bound.type == "integer"
    return int(bound.least), int(bound.most)


def real(key: str) -> tuple[float, float]:
    """Least and greatest value of a number."""
    bound = bounds()[key]
    return float(bound.least), float(bound.most)
