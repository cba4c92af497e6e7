# SPDX-License-Identifier: Apache-2.0
"""Intervals, tests and pairs, compared with numbers computed by hand and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nagi_reports.statistics import (
    compare,
    correct_by_holm,
    count_runs_needed,
    halfwidth,
    mean,
    paired_p_value,
    ratio,
    ratio_of_means,
    signed_rank_p_value,
)


def test_mean_and_interval_by_hand():
    # s = 1.5811, t(0.975, 4) = 2.7764: 2.7764 x 1.5811 / sqrt 5 = 1.9632.
    found = mean([1, 2, 3, 4, 5])
    assert (found.value, found.runs) == (3, 5)
    assert found.halfwidth == pytest.approx(1.9632, abs=1e-4)
    assert math.isnan(mean([7]).halfwidth)
    assert mean([]) is None
    assert mean([math.nan]) is None
    assert mean([1, math.nan, 3]).runs == 2


def test_a_ratio_weighs_runs_by_their_size():
    found = ratio([1, 10], [10, 30])
    # Residuals -1.75 and 1.75: s = 1.75 sqrt 2, t(0.975, 1) = 12.706, mean whole 20.
    assert (found.value, found.runs) == (pytest.approx(11 / 40), 2)
    assert found.halfwidth == pytest.approx(12.706 * 1.75 / 20, rel=1e-4)
    assert ratio([1, 0, 10], [10, 0, 30]) == found  # a run of nothing says nothing
    assert math.isnan(ratio([1], [4]).halfwidth)
    assert ratio([0, 0], [0, 0]) is None


def test_intervals_of_ratios_hold_the_truth():
    """Null hypothesis: 95 % of the intervals contain the probability of the losses.

    Each interval is of 20 runs of about 100 losses, over 2,000 campaigns. The bias of the interval
    at 20 runs is below 2 %; four standard errors of the count are another 2 %.
    """
    rng = np.random.default_rng(5)
    wholes = rng.poisson(100, (2000, 20))
    parts = rng.binomial(wholes, 0.3)
    found = [ratio(part, whole) for part, whole in zip(parts, wholes, strict=True)]
    held = np.mean([abs(each.value - 0.3) <= each.halfwidth for each in found])
    assert held == pytest.approx(0.95, abs=0.04)


def runs(values, *, first_seed=1):
    return pd.Series(values, index=range(first_seed, first_seed + len(values)), dtype=float)


def test_a_ratio_of_means_is_of_pairs_where_runs_met_the_same_channel():
    other = runs([1.0, 2.0, 3.0])
    found = ratio_of_means([1.1 * other], [other])
    assert (found.value, found.halfwidth, found.runs) == (pytest.approx(1.1), pytest.approx(0), 3)
    # Seeds tell the pairs, not the order.
    found = ratio_of_means([(1.1 * other).iloc[::-1]], [other])
    assert found.halfwidth == pytest.approx(0)
    # Of runs without a partner nothing is known that pairs do not say better.
    assert ratio_of_means([runs([1.1, 2.2, 3.3, 9.9])], [other]).value == pytest.approx(1.1)


def test_a_ratio_of_means_of_other_channels_takes_runs_as_independent():
    one, other = runs([0.9, 1.0, 1.1]), runs([1.8, 2.0, 2.2], first_seed=10)
    found = ratio_of_means([one], [other])
    relative = halfwidth(one) / one.mean()
    assert found.value == pytest.approx(0.5)
    assert found.halfwidth == pytest.approx(0.5 * relative * math.sqrt(2))


def test_a_ratio_of_means_over_points_adds_their_intervals_in_squares():
    one, other = runs([1.0, 1.2]), runs([2.0, 2.0])
    single = ratio_of_means([one], [other])
    double = ratio_of_means([one, one], [other, other])
    assert double.value == pytest.approx(single.value)
    assert double.halfwidth == pytest.approx(single.halfwidth / math.sqrt(2))
    # A point with one pair has no interval, and so the whole has none.
    assert math.isnan(ratio_of_means([one, runs([1.0])], [other, runs([2.0])]).halfwidth)
    assert ratio_of_means([one, runs([])], [other, other]) is None
    assert ratio_of_means([one], [runs([0.0, 0.0])]) is None
    assert ratio_of_means([], []) is None


def test_intervals_of_ratios_of_means_hold_the_truth():
    # Significance: of 2000 intervals of 95 %, between 94 % and 96 % hold it but for 4 %.
    rng = np.random.default_rng(20080101)
    held = 0
    for _ in range(2000):
        channel = rng.normal(1, 0.2, 5)
        other = runs(channel + rng.normal(0, 0.01, 5))
        found = ratio_of_means([runs(1.5 * channel + rng.normal(0, 0.01, 5))], [other])
        held += abs(found.value - 1.5) <= found.halfwidth
        assert found.halfwidth < 0.1
    assert 0.93 < held / 2000 < 0.97


def test_intervals_hold_the_truth_95_times_in_100():
    """Null hypothesis: coverage is 95 %.

    4,000 samples of 5, seeded, within 4 standard deviations.
    """
    rng = np.random.default_rng(1)
    samples = rng.normal(3, 2, (4000, 5))
    inside = sum(abs(s.mean() - 3) <= halfwidth(s) for s in samples) / len(samples)
    assert abs(inside - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 4000)


def test_runs_needed_is_the_smallest_number_that_is_enough():
    values = [0.5, 0.6, 0.7]  # s = 0.1
    # t(0.975, 5) 0.1 / sqrt 6 = 0.1049; t(0.975, 6) 0.1 / sqrt 7 = 0.0925.
    assert count_runs_needed(values, 0.1, 100) == 7
    assert count_runs_needed(values, 0.105, 100) == 6
    assert count_runs_needed(values, 0.01, 20) == 20
    assert count_runs_needed([1, 1, 1], 0.01, 20) == 2


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04; nondecreasing.
    assert correct_by_holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert correct_by_holm([0.9, 0.8]) == [1, 1]
    assert correct_by_holm([]) == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_the_order_and_lies_between_raw_and_bonferroni(p_values):
    corrected = correct_by_holm(p_values)
    for raw, mine in zip(p_values, corrected, strict=True):
        assert raw <= mine <= min(1, raw * len(p_values)) + 1e-12
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_paired_tests():
    # Mean 0.02, s = 0.01, n = 4: t = 4, two-sided with 3 degrees of freedom 0.02801.
    differences = np.array([0.02 - 0.01 * math.sqrt(1.5), 0.02, 0.02, 0.02 + 0.01 * math.sqrt(1.5)])
    assert paired_p_value(differences) == pytest.approx(0.02801, abs=1e-5)
    assert paired_p_value([0.1]) is None
    assert paired_p_value([0.0, 0.0]) == 1
    assert paired_p_value([0.1, 0.1]) == 0
    # All six of one sign: 2 / 2^6.
    assert signed_rank_p_value([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == pytest.approx(2 / 64)
    assert signed_rank_p_value([1, 2, 3, 4, 5]) is None
    assert signed_rank_p_value([0] * 6) == 1


def results(build, value, *, points=3, repeats=5, flows=1) -> pd.DataFrame:
    """Return a table of results with `value(point, repeat)` as AGI."""
    return pd.DataFrame(
        [
            {
                "run_id": f"{build}-{point}-{repeat}",
                "point_id": f"p{point}",
                "seed": 100 * point + repeat,
                "status": "valid",
                "flow": f"f{flow}",
                "agi": value(point, repeat) + 0.01 * flow,
                "point.capacity": f"{point} Mb/s",
                "point.scheme": build,
            }
            for point in range(points)
            for repeat in range(repeats)
            for flow in range(flows)
        ]
    )


def channel(point, repeat):
    """Return the effect of the channel on any scheme, far larger than differences of schemes."""
    return 0.5 + 0.1 * math.sin(10 * point + repeat)


def test_pairs_see_what_the_channel_hides():
    first = results("a", channel)
    second = results("b", lambda p, r: channel(p, r) + 0.01 + 0.001 * math.cos(r))
    found = compare(first, second, "agi", ["point_id", "seed"])
    assert [point.point for point in found.points] == [{"capacity": f"{p} Mb/s"} for p in range(3)]
    for point in found.points:
        assert point.difference.runs == 5
        assert point.difference.value == pytest.approx(0.01, abs=0.001)
        assert point.differs
        assert point.second.value - point.first.value == pytest.approx(point.difference.value)
    assert found.overall.value == pytest.approx(0.01, abs=0.001)
    assert found.overall_p_value is None
    assert (found.only_first, found.only_second, found.not_valid) == (0, 0, 0)


def test_pairs_by_other_axes():
    table = pd.concat([results("reno", channel), results("cubic", lambda p, r: channel(p, r) * 2)])
    reno, cubic = (table[table["point.scheme"] == name] for name in ("reno", "cubic"))
    found = compare(reno, cubic, "agi", ["point.capacity", "seed"])
    assert [point.point["capacity"] for point in found.points] == ["0 Mb/s", "1 Mb/s", "2 Mb/s"]


def test_what_has_no_partner_is_counted_and_in_no_mean():
    first = results("a", channel)
    second = results("b", channel)
    second.loc[second["run_id"] == "b-0-1", "status"] = "invalid"
    second.loc[second["run_id"] == "b-0-1", "agi"] = 99.0
    second = second[second["run_id"] != "b-1-0"]
    second.loc[second["run_id"] == "b-2-0", "seed"] = 7
    found = compare(first, second, "agi", ["point_id", "seed"])
    assert [point.difference.runs for point in found.points] == [4, 4, 4]
    assert (found.only_first, found.only_second, found.not_valid) == (3, 1, 1)
    assert all(point.difference.value == 0 for point in found.points)


def test_flows_of_one_run_are_one_observation():
    first, second = (results(name, channel, flows=3) for name in "ab")
    found = compare(first, second, "agi", ["point_id", "seed"])
    assert found.points[0].difference.runs == 5
    assert found.points[0].first.value == pytest.approx(
        np.mean([channel(0, r) + 0.01 for r in range(5)])
    )


def test_equal_schemes_are_called_different_one_campaign_in_twenty():
    """Null hypothesis: without differences, 5 % of campaigns call a point different.

    1,000 campaigns of 10 points with 4 pairs each, seeded, within 4 standard deviations.
    """
    rng = np.random.default_rng(2)
    wrong = sum(
        min(correct_by_holm([paired_p_value(rng.normal(size=4)) for _ in range(10)])) < 0.05
        for _ in range(1000)
    )
    assert wrong / 1000 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1000)
    # Without the correction it would be 1 - 0.95^10 = 40 %.
    assert wrong / 1000 > 0.02


def test_one_pair_is_no_test():
    first, second = (results(name, channel, repeats=1) for name in "ab")
    point = compare(first, second, "agi", ["point_id", "seed"]).points[0]
    assert (point.p_value, point.corrected_p_value, point.differs) == (None, None, False)
