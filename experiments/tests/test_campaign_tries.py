# SPDX-License-Identifier: Apache-2.0
"""How often a campaign tries a run, and beside how many others; the lab is a stand-in."""

from __future__ import annotations

from collections import Counter

import pytest
from nagi import campaign
from nagi.campaign import CampaignDirectory, Runner, Selection
from nagi.contracts.records import Build, Verdict
from nagi.paths import ROOT
from nagi.planner import plan_runs
from nagi.spec import read_experiment

BUILD = Build(id="test", version="0", commit=None, nagi_link="", nagi_agent="")


class Observer:
    def done_before(self, plans): ...
    def lab_starting(self, cells): ...
    def batch_starting(self, plans, lead_s): ...
    def run_over(self, plan, verdict): ...


@pytest.fixture
def tried(tmp_path, monkeypatch):
    """Runs the small example; the first tries of each run end with the statuses given. Returns the
    verdicts, and of every lab how many cells it had and which runs it ran."""
    labs: list[tuple[int, list[str]]] = []

    def run(statuses: list[str], *, jobs: int, tries: int):
        counts: Counter[str] = Counter()
        points = read_experiment(ROOT / "experiments/schemas/example/experiment.yaml", "short")
        plans = [plan.with_ids(BUILD.id) for point in points for plan in plan_runs(point, "short")]

        class Lab:
            def __init__(self, shape, cells, *_):
                self.cells = [f"cell{number}" for number in range(cells)]
                labs.append((cells, []))

            def __enter__(self):
                return self

            def __exit__(self, *_): ...
            def prepare(self, plans): ...
            def lead_s(self):
                return 0.0

            def run_batch(self, batch):
                for cell, dealt in batch.items():
                    for plan in dealt:
                        labs[-1][1].append(plan.run_id)
                        over[plan.run_id] = cell

        over: dict[str, str] = {}

        def collect(records, runs, plan, cell, lab, build):
            del over[plan.run_id]
            status = statuses[counts[plan.run_id]]
            counts[plan.run_id] += 1
            target = runs / plan.run_id
            if target.exists():
                target.rename(f"{target}.invalid-{counts[plan.run_id] - 1}")
            target.mkdir()
            verdict = Verdict(run_id=plan.run_id, status=status, reasons=[], checks=[])
            verdict.write(target / "verdict.json")
            return verdict

        monkeypatch.setattr(campaign.netns, "NetnsLab", Lab)
        monkeypatch.setattr(campaign, "collect", collect)
        monkeypatch.setattr(campaign, "over", lambda records, plan: over.get(plan.run_id))
        directory = CampaignDirectory(tmp_path / "out")
        with directory.held():
            verdicts = Runner(
                Selection("short", points, plans, {}, BUILD),
                directory,
                jobs=jobs,
                tries=tries,
                analyse=lambda run: None,
                interrupted=lambda: False,
                observer=Observer(),
            ).run()
        return {verdict.status for verdict in verdicts.values()}, labs

    return run


def test_valid_runs_are_run_once_side_by_side(tried):
    statuses, labs = tried(["valid"], jobs=2, tries=3)
    assert statuses == {"valid"}
    ((cells, runs),) = labs
    assert cells == 2
    assert len(runs) == len(set(runs)) > 1


def test_invalid_runs_are_tried_again_one_at_a_time(tried):
    statuses, labs = tried(["invalid", "invalid", "valid"], jobs=2, tries=3)
    assert statuses == {"valid"}
    assert [cells for cells, _ in labs] == [2, 1, 1]
    assert sorted(labs[0][1]) == sorted(labs[1][1]) == sorted(labs[2][1])


def test_after_the_last_try_a_run_stays_invalid(tried):
    statuses, labs = tried(["invalid"] * 2, jobs=2, tries=2)
    assert statuses == {"invalid"}
    assert [cells for cells, _ in labs] == [2, 1]


def test_failed_runs_are_left_to_the_next_command(tried):
    statuses, labs = tried(["failed"], jobs=1, tries=3)
    assert statuses == {"failed"}
    assert len(labs) == 1
