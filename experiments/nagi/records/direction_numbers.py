# SPDX-License-Identifier: Apache-2.0
"""The directions of a plan's links, as the emulator's records number them."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pandas as pd
from nagi_contracts.plan import DIRECTIONS, DirectionName, RunPlan


def direction_number(plan: RunPlan, link: str, direction: DirectionName) -> int:
    """The number that a direction of a link has in records."""
    names = [each.name for each in plan.links]
    return names.index(link) * 2 + DIRECTIONS.index(direction)


def link_names(numbers: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """The link of each number."""
    return pd.Categorical.from_codes(numbers // 2, pd.Index([link.name for link in plan.links]))


def direction_names(numbers: npt.NDArray[Any]) -> pd.Categorical[str]:
    """The direction of each number."""
    return pd.Categorical.from_codes(numbers % 2, pd.Index(DIRECTIONS))
