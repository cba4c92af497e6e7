# SPDX-License-Identifier: Apache-2.0
"""Compute quantiles of delays and response times for checks of the certificate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def summarise_times(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return median, 99th percentile and maximum. `values` has at least one element.

    The 99th percentile is the largest value that remains after the largest 1 % of the values,
    rounded down, are left out. If there are three or more values, at least one is left out, so that
    one late packet of a few does not count.
    """
    ordered = np.sort(values)
    count = len(ordered)
    left_out = max(1, count // 100) if count > 2 else 0
    return float(np.median(ordered)), float(ordered[-1 - left_out]), float(ordered[-1])
