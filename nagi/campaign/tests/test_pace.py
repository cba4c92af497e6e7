# SPDX-License-Identifier: Apache-2.0
"""Paces: estimates adapt to the speed of this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
from nagi.campaign import pace
from nagi.campaign.estimate import estimate_disk, estimate_virtual_seconds, make_time_estimator
from nagi.plan.planner import plan_runs
from nagi.spec.points import read_experiment
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.records import Keep


@pytest.fixture(autouse=True)
def pace_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "nagi" / "pace.json"


@pytest.fixture(scope="module")
def plan():
    point, *_ = read_experiment(SCHEMAS / "example" / "experiment.yaml", None)
    return plan_runs(point, None)[0]


def record_pace(plan, estimated_s, took_s):
    pace.record_pace(plan, pace.Pace(estimated_s=estimated_s, took_s=took_s))


def change_experiment(plan, **changes):
    other = plan.experiment.model_copy(update={"name": "other"})
    return plan.model_copy(update={"experiment": other, **changes})


def test_a_slow_machine_is_slow_next_time(plan):
    assert make_time_estimator("virtual")(plan) == estimate_virtual_seconds(plan)
    real = make_time_estimator("netns")(plan)
    record_pace(plan, 100, 250)
    assert make_time_estimator("virtual")(plan) == pytest.approx(
        2.5 * estimate_virtual_seconds(plan)
    )
    assert make_time_estimator("netns")(plan) == real


def test_once_known_what_is_as_estimated_changes_nothing(plan):
    for _ in range(20):
        record_pace(plan, 100, 250)
    assert pace.read_paces().find_time_ratio(plan) == pytest.approx(2.5)


def test_of_earlier_runs_an_hour_counts(plan):
    record_pace(plan, 3000, 6000)
    record_pace(plan, 600, 600)  # both fit into an hour
    assert pace.read_paces().find_time_ratio(plan) == pytest.approx(6600 / 3600)
    record_pace(plan, 3600, 3600)
    assert pace.read_paces().find_time_ratio(plan) == pytest.approx(1.0)


def test_each_kind_of_runs_has_a_pace(plan):
    other = change_experiment(plan)
    over_media = change_experiment(plan, media=plan.links)
    assert (pace.classify_run(other), pace.classify_run(over_media)) == ("hosts", "hosts media")
    record_pace(plan.model_copy(update={"media": plan.links}), 100, 50)
    assert pace.read_paces().find_time_ratio(other) == 0.5  # nothing else is known
    record_pace(plan, 100, 200)
    assert pace.read_paces().find_time_ratio(other) == 2.0
    assert pace.read_paces().find_time_ratio(over_media) == 0.5
    over_fpgas = change_experiment(
        plan, flows=[plan.flows[0].model_copy(update={"application": "any"})]
    )
    assert pace.read_paces().find_time_ratio(over_fpgas) == 250 / 200  # all kinds together


def test_an_experiment_has_a_pace_of_its_own(plan):
    record_pace(plan, 3, 56)
    record_pace(change_experiment(plan), 300, 300)
    assert pace.read_paces().find_time_ratio(plan) == pytest.approx(56 / 3)
    assert pace.read_paces().find_time_ratio(change_experiment(plan)) == 1.0
    quick = plan.experiment.model_copy(update={"variant": "quick"})
    quick = plan.model_copy(update={"experiment": quick})
    assert pace.read_paces().find_time_ratio(quick) == pytest.approx(
        356 / 303
    )  # as all of its kind


def test_disk_is_learned_like_time(plan):
    before = estimate_disk([plan], Keep(), 1, "virtual")
    pace.record_pace(plan, pace.Pace(estimated_bytes=864_000_000, kept_bytes=51_000_000))
    after = estimate_disk([plan], Keep(), 1, "virtual")
    assert after.kept == pytest.approx(before.kept * 51 / 864, abs=1)
    assert after.peak == pytest.approx(before.peak * 51 / 864, abs=2)
    assert pace.read_paces().find_time_ratio(plan) == 1.0


def test_the_oldest_experiments_are_forgotten(plan, pace_file):
    for number in range(103):
        experiment = plan.experiment.model_copy(update={"name": f"e{number}"})
        record_pace(plan.model_copy(update={"experiment": experiment}), 10, 20)
    assert list(pace.read_paces().experiments) == [f"e{number}" for number in range(3, 103)]


class Clocks:
    """Processor times that a test sets: busy, idle, and this process's own."""

    def __init__(self, monkeypatch):
        self._now = (1000.0, 5000.0, 10.0)
        monkeypatch.setattr(pace, "_read_processor_seconds", lambda: self._now)

    def advance(self, *, own=0.0, others=0.0, idle=0.0):
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
    measured = pace.ProcessorShare()
    clocks.advance(own=own, others=others, idle=idle)
    assert measured.measure() == pytest.approx(share)


def test_processes_that_were_waited_for_are_ones_own(monkeypatch):
    # A test cannot know more of this machine's clocks than that a child's time counts when it ends.
    *_, before = pace._read_processor_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert pace._read_processor_seconds()[2] > before
    assert 0 < pace.ProcessorShare().measure() <= 1


def test_a_campaign_of_nothing_teaches_nothing(plan, pace_file):
    record_pace(plan, 0, 0)
    assert not pace_file.exists() and pace.read_paces().find_time_ratio(plan) == 1.0


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1}', '{"kinds": "no"}'])
def test_a_damaged_file_is_as_none(plan, pace_file, text):
    pace_file.parent.mkdir()
    pace_file.write_text(text)
    assert pace.read_paces().find_time_ratio(plan) == 1.0
    record_pace(plan, 10, 20)
    assert pace.read_paces().find_time_ratio(plan) == 2.0


def test_where_nothing_can_be_kept_nothing_is(plan, pace_file):
    pace_file.parent.write_text("a file is here")
    record_pace(plan, 10, 20)
    assert pace.read_paces().find_time_ratio(plan) == 1.0
