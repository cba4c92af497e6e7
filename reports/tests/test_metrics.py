# SPDX-License-Identifier: Apache-2.0
"""The metrics, compared with numbers computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nagi_reports.metrics import (
    agi,
    agi_ceiling,
    agi_of_ceiling,
    buffer_delay,
    convergence_time_s,
    goodput_bps,
    harm,
    jain_index,
    loss_rate,
    max_min_ratio,
    nagi,
    potential_delay,
    product_measure,
    proportional_fairness,
    retransmission_rate,
    shares,
    tcp_efficiency,
    throughput_bps,
    time_mean,
    transfer_time_s,
)


def test_rates():
    assert goodput_bps(1_250_000, 2) == 5e6
    assert throughput_bps(1_250_000, 2) == 5e6
    assert math.isnan(goodput_bps(1, 0))
    assert transfer_time_s(1_000_000_000, 3_500_000_000) == 2.5


def test_achievement():
    assert agi(47.5e6, 50e6) == pytest.approx(0.95)
    assert agi_ceiling(1000, 1052) == pytest.approx(0.95057, abs=1e-5)
    assert agi_of_ceiling(0.95, agi_ceiling(1000, 1052)) == pytest.approx(0.9994)
    assert nagi([0.9, 0.6, 0.3]) == pytest.approx(0.6)
    assert math.isnan(nagi([0.9, math.nan]))
    assert math.isnan(nagi([]))


def test_shares():
    # RFC 6349's own examples: 2,000 of 102,000 bytes again; 32 ms over a base of 25 ms.
    assert tcp_efficiency(102_000, 2_000) == pytest.approx(0.9804, abs=1e-4)
    assert buffer_delay(0.032, 0.025) == pytest.approx(0.28)
    assert retransmission_rate(3, 300) == 0.01
    assert loss_rate(1, 8) == 0.125
    for share in (retransmission_rate, loss_rate, tcp_efficiency):
        assert math.isnan(share(0, 0))


def test_time_mean_weighs_by_how_long_a_value_lasts():
    times, values = np.array([0, 10, 30]), np.array([1.0, 4.0, 2.0])
    assert time_mean(times, values, 0, 40) == pytest.approx((10 + 80 + 20) / 40)
    assert time_mean(times, values, 20, 40) == pytest.approx((40 + 20) / 20)
    assert time_mean(times, values, 32, 36) == 2  # after the last
    assert time_mean(times, values, -20, 10) == 1  # nothing is known before the first
    assert math.isnan(time_mean(times, values, -20, 0))
    assert math.isnan(time_mean(np.array([], np.int64), np.array([]), 0, 1))


def test_fairness_by_hand():
    assert jain_index([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain_index([7, 0, 0, 0]) == pytest.approx(0.25)
    assert max_min_ratio([2, 8, 4]) == 0.25
    assert product_measure([2, 8, 4]) == 64
    assert proportional_fairness([1, math.e]) == pytest.approx(1)
    assert potential_delay([2, 4]) == 0.75
    assert proportional_fairness([1, 0]) == -math.inf
    assert potential_delay([1, 0]) == math.inf
    for measure in (jain_index, max_min_ratio):
        assert math.isnan(measure([0, 0]))
        assert math.isnan(measure([]) if measure is max_min_ratio else jain_index([0]))
    for measure in (product_measure, proportional_fairness, potential_delay):
        assert math.isnan(measure([]))


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=8), st.floats(0.1, 10))
def test_equal_shares_are_the_fairest_of_all_with_the_same_sum(rates, scale):
    equal = [sum(rates) / len(rates)] * len(rates)
    tolerance = 1 + 1e-9
    assert 1 / len(rates) <= jain_index(rates) * tolerance
    assert jain_index(rates) <= jain_index(equal) * tolerance
    assert max_min_ratio(rates) <= 1 == max_min_ratio(equal)
    assert product_measure(rates) <= product_measure(equal) * tolerance
    assert proportional_fairness(rates) <= proportional_fairness(equal) + 1e-9
    assert potential_delay(rates) * tolerance >= potential_delay(equal)
    assert jain_index([rate * scale for rate in rates]) == pytest.approx(jain_index(rates))


def test_convergence_is_when_shares_stay_fair():
    ends = np.arange(1.0, 9.0)
    one = np.array([9, 9, 5.2, 9, 6, 5, 4.9, 5])
    rates = np.column_stack([one, 10 - one])
    # From the second flow's start at 1 s; fair within 10 % in the interval that ends at 3 s, but
    # not to stay, and from the one that begins at 5 s on.
    assert convergence_time_s(ends, rates, 1.0, 0.1) == 4
    # 6 : 4 is within 25 %.
    assert convergence_time_s(ends, rates, 1.0, 0.25) == 3
    assert convergence_time_s(ends[:4], rates[:4], 1.0, 0.1) == math.inf
    assert convergence_time_s(ends[5:], rates[5:], 5.0, 0.1) == 0
    assert math.isnan(convergence_time_s(ends, rates, 8.0, 0.1))
    assert convergence_time_s(ends, rates * 0, 1.0) == math.inf


def test_convergence_is_when_shares_stay_fair_for_a_time():
    ends = np.arange(1.0, 11.0)
    one = np.array([9, 9, 5, 5, 9, 5, 5, 5, 9, 9])
    rates = np.column_stack([one, 10 - one])
    # Fair from 2 s to 4 s and from 5 s to 8 s, counted from the last start at 1 s.
    assert convergence_time_s(ends, rates, 1.0, 0.2, 2.0) == 1
    assert convergence_time_s(ends, rates, 1.0, 0.2, 3.0) == 4
    assert convergence_time_s(ends, rates, 1.0, 0.2, 3.5) == math.inf
    assert convergence_time_s(ends, rates, 1.0, 0.2) == math.inf
    # A start within a window: of that window only what is left counts.
    assert convergence_time_s(ends, rates, 2.5, 0.2, 1.5) == 0
    assert convergence_time_s(ends, rates, 2.5, 0.2, 1.6) == 2.5
    assert convergence_time_s(ends, rates, 6.0, 0.2, 4.0) == math.inf
    assert math.isnan(convergence_time_s(ends, rates, 6.1, 0.2, 4.0))


def test_shares_are_of_the_sum():
    assert shares([1, 3]).tolist() == [0.25, 0.75]
    assert np.isnan(shares([0, 0])).all()
    assert shares([]).tolist() == []


def test_harm_is_what_competitors_take():
    # Ware et al.: of 10 Mb/s alone 4 are left; a delay of 100 ms becomes 400 ms.
    assert harm(10, 4) == pytest.approx(0.6)
    assert harm(100, 400, more_is_better=False) == pytest.approx(0.75)
    assert harm(10, 10) == harm(10, 10, more_is_better=False) == 0
    assert harm(10, 0) == 1
    assert harm(4, 5) == pytest.approx(-0.25)
    assert harm(100, 80, more_is_better=False) == pytest.approx(-0.25)
    assert math.isnan(harm(0, 1)) and math.isnan(harm(1, 0, more_is_better=False))
    assert math.isnan(harm(math.nan, 1)) and math.isnan(harm(1, math.nan))
