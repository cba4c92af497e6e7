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
    """The range of one key, both ends included, in `unit`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["integer", "number"]
    minimum: int | float
    maximum: int | float
    unit: str
    why: str

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.type == "integer" and not (
            isinstance(self.minimum, int) and isinstance(self.maximum, int)
        ):
            raise ValueError("the bounds of an integer are integers")
        if self.minimum > self.maximum:
            raise ValueError("the minimum is greater than the maximum")
        return self


@cache
def bounds() -> dict[str, Bound]:
    """Every bound, by nagi-link's name of the value. The file is nagi's own: it is taken to be
    right."""
    return TypeAdapter(dict[str, Bound]).validate_json(paths.BOUNDS.read_bytes())


def whole(key: str) -> tuple[int, int]:
    """Minimum and maximum of an integer."""
    bound = bounds()[key]
    assert bound.type == "integer"
    return int(bound.minimum), int(bound.maximum)


def real(key: str) -> tuple[float, float]:
    """Minimum and maximum of a number."""
    bound = bounds()[key]
    return float(bound.minimum), float(bound.maximum)
