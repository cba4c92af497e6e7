# SPDX-License-Identifier: Apache-2.0
"""Means with confidence intervals, and tests for differences between two sets of runs.

The unit of observation is a run. A run with several flows counts with the mean of its flows,
because flows of one run are not independent. Only valid runs count, without background traffic.

Intervals are two-sided, with confidence 95 %, by Student's t: the half width for the mean of n runs
is t(0.975, n - 1) x s / sqrt(n), where s is the sample's standard deviation.

Differences are computed between runs with the same channel (same point, same seed), which removes
the influence of the channel. The difference at a point is tested by the paired t test. This test
needs only a few repeats, and agrees with the interval that is shown. A rank or sign-flip test could
not detect any difference with so few repeats: its smallest two-sided p-value is 2 / 2^n, 0.06 with
five pairs. The t test assumes that differences of run means are approximately normal.

Over all points together, the points' mean differences are tested by the Wilcoxon signed-rank test,
which assumes no common variance.

p-values of several points are corrected for their number by Holm's method, which is valid also for
dependent tests: the probability that any point without a difference is called different is at most
5 %.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

CONFIDENCE = 0.95
MIN_POINTS = 6  # with fewer points, p-values of the signed-rank test are above 0.05

Values = Sequence[float] | npt.NDArray[np.floating[Any]]
RunValues: TypeAlias = "pd.Series[float]"  # one value per run, by the run's seed or id


@dataclass(frozen=True)
class Mean:
    """A mean of `runs` values, with half the width of its confidence interval.

    The half width is nan for a single value.
    """

    value: float
    halfwidth: float
    runs: int


def mean(values: Values) -> Mean | None:
    """Return the mean of the values that are not nan, with its interval; None without values."""
    values = _drop_nan(values)
    if len(values) == 0:
        return None
    return Mean(float(values.mean()), halfwidth(values), len(values))


def halfwidth(values: Values) -> float:
    """Return half the width of the mean's confidence interval; nan for fewer than two values."""
    values = _drop_nan(values)
    if len(values) < 2:
        return math.nan
    return _compute_t_quantile(len(values)) * float(values.std(ddof=1)) / math.sqrt(len(values))


def ratio(parts: Values, wholes: Values) -> Mean | None:
    """Return the sum of `parts` / the sum of `wholes`, with its interval over runs.

    The interval is the interval of the mean of (part - ratio x whole), divided by the mean of
    `wholes` (Cochran, Sampling Techniques, 1977, section 2.11). Runs with a denominator of 0 do not
    count. Return None if no run counts.

    Args:
        parts: The numerator of each run.
        wholes: The denominator of each run.
    """
    y, x = np.asarray(parts, np.float64), np.asarray(wholes, np.float64)
    y, x = y[x > 0], x[x > 0]
    if len(x) == 0:
        return None
    value = float(y.sum() / x.sum())
    return Mean(value, halfwidth(y - value * x) / float(x.mean()), len(x))


def ratio_of_means(
    numerators: Sequence[RunValues], denominators: Sequence[RunValues]
) -> Mean | None:
    """Return the mean of `numerators` / the mean of `denominators`, with its interval.

    Numerator and denominator are means over points of the means over runs. Runs are paired by their
    seeds, because runs with the same seed have the same channel. So the interval of a point is the
    interval of the mean of (numerator - ratio x denominator). If numerator and denominator of a
    point have fewer than two seeds in common, their runs are treated as independent. The squares of
    the points' half widths are added.

    Args:
        numerators: The values of the runs of the numerator, one series per point.
        denominators: The values of the runs of the denominator, one series per point.

    Returns:
        The ratio, with the smallest number of runs of a point; None if there is no point, a point
            has no run, or the mean of `denominators` is 0.
    """
    if not numerators or any(values.empty for values in (*numerators, *denominators)):
        return None
    points = [
        _pair_by_seed(numerator, denominator)
        for numerator, denominator in zip(numerators, denominators, strict=True)
    ]
    whole = float(np.mean([denominator.mean() for _, denominator in points]))
    if whole == 0:
        return None
    value = float(np.mean([numerator.mean() for numerator, _ in points])) / whole
    halfwidths = [
        halfwidth((numerator - value * denominator).to_numpy())
        if numerator.index.equals(denominator.index)
        else math.hypot(halfwidth(numerator.to_numpy()), value * halfwidth(denominator.to_numpy()))
        for numerator, denominator in points
    ]
    runs = min(min(len(numerator), len(denominator)) for numerator, denominator in points)
    return Mean(value, math.hypot(*halfwidths) / len(points) / abs(whole), runs)


def _pair_by_seed(first: RunValues, second: RunValues) -> tuple[RunValues, RunValues]:
    """Return the values of the seeds that are in both series, in the same order.

    If fewer than two seeds are in both, return all values, unless both series have the same seed.
    """
    seeds = first.index.intersection(second.index).sort_values()
    has_same_seeds = first.index.sort_values().equals(second.index.sort_values())
    has_few_seeds = len(seeds) < 2 and not has_same_seeds
    return (first, second) if has_few_seeds else (first.loc[seeds], second.loc[seeds])


def count_runs_needed(values: Values, target: float, maximum: int) -> int:
    """Return the number of runs, at least 2, that an interval of half width `target` needs.

    This is the smallest n with t(0.975, n - 1) x s / sqrt(n) <= target, where s is the standard
    deviation of `values`.

    Args:
        values: The values of two runs or more.
        target: Half width of the interval, in the unit of `values`.
        maximum: The largest number to return, even if it is not enough.
    """
    deviation = float(_drop_nan(values).std(ddof=1))
    for count in range(2, maximum):
        if _compute_t_quantile(count) * deviation / math.sqrt(count) <= target:
            return count
    return maximum


def drop_background(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of results of flows that are not background traffic.

    Return all rows of a table without the column `background`, which earlier versions did not
    write.
    """
    return table[table["background"].ne(True)] if "background" in table else table


def average_by_run(table: pd.DataFrame, column: str, key: str = "run_id") -> RunValues:
    """Return the mean of a column over the flows of each run, by `key`.

    Runs without a value are left out.

    Args:
        table: Rows of results.
        column: The column to average.
        key: Column that identifies runs: run_id or, within one point, seed.
    """
    return drop_background(table).groupby(key, sort=False)[column].mean().dropna()


def correct_by_holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm, 1979), in the given order.

    Of m values sorted in ascending order, the i-th is multiplied by m - i + 1; the products are
    made nondecreasing and at most 1.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [1.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = highest
    return corrected


def paired_p_value(differences: Values) -> float | None:
    """Return the two-sided p-value of the paired t test, or None for fewer than two differences.

    The null hypothesis is that differences are independent and normal around 0.
    """
    from scipy import stats  # imported on demand, as the import is slow

    values = _drop_nan(differences)
    if len(values) < 2:
        return None
    if values.std() == 0:  # equal differences, as between runs of a deterministic lab
        return 1.0 if values[0] == 0 else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # scipy warns of nearly equal differences
        return float(stats.ttest_1samp(values, 0.0).pvalue)


def signed_rank_p_value(differences: Values) -> float | None:
    """Return the two-sided p-value of the Wilcoxon signed-rank test.

    Return None for fewer than MIN_POINTS differences, and 1 if all are 0. The null hypothesis is
    that differences are symmetric around 0. The test is exact for up to 50 differences without
    ties.
    """
    from scipy import stats  # imported on demand, as the import is slow

    values = _drop_nan(differences)
    if len(values) < MIN_POINTS:
        return None
    if not values.any():
        return 1.0
    return float(stats.wilcoxon(values).pvalue)


@dataclass(frozen=True)
class PointDifference:
    """The difference (second - first) of two sets of runs at one point, paired by seed."""

    point: dict[str, str]
    first: Mean  # mean of the first set's runs that are in pairs
    second: Mean
    difference: Mean
    p_value: float | None  # None for one pair, which cannot be tested
    corrected_p_value: float | None  # p_value, corrected for the number of tested points

    @property
    def differs(self) -> bool:
        """True if the difference is significant at the confidence level."""
        return self.corrected_p_value is not None and self.corrected_p_value < 1 - CONFIDENCE


@dataclass(frozen=True)
class Comparison:
    """The comparison of two sets of runs, paired by point and seed."""

    metric: str
    points: list[PointDifference]  # empty if there are no pairs
    overall: Mean | None  # mean of the points' mean differences
    overall_p_value: float | None  # None for fewer than MIN_POINTS points
    only_first: int  # number of valid runs of the first set that have a value, but are in no pair
    only_second: int
    not_valid: int  # number of runs of both sets that are not valid, and so are in no pair


def compare(first: pd.DataFrame, second: pd.DataFrame, metric: str, key: list[str]) -> Comparison:
    """Compare two tables of results by `metric`, run by run.

    Args:
        first: Results of the first set of runs.
        second: Results of the second set.
        metric: The column to compare.
        key: Columns in which the two runs of a pair agree, such as point_id and seed.

    Returns:
        The comparison. Its points are in the order of `first`, and have only the axes in which the
        runs of every pair agree.
    """
    tables = (first, second)
    runs = [_select_by_run(table, metric, key) for table in tables]
    not_valid = sum(table.loc[table["status"] != "valid", "run_id"].nunique() for table in tables)
    pairs = runs[0].merge(runs[1], on=key, suffixes=("_first", "_second"))
    axes = [name.removesuffix("_first") for name in pairs.columns if name.endswith("_first")]
    axes = [name for name in axes if name.startswith("point.")]
    axes = [a for a in axes if (pairs[f"{a}_first"] == pairs[f"{a}_second"]).all()]
    point_key = [name for name in key if name != "seed"]
    points: list[PointDifference] = []
    for _, rows in pairs.groupby(point_key, sort=False):
        run_differences = (rows["value_second"] - rows["value_first"]).to_numpy(np.float64)
        means = [mean(rows[f"value_{side}"].to_numpy(np.float64)) for side in ("first", "second")]
        difference = mean(run_differences)
        assert means[0] is not None and means[1] is not None and difference is not None
        row = rows.iloc[0]
        key_axes = [name for name in key if name.startswith("point.")]
        points.append(
            PointDifference(
                point={a.removeprefix("point."): str(row[f"{a}_first"]) for a in axes}
                | {a.removeprefix("point."): str(row[a]) for a in key_axes},
                first=means[0],
                second=means[1],
                difference=difference,
                p_value=paired_p_value(run_differences),
                corrected_p_value=None,
            )
        )
    differences = [point.difference.value for point in points]
    return Comparison(
        metric=metric,
        points=_correct_p_values(points),
        overall=mean(differences),
        overall_p_value=signed_rank_p_value(differences),
        only_first=len(runs[0]) - len(pairs),
        only_second=len(runs[1]) - len(pairs),
        not_valid=not_valid,
    )


def _select_by_run(table: pd.DataFrame, metric: str, key: list[str]) -> pd.DataFrame:
    """Return one row per valid run: the columns `key`, other axes, and the metric as `value`."""
    valid = table[table["status"] == "valid"]
    axes = [name for name in table.columns if name.startswith("point.") and name not in key]
    run_columns = valid.drop_duplicates("run_id").set_index("run_id")[[*key, *axes]]
    return run_columns.join(average_by_run(valid, metric).rename("value"), how="inner")


def _correct_p_values(points: list[PointDifference]) -> list[PointDifference]:
    """Return the points with p-values corrected for the number of tested points."""
    tested = [point for point in points if point.p_value is not None]
    corrected = iter(
        correct_by_holm([point.p_value for point in tested if point.p_value is not None])
    )
    return [
        PointDifference(
            point=point.point,
            first=point.first,
            second=point.second,
            difference=point.difference,
            p_value=point.p_value,
            corrected_p_value=None if point.p_value is None else next(corrected),
        )
        for point in points
    ]


def _drop_nan(values: Values) -> npt.NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    return array[~np.isnan(array)]


def _compute_t_quantile(count: int) -> float:
    from scipy import stats  # imported on demand, as the import is slow

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
