# SPDX-License-Identifier: Apache-2.0
"""The ranges of a link's settings, from link-emulator/model/bounds.json.

nagi-link is compiled with this file, so nagi-link and experiment files accept the same values.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, model_validator

from nagi_contracts import paths


class Bound(BaseModel):
    """The range of one setting, in `unit`. The minimum and the maximum are valid values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["integer", "number"]
    minimum: int | float
    maximum: int | float
    unit: str
    why: str

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.type == "integer" and not (
            isinstance(self.minimum, int) and isinstance(self.maximum, int)
        ):
            raise ValueError("the bounds of an integer are integers")
        if self.minimum > self.maximum:
            raise ValueError("the minimum is greater than the maximum")
        return self


@cache
def load_bounds() -> dict[str, Bound]:
    """Return the bounds of all settings, by the key in bounds.json.

    The file is part of nagi, and therefore assumed to be correct.
    """
    return TypeAdapter(dict[str, Bound]).validate_json(paths.BOUNDS.read_bytes())


def get_integer_range(key: str) -> tuple[int, int]:
    """Return the smallest and the largest valid value of an integer setting.

    Args:
        key: The key in bounds.json.
    """
    bound = load_bounds()[key]
    assert bound.type == "integer"
    return int(bound.minimum), int(bound.maximum)


def get_number_range(key: str) -> tuple[float, float]:
    """Return the smallest and the largest valid value of a setting that is a real number.

    Args:
        key: The key in bounds.json.
    """
    bound = load_bounds()[key]
    return float(bound.minimum), float(bound.maximum)
