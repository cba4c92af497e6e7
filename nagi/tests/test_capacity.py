# SPDX-License-Identifier: Apache-2.0
"""Test how many bits a path carries during an interval, by arithmetic and by counting."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nagi_contracts.capacity import count_offered_bits, iterate_sending_intervals
from nagi_contracts.plan import DirectionPlan
from nagi_contracts.traces import OpportunityTrace, StepTrace

MS = 10**6
PERIOD = 20
STEPS = st.lists(st.integers(1, PERIOD - 1), unique=True, max_size=4).map(sorted)


@st.composite
def step_traces(draw, values):
    instants = [0, *draw(STEPS)]
    return StepTrace(steps=[(at, draw(values)) for at in instants], period_ns=PERIOD)


def value_at(trace: StepTrace, at_ns: int) -> int:
    return [value for begin, value in trace.steps if begin <= at_ns % trace.period_ns][-1]


@given(step_traces(st.integers(0, 9)), st.integers(0, 70), st.integers(0, 70))
def test_a_trace_of_steps_carries_the_sum_over_its_nanoseconds(trace, start, more):
    by_counting = sum(value_at(trace, at) for at in range(start, start + more))
    assert trace.bits(start, start + more) == Fraction(by_counting, 10**9)


@given(
    st.lists(st.integers(0, PERIOD), min_size=1, max_size=6).map(sorted),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_opportunities_are_counted_from_the_start_until_before_the_end(instants, start, more):
    trace = OpportunityTrace(opportunities_ns=instants, bytes=1504, period_ns=PERIOD)
    all_of_them = [period * PERIOD + at for period in range(10) for at in instants]
    inside = [at for at in all_of_them if start <= at < start + more]
    assert trace.bits(start, start + more) == 1504 * 8 * len(inside)


@given(step_traces(st.integers(0, 30)), st.booleans(), st.integers(0, 90), st.integers(0, 90))
def test_departures_are_those_that_arrive_inside(trace, keep_order, start, more):
    """Compare departures with packets that leave in each nanosecond.

    A packet that stays in order arrives no earlier than the packets before it. Delays are whole
    nanoseconds, so that times within a nanosecond do not matter.
    """
    channel = DirectionPlan(rate_bps=1, delay_trace=trace, keep_order=keep_order)
    expected, latest = set(), 0
    for sent_ns in range(start + more):
        arrival_ns = sent_ns + value_at(trace, sent_ns)
        # The last one before has left an instant before this one.
        latest = max(latest, sent_ns + value_at(trace, sent_ns - 1) if sent_ns else 0)
        arrival_ns = max(arrival_ns, latest) if keep_order else arrival_ns
        latest = max(latest, arrival_ns)
        if start <= arrival_ns < start + more:
            expected.add(sent_ns)
    actual = {
        sent_ns
        for begin, end in iterate_sending_intervals(channel, start, start + more)
        for sent_ns in range(begin, end)
    }
    assert actual == expected


def test_a_handoff_during_the_measurement_counts_with_what_it_offers():
    """Check 20 Mb/s until 10 s, then 5 Mb/s: 5.1 s of the measurement are at 20 Mb/s."""
    trace = StepTrace(steps=[(0, 20_000_000), (10_000 * MS, 5_000_000)], period_ns=3600_000 * MS)
    wireless = DirectionPlan(rate_trace=trace, delay_ns=60 * MS)
    wired = DirectionPlan(rate_bps=100_000_000, delay_ns=40 * MS)
    bits = count_offered_bits([wireless, wired], 5_000 * MS, 15_000 * MS)
    assert bits == 20_000_000 * Fraction("5.1") + 5_000_000 * Fraction("4.9")
    assert count_offered_bits([wired], 5_000 * MS, 15_000 * MS) == 10**9
    assert count_offered_bits([DirectionPlan()], 0, 10**9) is None


@pytest.mark.parametrize(("fall_ns", "sent_ns"), [(True, 140), (False, 60)])
def test_a_delay_that_changes_lets_more_arrive_or_less(fall_ns, sent_ns):
    """Check a delay that falls from 60 ns to 20 ns within 100 ns, or rises.

    Packets of 140 ns then arrive within 100 ns, or of 60 ns.
    """
    first, second = (60, 20) if fall_ns else (20, 60)
    trace = StepTrace(steps=[(0, first), (1000, second)], period_ns=10_000)
    channel = DirectionPlan(rate_bps=1, delay_trace=trace)
    assert (
        sum(end - begin for begin, end in iterate_sending_intervals(channel, 1000, 1100)) == sent_ns
    )
