# SPDX-License-Identifier: Apache-2.0
"""Median, 99th percentile and maximum of times in a certificate."""

from __future__ import annotations

import numpy as np
import pytest
from nagi.verdict.quantiles import summarise_times


@pytest.mark.parametrize(
    "values, expected",
    [
        ([3.0], (3, 3, 3)),
        ([3.0, 1.0], (2, 3, 3)),
        ([1.0, 2.0, 3.0], (2, 2, 3)),
        # One packet of 65 may be late, two may not.
        ([0.0] * 64 + [67.0], (0, 0, 67)),
        ([0.0] * 63 + [66.0, 67.0], (0, 66, 67)),
        # So it is with 100 and 199, and with 200 two may be.
        ([0.0] * 99 + [67.0], (0, 0, 67)),
        ([0.0] * 197 + [66.0, 67.0], (0, 66, 67)),
        ([0.0] * 198 + [66.0, 67.0], (0, 0, 67)),
    ],
)
def test_one_packet_in_a_hundred_or_of_few_may_be_late(values, expected):
    assert summarise_times(np.array(values)) == expected
