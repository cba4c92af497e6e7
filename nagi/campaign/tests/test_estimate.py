# SPDX-License-Identifier: Apache-2.0
"""Estimates of time and disk, compared with a recorded campaign and with calculations by hand."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from nagi.campaign.estimate import (
    Disk,
    estimate_disk,
    estimate_size,
    estimate_time,
    read_free_disk,
    require_disk,
)
from nagi.campaign.pace import Paces
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.applications.cbr import CbrPlan
from nagi_contracts.applications.playback import PlaybackPlan
from nagi_contracts.applications.poisson import PoissonPlan
from nagi_contracts.applications.token_bucket import TokenBucketPlan
from nagi_contracts.applications.transfer import TransferPlan
from nagi_contracts.errors import InputError
from nagi_contracts.paths import ROOT, SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Keep
from nagi_contracts.units import format_bytes, format_time

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())


@pytest.fixture
def plan() -> RunPlan:
    """Return a plan with one flow: 10 Mb/s x 100 s / 8 / 1052 bytes = 118,821 packets."""
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
    other = 70_000 + 1000 * 25
    raw = captures + crossings * (32 + 17) + other
    assert estimate_size(plan, Keep()).raw == pytest.approx(raw, rel=1e-4)
    for keep, kept in (
        (Keep(), captures * 0.15 + crossings * 17 + other),
        (Keep(compress="none"), captures + crossings * 17 + other),
        (Keep(captures="sender"), captures * 0.075 + crossings * 17 + other),
        (Keep(captures="none", packets="drop"), other),
    ):
        assert estimate_size(plan, keep).kept == pytest.approx(kept, rel=1e-4)


def test_a_window_cap_and_a_shared_bottleneck_limit_the_rate(plan):
    (flow,) = plan.flows
    capped = flow.model_copy(update={"max_window": 50, "base_rtt_s": 0.1})  # 4.2 Mb/s
    sizes = [
        estimate_size(
            plan.model_copy(update={"flows": flows}), Keep(captures="none", packets="drop")
        )
        for flows in ([flow], [capped], [flow, flow.model_copy(update={"name": "other"})])
    ]
    maximum = sizes[0].raw - 95_000
    assert sizes[1].raw - 95_000 == pytest.approx(maximum * 0.4208, rel=1e-3)
    assert sizes[2].raw - 120_000 == pytest.approx(maximum, rel=1e-3)  # together as much as one


def count_packets(plan: RunPlan, **flow: Any) -> float:
    """Return the number of packets that the plan's flow sends, with other settings."""
    changed = plan.model_copy(update={"flows": [plan.flows[0].model_copy(update=flow)]})
    size = estimate_size(changed, Keep(captures="none", packets="keep"))
    samples = (changed.flows[0].end_s - changed.flows[0].start_s) / plan.tcp_info_interval_s
    acks = 0 if changed.flows[0].traffic == "cbr" else 1
    return (size.kept - 70_000 - samples * 25) / 17 / 2 / (1 + acks)


def test_what_an_application_has_limits_the_packets(plan):
    for settings, packets in (
        (TransferPlan(size_bytes=50_000), 50),
        (CbrPlan(rate_bps=1028 * 8 * 7, payload_bytes=1000), 700),  # 7 packets/s
        (PlaybackPlan(rate_bps=80_000, interval_ns=10**9), 1000),
        (TokenBucketPlan(depth_bytes=20_000, token_bytes=1000, tokens=1, interval_ns=10**9), 120),
        (PoissonPlan(interval_ns=10**9, sizes="constant", size_bytes=5000), 500),
    ):
        headers = {"packet_bytes": 1028} if settings.is_udp else {}
        result = count_packets(plan, traffic=settings.application, application=settings, **headers)
        assert result == pytest.approx(packets, rel=0.01), settings


def test_the_mean_of_a_bounded_pareto_distribution_is_that_of_its_quantiles():
    for shape in (0.7, 1.0, 1.2, 2.5):
        plan = PoissonPlan(
            interval_ns=1, sizes="pareto", min_bytes=1000, max_bytes=10**6, shape=shape
        )
        u = (np.arange(10**6) + 0.5) / 10**6
        drawn = 1000 / (1 - u * (1 - (1000 / 10**6) ** shape)) ** (1 / shape)
        assert plan.mean_bytes() == pytest.approx(drawn.mean(), rel=1e-3)


def test_losses_limit_the_packets(plan):
    """Expect 1.5 times the formula of Mathis et al., plus the packets before the first loss."""
    (point,) = (
        point
        for point in read_experiment(ROOT / "experiments" / "achievement-2008.yaml", None)
        if (point.values["error_rate"], point.values["capacity"], point.values["scheme"])
        == ("1 %", "200 Mb/s", "sack")
    )
    lossy = plan_runs(point, None)[0]
    (flow,) = lossy.flows
    per_rtt = 1.5 * (1.5 / 0.01) ** 0.5
    expected = 100 + per_rtt * (flow.end_s - flow.start_s) / 0.1
    assert count_packets(lossy) == pytest.approx(expected, rel=0.01)


def test_it_is_near_what_was_recorded():
    plan = RunPlan.read(RECORDED / "plan.json")
    recorded = sum(path.stat().st_size for path in RECORDED.iterdir())
    assert estimate_size(plan, Keep(compress="none")).kept == pytest.approx(recorded, rel=0.25)


def test_a_campaign_takes_what_its_runs_keep_and_what_is_under_way(plan):
    size = estimate_size(plan, Keep())
    # A cell gets 75 s of runs per batch: one of these runs, which take 200 s or more.
    needed = estimate_disk([plan] * 10, Keep(), 2, "netns", Paces())
    assert needed == Disk(kept=10 * size.kept, meanwhile=2 * size.raw)
    needed = estimate_disk([plan] * 10, Keep(), 2, "virtual", Paces())
    assert needed.peak == 10 * size.kept + 4 * size.raw
    assert estimate_disk([], Keep(), 2, "netns", Paces()) == Disk()
    assert estimate_time([plan] * 10, 2, "netns") == pytest.approx(5 * (plan.timeline.end_s + 0.1))


def test_in_virtual_time_it_is_packets_and_nodes_that_take_time(plan):
    def estimate(plan):
        return estimate_time([plan] * 10, 2, "virtual", Paces())

    (flow,) = plan.flows
    half = plan.model_copy(
        update={"flows": [flow.model_copy(update={"bottleneck_bps": flow.bottleneck_bps // 2})]}
    )
    packets = flow.bottleneck_bps / 8 / flow.packet_bytes * (flow.end_s - flow.start_s)
    nodes = len(plan.nodes)
    fixed = 5 * (1.15 + 0.25 * nodes + 0.005 * plan.timeline.end_s) + 3 + 0.13 * nodes
    assert estimate(plan) == pytest.approx(fixed + 5 * 5.5e-6 * 4 * packets, rel=1e-4)
    assert estimate(half) - fixed == pytest.approx((estimate(plan) - fixed) / 2, rel=1e-4)


def test_on_real_hosts_ansible_takes_time(plan):
    """Count an emulator for each of two cells. A run is longer than 75 s, so it is a batch."""
    runs_s = estimate_time([plan] * 10, 2, "netns")
    hosts = 2 * (len(plan.nodes) + 1)
    ansible_s = 6 + 0.5 * hosts + 5 * (5 + 0.2 * hosts) + 10 * 0.4
    assert estimate_time([plan] * 10, 2, "physical") == pytest.approx(runs_s + ansible_s)


def test_one_run_has_one_processor(plan):
    alone, two = (estimate_time([plan] * count, 2, "virtual", Paces()) for count in (1, 2))
    assert alone == two


def test_what_does_not_fit_is_refused(tmp_path):
    needed, out = Disk(kept=3_000_000, meanwhile=1_000_000), tmp_path / "out"
    require_disk(3, needed, out, 4_000_000)
    with pytest.raises(InputError, match=rf"{out}: 3 runs need about 4.0 MB of disk.*--out"):
        require_disk(3, needed, out, 3_999_999)


def test_room_is_looked_for_where_results_will_be(tmp_path):
    file_system = os.statvfs(tmp_path)
    free_bytes = file_system.f_bavail * file_system.f_frsize
    # Other processes write and remove files at the same time.
    assert read_free_disk(tmp_path / "not" / "there" / "yet") == pytest.approx(free_bytes, rel=0.2)


def test_sizes_and_times_for_people():
    assert [format_bytes(n) for n in (0, 999, 1500, 23_456, 7.7e9, 3e12, 5e13)] == [
        *("0 bytes", "999 bytes", "1.5 kB", "23 kB", "7.7 GB", "3.0 TB", "50 TB")
    ]
    assert [format_time(s) for s in (5, 119, 600, 7200)] == ["5 s", "119 s", "10 min", "2.0 h"]
