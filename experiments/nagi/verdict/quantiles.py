# SPDX-License-Identifier: Apache-2.0
"""What a certificate has of times that packets took: median, 99th percentile and maximum."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SHARE = 0.99
_FEW = 100  # of fewer values, one in 100 is less than one


def median_p99_max(values: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the three of some values, of which there is at least one.

    Of fewer than 100 values the 99th percentile is the largest but one: one packet may be astray,
    as one in 100 may of more. The only value is all three.
    """
    ordered = np.sort(values)
    few = ordered[max(0, len(ordered) - 2)]
    p99 = few if len(ordered) < _FEW else np.quantile(ordered, _SHARE)
    return float(np.median(ordered)), float(p99), float(ordered[-1])
