# SPDX-License-Identifier: Apache-2.0
"""Lanes: the directions of a plan's links, as the emulator's records number them."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pandas as pd
from nagi_contracts.plan import WAYS, RunPlan, Way


def lane(plan: RunPlan, link: str, way: Way) -> int:
    """The number that a direction of a link has in records."""
    names = [each.name for each in plan.links]
    return names.index(link) * 2 + WAYS.index(way)


def link_names(lanes: npt.NDArray[Any], plan: RunPlan) -> pd.Categorical[str]:
    """The link of each lane."""
    return pd.Categorical.from_codes(lanes // 2, pd.Index([link.name for link in plan.links]))


def way_names(lanes: npt.NDArray[Any]) -> pd.Categorical[str]:
    """The direction of each lane."""
    return pd.Categorical.from_codes(lanes % 2, pd.Index(WAYS))
