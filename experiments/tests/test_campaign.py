# SPDX-License-Identifier: Apache-2.0
"""How often a campaign runs what beside how much else, with a lab whose runs give known values:
invalid runs are tried again, points are repeated until an interval is narrow enough."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from nagi.campaign.campaign import CampaignDirectory, Runner, Selection, TooNoisy, select
from nagi.campaign.collection import verdict_of
from nagi.campaign.repeats import add_repeats, next_count, too_wide_in_words
from nagi.labs.errors import Interrupted, LabError, Unfit
from nagi.spec.points import read_experiment
from nagi_contracts.errors import InputError
from nagi_contracts.paths import SCHEMAS
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Campaign, Check, Until, Verdict
from nagi_contracts.results import Metrics
from nagi_reports.statistics import halfwidth

(RECORDED,) = sorted((SCHEMAS / "example" / "campaign" / "runs").iterdir())
BUILD = Build(id="b" * 16, version="0", commit=None, nagi_link="", nagi_agent="")
UNTIL = "until: {metric: agi, halfwidth: 0.02, at_most: 12}"
SPEC = f"""\
schema_version: 1
name: test
title: A test
seed: 1
repeats: 3
{UNTIL}
nodes: {{a: host, b: host}}
links:
  l: {{between: [a, b], rate: $rate, delay: 10 ms, queue: 1 bdp}}
flows:
  f: {{from: a, to: b, scheme: cubic}}
  g: {{from: b, to: a, scheme: cubic}}
duration: 2 s
matrix: {{rate: [1 Mb/s, 2 Mb/s, 3 Mb/s]}}
report: {{x: rate, series: rate}}
"""
MISSED = Check(name="", description="", value=2, limit=1, unit="ms", ok=False)
# The AGI of each repeat: without spread, with some, and with too much.
SPREAD = {"1 Mb/s": 0.0, "2 Mb/s": 0.02, "3 Mb/s": 0.5}


def agi(plan: RunPlan) -> float:
    return 0.5 + SPREAD[plan.point["rate"]] * math.sin(1 + 2 * plan.repeat)


class Lab:
    """Instead of the netns lab: a run in it is over at once."""

    in_real_time = True

    def __init__(self, out: Path) -> None:
        self.runs = out / "runs"
        self.records = out / ".records"
        self.ran: list[str] = []
        self.batches = 0
        self.invalid: set[tuple[str, int]] = set()
        self.statuses: list[str] = []  # of the first tries of every run; then as `invalid` says
        self.delayed: set[tuple[str, int]] = set()  # late at the first try
        self.tries: Counter[str] = Counter()
        self.over_now: set[str] = set()
        self.labs: list[tuple[int, list[str]]] = []  # cells, and what was run in them
        self.interrupt_in_batch = 0
        self.troubles: list[str] = []
        self.breaks: list[LabError] = []  # in the first batches: after a run, in the next
        self.unfit = ""

    name = "netns"

    def open(self, shape, plans, jobs):
        cells = min(jobs, len(plans))
        self.cells = [f"cell{number}" for number in range(cells)]
        self.labs.append((cells, []))
        return self

    def give_up(self, trouble):
        self.troubles.append(str(trouble))
        return []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def prepare(self, plans):
        if self.unfit:
            raise Unfit(self.unfit)

    def lead_s(self):
        return 0.0

    def run_batch(self, batch):
        self.batches += 1
        if self.batches == self.interrupt_in_batch:
            raise Interrupted
        ran = [plan.run_id for plans in batch.values() for plan in plans]
        if self.breaks:
            trouble = self.breaks.pop(0)
            over = [plan.run_id for plan in batch["cell0"][:1]] if trouble.cells else []
            for plans in batch.values():
                for plan in plans[len(over) : 2]:
                    (self.records / "cell0_a" / plan.run_id).mkdir(parents=True, exist_ok=True)
            self.over_now |= set(over)
            self.ran += over
            raise trouble
        self.ran += ran
        self.labs[-1][1].extend(ran)
        self.over_now |= set(ran)
        return {}

    def finished_cell(self, records, runs, plan):
        return "cell0" if plan.run_id in self.over_now else None

    def collect(self, records, runs, plan, cell, lab, build):
        self.over_now.remove(plan.run_id)
        status = "invalid" if (plan.point["rate"], plan.repeat) in self.invalid else "valid"
        if self.tries[plan.run_id] < len(self.statuses):
            status = self.statuses[self.tries[plan.run_id]]
        if not self.tries[plan.run_id] and (plan.point["rate"], plan.repeat) in self.delayed:
            status = "delayed"
        self.tries[plan.run_id] += 1
        late = status == "late"
        missed = {"delayed": ["host_response_p99"], "spoiled": ["host_response_p99", "changes"]}
        checks = [MISSED.model_copy(update={"name": name}) for name in missed.get(status, [])]
        status = "failed" if late else "invalid" if checks else status
        verdict = Verdict(
            run_id=plan.run_id, status=status, reasons=[], too_late=late, checks=checks
        )
        directory = runs / plan.run_id
        if directory.exists():
            directory.rename(f"{directory}.invalid-{self.tries[plan.run_id] - 1}")
        directory.mkdir()
        plan.write(directory / "plan.json")
        verdict.write(directory / "verdict.json")
        return verdict


class Listener:
    def __init__(self):
        self.added = 0
        self.rounds = []

    def done_before(self, plans):
        self.before = len(plans)

    def runs_added(self, plans):
        self.added += len(plans)

    def round_starting(self, plans):
        self.rounds.append(len(plans))

    def lab_starting(self, lab, cells):
        pass

    def lab_failed(self, why, given_up):
        pass

    def batch_starting(self, plans, lead_s):
        pass

    def run_over(self, plan, verdict):
        pass


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "test.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path / "out")


def analyse(run: Path) -> None:
    """Two flows, whose mean is the run's AGI."""
    plan = RunPlan.read(run / "plan.json")
    row = Metrics.read(RECORDED / "metrics.json").rows[0]
    rows = [
        row.model_copy(update={"run_id": plan.run_id, "agi": agi(plan) + apart})
        for apart in (-0.1, 0.1)
    ]
    Metrics(rows=rows, files={}, notices=[]).write(run / "metrics.json")


def run(
    spec, out, lab, tries=1, stop_if_noisy=False
) -> tuple[Selection, Listener, CampaignDirectory]:
    """What `nagi run` does."""
    selection = select(read_experiment(spec, None), None, {}, BUILD)
    directory, listener = CampaignDirectory(out), Listener()
    with directory.held():
        selection = add_repeats(selection, directory.runs)
        directory.describe(selection, "netns", {})

        def grow(selection: Selection) -> Selection:
            larger = add_repeats(selection, directory.runs)
            directory.describe(larger, "netns", {})
            return larger

        runner = Runner(
            selection,
            directory,
            lab,
            jobs=2,
            tries=tries,
            stop_if_noisy=stop_if_noisy,
            analyse=analyse,
            grow=grow,
            observer=listener,
            finished_cell=lab.finished_cell,
            collect=lab.collect,
        )
        runner.run()
    return runner.selection, listener, directory


def counts(directory: CampaignDirectory) -> dict[str, int]:
    runs = Campaign.read(directory.campaign).runs
    return {rate: sum(run.point["rate"] == rate for run in runs) for rate in SPREAD}


def test_points_are_repeated_as_often_as_they_need(spec, lab, tmp_path):
    selection, listener, directory = run(spec, tmp_path / "out", lab)
    found = counts(directory)
    assert found["1 Mb/s"] == 3
    assert 3 < found["2 Mb/s"] < 12
    assert found["3 Mb/s"] == 12
    values = [agi(p) for p in selection.plans if p.point["rate"] == "2 Mb/s"]
    assert halfwidth(values) <= 0.02
    assert listener.added == sum(found.values()) - 9
    assert len(lab.ran) == len(set(lab.ran)) == sum(found.values())
    (said,) = too_wide_in_words(selection, directory.runs)
    assert said.startswith("3 Mb/s: the interval of agi is ±")
    assert said.endswith("after 12 runs (12 valid); ±0.02 was asked for")
    assert Campaign.read(directory.campaign).until == Until(
        metric="agi", halfwidth=0.02, at_most=12
    )


def test_repeats_have_the_seeds_they_would_have_without(spec, lab, tmp_path):
    selection, _, _ = run(spec, tmp_path / "out", lab)
    spec.write_text(SPEC.replace(UNTIL, "").replace("repeats: 3", "repeats: 12"))
    fixed = {p.run_id: p for p in select(read_experiment(spec, None), None, {}, BUILD).plans}
    assert all(fixed[plan.run_id] == plan for plan in selection.plans)
    assert len({plan.seed for plan in selection.plans}) == len(selection.plans)


def test_repeats_can_be_chosen_as_they_are_counted(spec, tmp_path):
    spec.write_text(SPEC.replace(UNTIL, ""))
    points = read_experiment(spec, None)
    whole = select(points, None, {}, BUILD).plans
    only = {"repeat": ["1", "3"], "rate": ["2 Mb/s"]}
    selection = select(points, None, only, BUILD)
    assert CampaignDirectory(tmp_path).describe(selection, "netns", {}).only == only
    chosen = selection.plans
    assert chosen == [p for p in whole if p.point["rate"] == "2 Mb/s" and p.repeat in (0, 2)]
    assert len(chosen) == 2
    with pytest.raises(InputError, match=r"--only repeat=4: there is no such value; .*1, 2, 3"):
        select(points, None, {"repeat": ["4"]}, BUILD)


def test_repeats_cannot_be_chosen_that_results_decide_on(spec):
    with pytest.raises(InputError, match="the experiment's `until` decides how many"):
        select(read_experiment(spec, None), None, {"repeat": ["1"]}, BUILD)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_an_interrupted_campaign_ends_the_same(spec, lab, tmp_path, batch):
    uninterrupted, _, _ = run(spec, tmp_path / "one", lab)
    lab.ran, lab.batches, lab.interrupt_in_batch = [], 0, batch
    with pytest.raises(Interrupted):
        run(spec, tmp_path / "two", lab)
    done = list(lab.ran)
    selection, _, directory = run(spec, tmp_path / "two", lab)
    assert selection.plans == uninterrupted.plans
    assert len(lab.ran) == len(set(lab.ran)) == len(selection.plans)
    assert lab.ran[: len(done)] == done
    assert len(Campaign.read(directory.campaign).runs) == len(selection.plans)


def test_a_finished_campaign_runs_nothing_more(spec, lab, tmp_path):
    run(spec, tmp_path / "out", lab)
    ran = list(lab.ran)
    before = json.loads((tmp_path / "out" / "campaign.json").read_text())
    _, listener, _ = run(spec, tmp_path / "out", lab)
    assert lab.ran == ran
    assert (listener.before, listener.added) == (len(ran), 0)
    assert json.loads((tmp_path / "out" / "campaign.json").read_text()) == before


def test_invalid_runs_are_replaced_by_further_ones(spec, lab, tmp_path):
    lab.invalid = {("1 Mb/s", 0), ("1 Mb/s", 1)}
    _, _, directory = run(spec, tmp_path / "out", lab)
    # One valid of three is no interval; a fourth gives one, of width 0.
    assert counts(directory)["1 Mb/s"] == 4


def test_how_many_are_added():
    until = Until(metric="agi", halfwidth=0.1, at_most=20)
    assert next_count([0.5, 0.5, 0.5], 3, until) == 3
    assert next_count([0.5, 0.6, 0.7], 3, until) == 6  # 7 needed; at most doubled at once
    assert next_count([0.50, 0.55, 0.68, 0.64], 4, until) == 6
    assert next_count([0.1, 0.9] * 5, 10, until) == 20
    assert next_count([0.1, 0.9] * 10, 20, until) == 20
    assert next_count([], 3, until) == 4


@pytest.mark.parametrize(
    "change, complaint",
    [
        (("metric: agi", "metric: harm_rtt"), r"until.metric: harm_rtt compares two runs"),
        (("metric: agi", "metric: speed"), r"until.metric: unknown metric 'speed'; one of: .*agi"),
        (
            ("repeats: 3", "repeats: 2"),
            r"repeats: `until` with `repeats: 2`.*write `repeats: 3` or more",
        ),
        (("at_most: 12", "at_most: 2"), r"`at_most: 2` is less than `repeats: 3`; raise it"),
        (
            ("halfwidth: 0.02", "halfwidth: 0"),
            r"until\.halfwidth: 0 is out of range; give more than 0",
        ),
        ((", at_most: 12", ""), r"until: missing key `at_most`; add `at_most: ...`"),
        (
            ("metric: agi", "metric: agi, every: 3"),
            r"until\.every: unknown key `every`; known here: .*agi|",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(spec, change, complaint):
    spec.write_text(SPEC.replace(*change))
    with pytest.raises(InputError, match=complaint) as refused:
        read_experiment(spec, None)
    assert f"{spec}:" in str(refused.value)


def test_keep_is_the_same_at_every_point(spec):
    spec.write_text(
        SPEC.replace("duration", "keep: {captures: $what}\nduration").replace(
            "matrix: {", "matrix: {what: [both, none], "
        )
    )
    with pytest.raises(InputError, match="keep: `keep` differs between points"):
        read_experiment(spec, None)


def statuses(directory: CampaignDirectory) -> set[str]:
    found = directory.runs.glob("*/verdict.json")
    return {Verdict.read(path).status for path in found if ".invalid-" not in path.parent.name}


@pytest.fixture
def without_until(spec):
    spec.write_text(SPEC.replace(UNTIL, ""))
    return spec


def test_valid_runs_are_run_once_side_by_side(without_until, lab, tmp_path):
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert statuses(directory) == {"valid"}
    ((cells, ran),) = lab.labs
    assert cells == 2
    assert len(ran) == len(set(ran)) == 9


def test_invalid_runs_are_tried_again_one_at_a_time(without_until, lab, tmp_path):
    lab.statuses = ["invalid", "invalid"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert statuses(directory) == {"valid"}
    assert [cells for cells, _ in lab.labs] == [2, 1, 1]
    assert sorted(lab.labs[0][1]) == sorted(lab.labs[1][1]) == sorted(lab.labs[2][1])


def test_after_the_last_try_a_run_stays_invalid(without_until, lab, tmp_path):
    lab.statuses = ["invalid", "invalid"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=2)
    assert statuses(directory) == {"invalid"}
    assert [cells for cells, _ in lab.labs] == [2, 1]


def test_failed_runs_are_left_to_the_next_command(without_until, lab, tmp_path):
    lab.statuses = ["failed"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert statuses(directory) == {"failed"}
    assert len(lab.labs) == 1


def test_runs_that_were_begun_too_late_are_tried_again_one_at_a_time(without_until, lab, tmp_path):
    lab.statuses = ["late", "late"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert statuses(directory) == {"valid"}
    assert [cells for cells, _ in lab.labs] == [2, 1, 1]


def test_after_the_last_try_a_run_that_is_late_has_failed(without_until, lab, tmp_path):
    lab.statuses = ["late", "late"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=2)
    assert statuses(directory) == {"failed"}
    assert [cells for cells, _ in lab.labs] == [2, 1]


def broken(*cells: str) -> LabError:
    error = LabError("the agent died")
    error.cells = set(cells)
    return error


def test_a_lab_that_breaks_costs_the_run_it_broke_and_no_other(without_until, lab, tmp_path):
    lab.breaks = [broken("cell0")]
    selection, _, directory = run(without_until, tmp_path / "out", lab)
    first, second = selection.plans[0].run_id, selection.plans[2].run_id
    verdicts = {p.run_id: verdict_of(directory.runs, p.run_id) for p in selection.plans}
    (failed,) = [run_id for run_id, verdict in verdicts.items() if verdict.status == "failed"]
    # Runs are dealt out in turn: the second of the first cell is the third of all.
    assert failed == second
    assert verdicts[failed].reasons == ["the agent died"]
    # What was over was not run again, and what the other cell had begun was.
    assert lab.ran.count(first) == 1
    assert Counter(lab.ran) == Counter(set(verdicts) - {failed})
    assert lab.troubles == ["the agent died"]


def test_a_lab_that_never_works_ends_the_campaign(without_until, lab, tmp_path):
    lab.breaks = [LabError("no lab") for _ in range(30)]
    for trouble in lab.breaks:
        trouble.cells = set()
    with pytest.raises(LabError, match="no lab"):
        run(without_until, tmp_path / "out", lab)
    assert len(lab.labs) == 3
    assert not list((tmp_path / "out" / "runs").iterdir())


def test_hosts_that_cannot_run_it_are_refused_before_anything_is_run(without_until, lab, tmp_path):
    lab.unfit = "cell0_b: iperf is not installed; install it"
    with pytest.raises(InputError, match="iperf is not installed; install it; nothing was run"):
        run(without_until, tmp_path / "out", lab)
    assert len(lab.labs) == 1


def spread_over_batches(spec, repeats: int) -> None:
    """Runs of 40 s: each of the two cells gets two at once."""
    spec.write_text(
        spec.read_text()
        .replace("duration: 2 s", "duration: 40 s")
        .replace("repeats: 3", f"repeats: {repeats}")
        .replace("[1 Mb/s, 2 Mb/s, 3 Mb/s]", "[1 Mb/s]")
    )


@pytest.mark.parametrize("status", ["delayed", "late"])
def test_a_campaign_most_of_whose_first_batch_is_late_is_stopped(
    without_until, lab, tmp_path, status
):
    spread_over_batches(without_until, repeats=9)
    lab.statuses = [status]
    with pytest.raises(TooNoisy, match="4 of the first 4 runs were late") as stopped:
        run(without_until, tmp_path / "out", lab, tries=3, stop_if_noisy=True)
    assert stopped.value.runs == len(stopped.value.late) == 4
    # Nothing was tried again, and what was done is kept.
    assert lab.batches == 1
    assert len(list((tmp_path / "out" / "runs").glob("*/verdict.json"))) == 4
    assert not (tmp_path / "out" / ".lab").exists()


def test_a_campaign_that_was_stopped_goes_on_if_it_is_told_to(without_until, lab, tmp_path):
    spread_over_batches(without_until, repeats=9)
    lab.statuses = ["delayed"]
    with pytest.raises(TooNoisy):
        run(without_until, tmp_path / "out", lab, tries=3, stop_if_noisy=True)
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert statuses(directory) == {"valid"}
    assert set(lab.tries.values()) == {2}


def test_runs_that_are_late_after_the_first_batch_are_tried_again(without_until, lab, tmp_path):
    spread_over_batches(without_until, repeats=9)
    lab.delayed = {("1 Mb/s", repeat) for repeat in range(4, 9)}
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3, stop_if_noisy=True)
    assert statuses(directory) == {"valid"}
    assert sorted(lab.tries.values()) == [1] * 4 + [2] * 5


@pytest.mark.parametrize(
    ("late", "stops"), [(0, False), (1, False), (2, False), (3, True), (4, True)]
)
def test_it_takes_more_than_half_of_the_first_batch(without_until, lab, tmp_path, late, stops):
    spread_over_batches(without_until, repeats=9)
    lab.delayed = {("1 Mb/s", repeat) for repeat in range(late)}
    if stops:
        with pytest.raises(TooNoisy, match=f"{late} of the first 4 runs"):
            run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
    else:
        run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
        assert len(lab.tries) == 9


@pytest.mark.parametrize(("repeats", "stops"), [(2, False), (3, True)])
def test_a_batch_of_few_runs_stops_a_campaign_only_if_more_wait(
    without_until, lab, tmp_path, repeats, stops
):
    spread_over_batches(without_until, repeats)
    without_until.write_text(without_until.read_text().replace("40 s", "80 s"))
    lab.statuses = ["delayed"]
    if stops:
        with pytest.raises(TooNoisy, match="2 of the first 2 runs"):
            run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
    else:
        _, _, directory = run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
        assert statuses(directory) == {"valid"}


@pytest.mark.parametrize("status", ["invalid", "spoiled", "failed"])
def test_what_is_invalid_for_other_reasons_stops_nothing(without_until, lab, tmp_path, status):
    spread_over_batches(without_until, repeats=9)
    lab.statuses = [status]
    run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
    assert len(lab.tries) == 9
