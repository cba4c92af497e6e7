# SPDX-License-Identifier: Apache-2.0
"""Quantiles of times that packets took, for checks of the certificate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def summarise_times(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return median, 99th percentile and maximum of at least one value.

    The 99th percentile leaves out the largest 1 %, rounded down, but at least one of three or more
    values: one packet of a few may be late.
    """
    ordered = np.sort(values)
    count = len(ordered)
    left_out = max(1, count // 100) if count > 2 else 0
    return float(np.median(ordered)), float(ordered[-1 - left_out]), float(ordered[-1])
