# SPDX-License-Identifier: Apache-2.0
"""Runs over time, compared with made records and the recorded example."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from nagi_contracts.links import Links
from nagi_contracts.paths import SCHEMAS
from nagi_reports.series import compute_backlog, condense, condense_steps, read_series

RUN = SCHEMAS / "example" / "campaign" / "runs" / "6ca9af3cee70cdc8"


def test_a_packet_waits_until_its_predecessor_has_been_sent():
    # Service takes 10: the first is served at once, the second waits 8, the third 15, and the
    # fourth finds nobody.
    arrived, sent = np.array([0, 2, 5, 40]), np.array([10, 20, 30, 50])
    times, waiting = compute_backlog(arrived, sent)
    assert times.tolist() == [0, 2, 5, 10, 20, 40]
    assert waiting.tolist() == [0, 1, 2, 1, 0, 0]


def test_backlog_against_a_queue_followed_step_by_step():
    rng = np.random.default_rng(1)
    arrived = np.sort(rng.integers(0, 10_000, 500))
    sent, end = [], 0
    for at in arrived:
        end = max(end, int(at)) + 15
        sent.append(end)
    times, waiting = compute_backlog(arrived, np.array(sent))
    for at, found in zip(times, waiting, strict=True):
        begun = np.array(sent) - 15
        assert found == np.count_nonzero((arrived <= at) & (begun > at))
    assert compute_backlog(np.array([], np.int64), np.array([], np.int64))[0].size == 0


def test_the_recorded_queue_is_the_emulators_own_account():
    series = read_series(RUN)
    links = Links.read(RUN / "links.json")
    radio = next(link for link in links.links if link.name == "radio")
    assert series.bottleneck == "radio forward"
    assert series.queue.waiting.maximum.max() == radio.forward.max_waiting_packets
    assert series.queue.limit_packets == 6
    assert len(series.queue.overflow_s) == radio.forward.packets.queue_overflows
    assert len(series.queue.loss_s) == radio.forward.packets.channel_losses
    assert (series.flow, series.end_s) == ("up", pytest.approx(2.0))
    assert series.cwnd.value.max() <= 100
    assert series.rtt_ms.value.min() > series.base_rtt_ms == pytest.approx(30)


@pytest.fixture
def run(tmp_path):
    return shutil.copytree(RUN, tmp_path / "run")


def test_missing_records_are_reported(run):
    (run / "packets.parquet").unlink()
    (run / "tcp_info.parquet").unlink()
    series = read_series(run)
    assert series.cwnd is None and series.rtt_ms is None and series.queue is None
    assert series.no_queue_reason == "not recorded"
    assert not series.has_curves


def test_under_jitter_the_queue_is_not_known(run):
    plan = json.loads((run / "plan.json").read_text())
    plan["links"][0]["forward"]["jitter"] = {"distribution": "exponential", "mean_ns": 1000}
    (run / "plan.json").write_text(json.dumps(plan))
    series = read_series(run)
    assert series.queue is None
    assert "delay that varies" in series.no_queue_reason


def test_no_slow_start_threshold_before_the_first_loss(run):
    import pandas as pd

    table = pd.read_parquet(run / "tcp_info.parquet")
    pd.DataFrame(table.assign(snd_ssthresh=2**31 - 1)).to_parquet(run / "tcp_info.parquet")
    assert read_series(run).ssthresh is None


def test_verdicts_are_those_of_the_flow_on_losses(run):
    import pandas as pd

    assert read_series(run).verdicts is None
    rows = [
        ("up", 1.2, "three_duplicates", "channel"),
        ("up", 1.3, "partial_ack", None),
        ("up", 1.4, "timeout", "congestion"),
        ("up", 1.5, "congestion_mark", "congestion"),
        ("up", 1.6, "three_duplicates", "undecided"),
        ("other", 1.7, "timeout", "congestion"),
    ]
    table = pd.DataFrame(rows, columns=["flow", "t_s", "event", "verdict"])
    table.to_parquet(run / "scheme_events.parquet")
    verdicts = read_series(run).verdicts
    assert verdicts.channel_s.tolist() == pytest.approx([0.5])  # the traffic began at 0.7 s
    assert verdicts.congestion_s.tolist() == pytest.approx([0.7])
    assert verdicts.undecided_s.tolist() == pytest.approx([0.9])
    assert read_series(run, 1).verdicts is None


def test_every_flow_of_a_run_can_be_read():
    up, down = read_series(RUN, 0), read_series(RUN, 1)
    assert (up.flow, down.flow) == ("up", "down")
    assert (up.bottleneck, down.bottleneck) == ("radio forward", "radio backward")
    assert up.cwnd.time_s[0] < 0.2 and 0.5 < down.cwnd.time_s[0] < 0.7  # it starts 0.5 s later
    assert up.end_s == down.end_s == pytest.approx(2.0)
    for series in (up, down):
        assert min(len(each.value) for each in (series.cwnd, series.ssthresh, series.rtt_ms)) > 5


def test_samples_are_condensed_with_their_extremes():
    time = np.arange(10_000.0)
    value = np.where(time == 5000, 99.0, 1.0)
    curve = condense(time, value)
    assert len(curve.time_s) <= 600
    assert (curve.maximum.max(), curve.minimum.min()) == (99, 1)
    same = condense(time[:100], value[:100])
    assert same.time_s.tolist() == time[:100].tolist()


def test_steps_are_condensed_with_their_mean_over_time():
    # 0 for 1 s, 4 for 1 s, 0 for 8 s.
    curve = condense_steps(np.array([1.0, 2.0]), np.array([4.0, 0.0]), 10.0)
    assert curve.value.mean() == pytest.approx(0.4)
    assert curve.maximum.max() == 4
    assert curve.value[90] == pytest.approx(4)  # 1.5 s
    assert curve.value[30] == curve.maximum[30] == 0  # 0.5 s
    # What is shorter than can be drawn is in the extremes.
    short = condense_steps(np.array([5.0, 5.000001]), np.array([7.0, 0.0]), 10.0)
    assert short.maximum.max() == 7 and short.value.max() < 0.1
