# SPDX-License-Identifier: Apache-2.0
"""Median, 99th percentile and maximum of a certificate's times."""

from __future__ import annotations

import numpy as np
import pytest
from nagi.verdict.quantiles import median_p99_max


@pytest.mark.parametrize(
    "values, expected",
    [
        ([3.0], (3, 3, 3)),
        ([3.0, 1.0], (2, 1, 3)),
        # One packet of 65 may be astray, two may not.
        ([0.0] * 64 + [67.0], (0, 0, 67)),
        ([0.0] * 63 + [66.0, 67.0], (0, 66, 67)),
        # 0 to 100: by numpy's linear interpolation (Hyndman and Fan's definition 7).
        (list(map(float, range(101))), (50, 99, 100)),
    ],
)
def test_one_packet_of_few_may_be_astray(values, expected):
    assert median_p99_max(np.array(values)) == expected
