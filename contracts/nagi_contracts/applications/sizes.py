# SPDX-License-Identifier: Apache-2.0
"""How large transfers are: a size, or a distribution of sizes."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from nagi_contracts.applications.base import in_bytes
from nagi_contracts.base import is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import ByteCount

SHAPE = 1.2


class SizesPlan(BaseModel):
    """Of the plan of an application that draws sizes."""

    sizes: Literal["constant", "exponential", "pareto"]
    size_bytes: int | None = Field(
        None, exclude_if=is_none, description="constant, or the mean of exponential"
    )
    min_bytes: int | None = Field(None, exclude_if=is_none, description="of pareto, bounded")
    max_bytes: int | None = Field(None, exclude_if=is_none)
    shape: float | None = Field(None, exclude_if=is_none)

    def mean_bytes(self) -> float:
        """The mean of what is drawn."""
        low, high, shape = self.min_bytes, self.max_bytes, self.shape
        if low is None or high is None or shape is None:
            return self.size_bytes or 0
        ratio = math.pow(low / high, shape)  # what the bound cuts off
        if shape == 1:
            return low * math.log(high / low) / (1 - ratio)
        return low * shape / (shape - 1) * (1 - ratio * high / low) / (1 - ratio)

    def sizes_in_words(self) -> str:
        if self.min_bytes is not None and self.max_bytes is not None:
            ends = f"{in_bytes(self.min_bytes)} to {in_bytes(self.max_bytes)}"
            return f"{ends}, bounded Pareto, shape {self.shape:g}"
        size = in_bytes(self.size_bytes or 0)
        return size if self.sizes == "constant" else f"{size} in the mean, exponential"


class SizesSettings(BaseModel):
    """Of the settings of an application that draws sizes."""

    sizes: Literal["constant", "exponential", "pareto"] = Field(
        "constant", description="how sizes are drawn; pareto is bounded"
    )
    size: ByteCount | None = Field(
        None, description="of constant sizes; of exponential ones the mean"
    )
    min: ByteCount | None = Field(None, description="of pareto: the smallest size")
    max: ByteCount | None = Field(None, description="of pareto: the largest size")
    shape: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description=f"of pareto: smaller is heavier-tailed; {SHAPE} if not given",
    )

    @model_validator(mode="after")
    def _sizes_possible(self) -> SizesSettings:
        needed = ("min", "max") if self.sizes == "pareto" else ("size",)
        others = {"size", "min", "max", "shape"} - {*needed, *self._optional()}
        for key in needed:
            if getattr(self, key) is None:
                what = f"{self.sizes} sizes without `{key}`"
                raise BadValue(what, f"add `{key}: ...`")
        for key in sorted(others):
            if getattr(self, key) is not None:
                what = f"{key} does not go with `sizes: {self.sizes}`"
                raise BadValue(what, "remove it", key)
        if self.min is not None and self.max is not None and self.max.value <= self.min.value:
            raise BadValue("a largest size that is not above the smallest", "raise it", "max")
        return self

    def _optional(self) -> tuple[str, ...]:
        return ("shape",) if self.sizes == "pareto" else ()

    def sizes_plan(self) -> dict[str, Any]:
        if self.sizes != "pareto":
            assert self.size is not None
            return {"sizes": self.sizes, "size_bytes": self.size.value}
        assert self.min is not None and self.max is not None
        return {
            "sizes": "pareto",
            "min_bytes": self.min.value,
            "max_bytes": self.max.value,
            "shape": self.shape or SHAPE,
        }
