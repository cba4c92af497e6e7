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


KIND = "hosts"


@pytest.fixture(scope="module")
def plan():
    point, *_ = read_experiment(SCHEMAS / "example" / "experiment.yaml", None)
    return plan_runs(point, None)[0]


def test_a_slow_machine_is_slow_next_time(plan):
    assert seconds_in("virtual")(plan) == virtual_seconds_of(plan)
    real = seconds_in("netns")(plan)
    pace.learn(pace.kind_of(plan), 100, 250)
    assert seconds_in("virtual")(plan) == pytest.approx(2.5 * virtual_seconds_of(plan))
    assert seconds_in("netns")(plan) == real


def test_once_known_what_is_as_estimated_changes_nothing():
    pace.learn(KIND, 100, 250)
    for _ in range(20):
        pace.learn(KIND, 100, 250)
    assert pace.known().of(KIND).ratio == pytest.approx(2.5)


def test_of_earlier_runs_an_hour_counts():
    pace.learn(KIND, 3000, 6000)
    pace.learn(KIND, 600, 600)  # both fit into an hour
    assert pace.known().of(KIND).ratio == pytest.approx(6600 / 3600)
    pace.learn(KIND, 3600, 3600)
    assert pace.known().of(KIND).ratio == pytest.approx(1.0)


def test_each_kind_of_runs_has_a_pace(plan):
    over_media = plan.model_copy(update={"media": plan.links})
    assert (pace.kind_of(plan), pace.kind_of(over_media)) == (KIND, f"{KIND} media")
    pace.learn(pace.kind_of(over_media), 100, 50)
    assert pace.known().of(KIND).ratio == 0.5  # nothing else is known
    pace.learn(KIND, 100, 200)
    assert pace.known().of(KIND).ratio == 2.0
    assert pace.known().of(f"{KIND} media").ratio == 0.5
    assert pace.known().of(f"{KIND} switches").ratio == 250 / 200


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
    pace.learn(KIND, 0, 0)
    assert not kept.exists() and pace.known().of(KIND).ratio == 1.0


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}', '{"kinds": "no"}'])
def test_a_damaged_file_is_as_none(kept, text):
    kept.parent.mkdir()
    kept.write_text(text)
    assert pace.known().of(KIND).ratio == 1.0
    pace.learn(KIND, 10, 20)
    assert pace.known().of(KIND).ratio == 2.0


def test_where_nothing_can_be_kept_nothing_is(kept):
    kept.parent.write_text("a file is here")
    pace.learn(KIND, 10, 20)
    assert pace.known().of(KIND).ratio == 1.0
