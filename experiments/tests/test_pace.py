# SPDX-License-Identifier: Apache-2.0
"""Estimates learn how fast this machine is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nagi.campaign import pace
from nagi.campaign.estimate import seconds_in, virtual_seconds_of
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import SCHEMAS


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "nagi" / "pace.json"


def test_a_slow_machine_is_slow_next_time():
    point, *_ = read_experiment(SCHEMAS / "example" / "experiment.yaml", None)
    plan, *_ = plan_runs(point, None)
    assert seconds_in("virtual")(plan) == virtual_seconds_of(plan)
    real = seconds_in("netns")(plan)
    pace.learn(100, 250)
    assert seconds_in("virtual")(plan) == pytest.approx(2.5 * virtual_seconds_of(plan))
    assert seconds_in("netns")(plan) == real


def test_once_known_what_is_as_estimated_changes_nothing():
    pace.learn(100, 250)
    for _ in range(20):
        pace.learn(250, 250)
    assert pace.known().ratio == pytest.approx(2.5)


def test_of_earlier_runs_an_hour_counts():
    pace.learn(3000, 6000)
    pace.learn(1200, 600)  # 600 s without the pace: both fit into an hour
    assert pace.known().ratio == pytest.approx(6600 / 3600)
    pace.learn(3600 * 6600 / 3600, 3600)
    assert pace.known().ratio == pytest.approx(1.0)


class Clocks:
    """Processor times as a test has them: busy, idle, and this process's own."""

    def __init__(self, monkeypatch):
        self._now = (1000.0, 5000.0, 10.0)
        monkeypatch.setattr(pace, "_processor_seconds", lambda: self._now)

    def go_on(self, *, own=0.0, others=0.0, idle=0.0):
        busy, idle_so_far, own_so_far = self._now
        self._now = (busy + own + others, idle_so_far + idle, own_so_far + own)


@pytest.mark.parametrize(
    ("own", "others", "idle", "share"),
    [(20, 0, 0, 1), (20, 0, 20, 1), (10, 10, 0, 0.5), (5, 10, 5, 0.5), (0, 0, 0, 1)],
)
def test_what_others_take_of_the_processors_is_not_a_slow_machine(
    monkeypatch, own, others, idle, share
):
    clocks = Clocks(monkeypatch)
    measured = pace.Share()
    clocks.go_on(own=own, others=others, idle=idle)
    assert measured.value() == pytest.approx(share)


def test_processes_that_were_waited_for_are_ones_own(monkeypatch):
    # Of this machine's clocks only what a test can know: a child's time is there once it has ended.
    *_, before = pace._processor_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert pace._processor_seconds()[2] > before
    assert 0 < pace.Share().value() <= 1


def test_a_campaign_of_nothing_teaches_nothing(kept):
    pace.learn(0, 0)
    assert not kept.exists() and pace.known().ratio == 1.0


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 2}', '{"estimated_s": "no"}'])
def test_a_damaged_file_is_as_none(kept, text):
    kept.parent.mkdir()
    kept.write_text(text)
    assert pace.known().ratio == 1.0
    pace.learn(10, 20)
    assert pace.known().ratio == 2.0


def test_where_nothing_can_be_kept_nothing_is(kept):
    kept.parent.write_text("a file is here")
    pace.learn(10, 20)
    assert pace.known().ratio == 1.0
