# SPDX-License-Identifier: Apache-2.0
"""What a campaign will take, against a recorded one and against a calculation by hand."""

from __future__ import annotations

import os

import pytest
from nagi.campaign.estimate import (
    disk_needed,
    free_disk,
    require_disk,
    size_of,
    time_needed,
    virtual_seconds_of,
)
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Keep
from nagi_contracts.units import in_bytes, in_time

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


@pytest.fixture
def plan() -> RunPlan:
    """One flow, 100 s at 10 Mb/s: 10 Mb/s x 100 s / 8 / 1052 bytes = 118,821 packets."""
    points = read_experiment(ROOT / "experiments" / "achievement-2008.yaml", None)
    plan = plan_runs(points[0], None)[0]
    (flow,) = plan.flows
    assert (flow.bottleneck_bps, flow.packet_bytes) == (10_000_000, 1052)
    flow = flow.model_copy(update={"end_s": flow.start_s + 100})
    return plan.model_copy(update={"flows": [flow]})


def test_by_hand(plan):
    packets = 118_821
    # Two captures of 16 + 128 bytes a segment and 16 + 78 an acknowledgement.
    captures = 2 * packets * (144 + 94)
    crossings = packets * 2 * 2  # two links, there and back
    other = 100_000 + 1000 * 100
    raw = captures + crossings * (32 + 26) + other
    assert size_of(plan, Keep()).raw == pytest.approx(raw, rel=1e-4)
    for keep, kept in (
        (Keep(), captures / 4 + crossings * 26 + other),
        (Keep(compress="none"), captures + crossings * 26 + other),
        (Keep(captures="sender"), captures / 8 + crossings * 26 + other),
        (Keep(captures="none", packets="drop"), other),
    ):
        assert size_of(plan, keep).kept == pytest.approx(kept, rel=1e-4)


def test_a_window_cap_and_a_shared_bottleneck_limit_the_rate(plan):
    (flow,) = plan.flows
    capped = flow.model_copy(update={"max_window": 50, "base_rtt_s": 0.1})  # 4.2 Mb/s
    sizes = [
        size_of(plan.model_copy(update={"flows": flows}), Keep(captures="none", packets="drop"))
        for flows in ([flow], [capped], [flow, flow.model_copy(update={"name": "other"})])
    ]
    maximum = sizes[0].raw - 200_000
    assert sizes[1].raw - 200_000 == pytest.approx(maximum * 0.4208, rel=1e-3)
    assert sizes[2].raw - 300_000 == pytest.approx(maximum, rel=1e-3)  # together as much as one


def test_it_is_above_what_was_recorded_and_not_far():
    plan = RunPlan.read(RECORDED / "plan.json")
    recorded = sum(path.stat().st_size for path in RECORDED.iterdir())
    assert recorded < size_of(plan, Keep(compress="none")).kept < 2 * recorded


def test_a_campaign_takes_what_its_runs_keep_and_what_is_under_way(plan):
    size = size_of(plan, Keep())
    # A cell is given 75 s of runs at once, so one of these, which take 200 s and more.
    assert disk_needed([plan] * 10, Keep(), 2) == 10 * size.kept + 2 * size.raw
    assert disk_needed([], Keep(), 2) == 0
    assert time_needed([plan] * 10, 2) == pytest.approx(5 * (plan.timeline.end_s + 0.1))


def test_in_virtual_time_it_is_packets_that_take_time(plan):
    def taken(each):
        return time_needed([each] * 10, 2, virtual_seconds_of)

    (flow,) = plan.flows
    half = plan.model_copy(
        update={"flows": [flow.model_copy(update={"bottleneck_bps": flow.bottleneck_bps // 2})]}
    )
    packets = flow.bottleneck_bps / 8 / flow.packet_bytes * (flow.end_s - flow.start_s)
    assert taken(plan) == pytest.approx(5 * (2.5 + 8e-6 * 4 * packets), rel=1e-4)
    assert taken(half) - 12.5 == pytest.approx((taken(plan) - 12.5) / 2, rel=1e-4)


def test_what_does_not_fit_is_refused(plan, tmp_path):
    needed, out = disk_needed([plan], Keep(), 1), tmp_path / "out"
    require_disk([plan], Keep(), 1, out, needed)
    with pytest.raises(InputError, match=rf"{out}: 1 runs need about .* of disk.*--out"):
        require_disk([plan], Keep(), 1, out, needed - 1)


def test_room_is_looked_for_where_results_will_be(tmp_path):
    place = os.statvfs(tmp_path)
    known = place.f_bavail * place.f_frsize
    # Others write and remove files meanwhile.
    assert free_disk(tmp_path / "not" / "there" / "yet") == pytest.approx(known, rel=0.2)


def test_sizes_and_times_for_people():
    assert [in_bytes(n) for n in (0, 999, 1500, 23_456, 7.7e9, 3e12, 5e13)] == [
        *("0 bytes", "999 bytes", "1.5 kB", "23 kB", "7.7 GB", "3.0 TB", "50 TB")
    ]
    assert [in_time(s) for s in (5, 119, 600, 7200)] == ["5 s", "119 s", "10 min", "2.0 h"]
