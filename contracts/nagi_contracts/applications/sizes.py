# SPDX-License-Identifier: Apache-2.0
"""The sizes of transfers or responses: one size, or a distribution of sizes."""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from nagi_contracts.applications.base import format_exact_size
from nagi_contracts.base import is_none
from nagi_contracts.errors import BadValue
from nagi_contracts.units import ByteCount

SHAPE = 1.2  # default shape of the Pareto distribution


class SizesPlan(BaseModel):
    """The fields of an application's plan that describe sizes of transfers or responses."""

    sizes: Literal["constant", "exponential", "pareto"]
    size_bytes: int | None = Field(
        None, exclude_if=is_none, description="constant size, or mean of exponential sizes"
    )
    min_bytes: int | None = Field(
        None, exclude_if=is_none, description="for pareto: the smallest size"
    )
    max_bytes: int | None = Field(None, exclude_if=is_none)
    shape: float | None = Field(None, exclude_if=is_none)

    def mean_bytes(self) -> float:
        """Return the mean size in bytes."""
        low, high, shape = self.min_bytes, self.max_bytes, self.shape
        if low is None or high is None or shape is None:
            return self.size_bytes or 0
        # The probability of sizes above `high`, if the Pareto distribution had no upper bound.
        tail = math.pow(low / high, shape)
        if shape == 1:
            return low * math.log(high / low) / (1 - tail)
        return low * shape / (shape - 1) * (1 - tail * high / low) / (1 - tail)

    def describe_sizes(self) -> str:
        """Describe the sizes in a phrase for reports."""
        if self.min_bytes is not None and self.max_bytes is not None:
            low, high = format_exact_size(self.min_bytes), format_exact_size(self.max_bytes)
            return f"{low} to {high}, bounded Pareto, shape {self.shape:g}"
        size = format_exact_size(self.size_bytes or 0)
        return size if self.sizes == "constant" else f"{size} in the mean, exponential"


class SizesSettings(BaseModel):
    """The settings of an application that describe sizes of transfers or responses."""

    sizes: Literal["constant", "exponential", "pareto"] = Field(
        "constant", description="distribution of sizes; pareto is bounded"
    )
    size: ByteCount | None = Field(None, description="constant size, or mean of exponential sizes")
    min: ByteCount | None = Field(None, description="for pareto: the smallest size")
    max: ByteCount | None = Field(None, description="for pareto: the largest size")
    shape: float | None = Field(
        None,
        gt=0,
        le=100,
        allow_inf_nan=False,
        description="for pareto: shape of the distribution, smaller is heavier-tailed; default: "
        f"{SHAPE}",
    )

    @model_validator(mode="after")
    def _check_sizes(self) -> SizesSettings:
        required = ("min", "max") if self.sizes == "pareto" else ("size",)
        optional = ("shape",) if self.sizes == "pareto" else ()
        unsupported = {"size", "min", "max", "shape"} - {*required, *optional}
        for key in required:
            if getattr(self, key) is None:
                message = f"{self.sizes} sizes need `{key}`"
                raise BadValue(message, f"add `{key}: ...`")
        for key in sorted(unsupported):
            if getattr(self, key) is not None:
                message = f"{key} has no meaning with `sizes: {self.sizes}`"
                raise BadValue(message, "remove it", key)
        if self.min is not None and self.max is not None and self.max.value <= self.min.value:
            raise BadValue("the largest size is not above the smallest size", "raise it", "max")
        return self

    def plan_sizes(self) -> dict[str, Any]:
        """Return the sizes as arguments for SizesPlan: field -> value, without unused fields."""
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
