# SPDX-License-Identifier: Apache-2.0
"""Campaigns in a lab whose runs have known values: repetition of invalid runs, and `until`."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.repeats import add_repeats, choose_run_count, describe_wide_points
from nagi.campaign.run_directory import read_verdict
from nagi.campaign.runner import Runner, TooNoisy
from nagi.campaign.selection import Selection, select_runs
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


def make_agi(plan: RunPlan) -> float:
    return 0.5 + SPREAD[plan.point["rate"]] * math.sin(1 + 2 * plan.repeat)


class Lab:
    """A replacement of the netns lab, in which a run ends at once."""

    in_real_time = True

    def __init__(self, out: Path) -> None:
        self.runs = out / "runs"
        self.records = out / ".records"
        self.ran: list[str] = []
        self.batches = 0
        self.invalid: set[tuple[str, int]] = set()
        self.statuses: list[
            str
        ] = []  # of the first attempts of every run; later ones follow `invalid`
        self.delayed: set[tuple[str, int]] = set()  # late at the first attempt
        self.tries: Counter[str] = Counter()
        self.ended: set[str] = set()
        self.labs: list[tuple[int, list[str]]] = []  # the number of cells, and the runs of each lab
        self.interrupt_in_batch = 0
        self.errors: list[str] = []
        self.breaks: list[LabError] = []  # the errors of the first batches, each during a run
        self.unfit = ""

    name = "netns"

    def open(self, shape, plans, jobs):
        cells = min(jobs, len(plans))
        self.cells = [f"cell{number}" for number in range(cells)]
        self.labs.append((cells, []))
        return self

    def exclude_cells(self, error):
        self.errors.append(str(error))
        return []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def prepare(self, plans):
        if self.unfit:
            raise Unfit(self.unfit)

    def estimate_lead_s(self):
        return 0.0

    def run_batch(self, batch):
        self.batches += 1
        if self.batches == self.interrupt_in_batch:
            raise Interrupted
        ran = [plan.run_id for plans in batch.values() for plan in plans]
        if self.breaks:
            error = self.breaks.pop(0)
            over = [plan.run_id for plan in batch["cell0"][:1]] if error.cells else []
            for plans in batch.values():
                for plan in plans[len(over) : 2]:
                    (self.records / "cell0_a" / plan.run_id).mkdir(parents=True, exist_ok=True)
            self.ended |= set(over)
            self.ran += over
            raise error
        self.ran += ran
        self.labs[-1][1].extend(ran)
        self.ended |= set(ran)
        return {}

    def find_finished_cell(self, records, plan):
        return "cell0" if plan.run_id in self.ended else None

    def collect(self, records, runs, plan, cell, lab, build):
        self.ended.remove(plan.run_id)
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
    """Write the metrics of two flows, whose mean is the run's AGI."""
    plan = RunPlan.read(run / "plan.json")
    row = Metrics.read(RECORDED / "metrics.json").rows[0]
    rows = [
        row.model_copy(update={"run_id": plan.run_id, "agi": make_agi(plan) + apart})
        for apart in (-0.1, 0.1)
    ]
    Metrics(rows=rows, files={}, notices=[]).write(run / "metrics.json")


def run(
    spec, out, lab, tries=1, stop_if_noisy=False
) -> tuple[Selection, Listener, CampaignDirectory]:
    """Execute a campaign as `nagi run` does."""
    selection = select_runs(read_experiment(spec, None), None, {}, BUILD)
    directory, listener = CampaignDirectory(out), Listener()
    with directory.lock():
        selection = add_repeats(selection, directory.runs)
        directory.write_campaign(selection, "netns", {})

        def grow(selection: Selection) -> Selection:
            larger = add_repeats(selection, directory.runs)
            directory.write_campaign(larger, "netns", {})
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
            find_finished_cell=lab.find_finished_cell,
            collect=lab.collect,
        )
        runner.run()
    return runner.selection, listener, directory


def count_runs(directory: CampaignDirectory) -> dict[str, int]:
    runs = Campaign.read(directory.campaign_file).runs
    return {rate: sum(run.point["rate"] == rate for run in runs) for rate in SPREAD}


def test_points_are_repeated_as_often_as_they_need(spec, lab, tmp_path):
    selection, listener, directory = run(spec, tmp_path / "out", lab)
    result = count_runs(directory)
    assert result["1 Mb/s"] == 3
    assert 3 < result["2 Mb/s"] < 12
    assert result["3 Mb/s"] == 12
    values = [make_agi(p) for p in selection.plans if p.point["rate"] == "2 Mb/s"]
    assert halfwidth(values) <= 0.02
    assert listener.added == sum(result.values()) - 9
    assert len(lab.ran) == len(set(lab.ran)) == sum(result.values())
    (output,) = describe_wide_points(selection, directory.runs)
    assert output.startswith("3 Mb/s: the interval of agi is ±")
    assert output.endswith("after 12 runs (12 valid); `until` requires ±0.02")
    assert Campaign.read(directory.campaign_file).until == Until(
        metric="agi", halfwidth=0.02, at_most=12
    )


def test_repeats_have_the_seeds_they_would_have_without(spec, lab, tmp_path):
    selection, _, _ = run(spec, tmp_path / "out", lab)
    spec.write_text(SPEC.replace(UNTIL, "").replace("repeats: 3", "repeats: 12"))
    fixed = {p.run_id: p for p in select_runs(read_experiment(spec, None), None, {}, BUILD).plans}
    assert all(fixed[plan.run_id] == plan for plan in selection.plans)
    assert len({plan.seed for plan in selection.plans}) == len(selection.plans)


def test_repeats_can_be_chosen_as_they_are_counted(spec, tmp_path):
    spec.write_text(SPEC.replace(UNTIL, ""))
    points = read_experiment(spec, None)
    whole = select_runs(points, None, {}, BUILD).plans
    only = {"repeat": ["1", "3"], "rate": ["2 Mb/s"]}
    selection = select_runs(points, None, only, BUILD)
    assert CampaignDirectory(tmp_path).write_campaign(selection, "netns", {}).only == only
    chosen = selection.plans
    assert chosen == [p for p in whole if p.point["rate"] == "2 Mb/s" and p.repeat in (0, 2)]
    assert len(chosen) == 2
    with pytest.raises(InputError, match=r"--only repeat=4: there is no such value; .*1, 2, 3"):
        select_runs(points, None, {"repeat": ["4"]}, BUILD)


def test_repeats_cannot_be_chosen_that_results_decide_on(spec):
    with pytest.raises(InputError, match="the experiment's `until` decides the number"):
        select_runs(read_experiment(spec, None), None, {"repeat": ["1"]}, BUILD)


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
    assert len(Campaign.read(directory.campaign_file).runs) == len(selection.plans)


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
    assert count_runs(directory)["1 Mb/s"] == 4


def test_how_many_are_added():
    until = Until(metric="agi", halfwidth=0.1, at_most=20)
    assert choose_run_count([0.5, 0.5, 0.5], 3, until) == 3
    assert choose_run_count([0.5, 0.6, 0.7], 3, until) == 6  # 7 needed; at most doubled at once
    assert choose_run_count([0.50, 0.55, 0.68, 0.64], 4, until) == 6
    assert choose_run_count([0.1, 0.9] * 5, 10, until) == 20
    assert choose_run_count([0.1, 0.9] * 10, 20, until) == 20
    assert choose_run_count([], 3, until) == 4


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
    with pytest.raises(InputError, match=complaint) as error:
        read_experiment(spec, None)
    assert f"{spec}:" in str(error.value)


def test_keep_is_the_same_at_every_point(spec):
    spec.write_text(
        SPEC.replace("duration", "keep: {captures: $what}\nduration").replace(
            "matrix: {", "matrix: {what: [both, none], "
        )
    )
    with pytest.raises(InputError, match="keep: `keep` differs between points"):
        read_experiment(spec, None)


def read_statuses(directory: CampaignDirectory) -> set[str]:
    result = directory.runs.glob("*/verdict.json")
    return {Verdict.read(path).status for path in result if ".invalid-" not in path.parent.name}


@pytest.fixture
def without_until(spec):
    spec.write_text(SPEC.replace(UNTIL, ""))
    return spec


def test_valid_runs_are_run_once_side_by_side(without_until, lab, tmp_path):
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert read_statuses(directory) == {"valid"}
    ((cells, ran),) = lab.labs
    assert cells == 2
    assert len(ran) == len(set(ran)) == 9


def test_invalid_runs_are_tried_again_one_at_a_time(without_until, lab, tmp_path):
    lab.statuses = ["invalid", "invalid"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert read_statuses(directory) == {"valid"}
    assert [cells for cells, _ in lab.labs] == [2, 1, 1]
    assert sorted(lab.labs[0][1]) == sorted(lab.labs[1][1]) == sorted(lab.labs[2][1])


def test_after_the_last_try_a_run_stays_invalid(without_until, lab, tmp_path):
    lab.statuses = ["invalid", "invalid"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=2)
    assert read_statuses(directory) == {"invalid"}
    assert [cells for cells, _ in lab.labs] == [2, 1]


def test_failed_runs_are_left_to_the_next_command(without_until, lab, tmp_path):
    lab.statuses = ["failed"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert read_statuses(directory) == {"failed"}
    assert len(lab.labs) == 1


def test_runs_that_were_begun_too_late_are_tried_again_one_at_a_time(without_until, lab, tmp_path):
    lab.statuses = ["late", "late"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert read_statuses(directory) == {"valid"}
    assert [cells for cells, _ in lab.labs] == [2, 1, 1]


def test_after_the_last_try_a_run_that_is_late_has_failed(without_until, lab, tmp_path):
    lab.statuses = ["late", "late"]
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=2)
    assert read_statuses(directory) == {"failed"}
    assert [cells for cells, _ in lab.labs] == [2, 1]


def make_error(*cells: str) -> LabError:
    error = LabError("the agent died")
    error.cells = set(cells)
    return error


def test_a_lab_that_breaks_costs_the_run_it_broke_and_no_other(without_until, lab, tmp_path):
    lab.breaks = [make_error("cell0")]
    selection, _, directory = run(without_until, tmp_path / "out", lab)
    first, second = selection.plans[0].run_id, selection.plans[2].run_id
    verdicts = {p.run_id: read_verdict(directory.runs, p.run_id) for p in selection.plans}
    (failed,) = [run_id for run_id, verdict in verdicts.items() if verdict.status == "failed"]
    # Cells take runs in turn: the second run of the first cell is the third of all.
    assert failed == second
    assert verdicts[failed].reasons == ["the agent died"]
    # The finished run was not repeated; the run that the other cell had begun was.
    assert lab.ran.count(first) == 1
    assert Counter(lab.ran) == Counter(set(verdicts) - {failed})
    assert lab.errors == ["the agent died"]


def test_a_lab_that_never_works_ends_the_campaign(without_until, lab, tmp_path):
    lab.breaks = [LabError("no lab") for _ in range(30)]
    for error in lab.breaks:
        error.cells = set()
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
    """Change the experiment so that each of two cells gets two runs of 40 s per batch."""
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
    # No run was repeated, and finished runs are kept.
    assert lab.batches == 1
    assert len(list((tmp_path / "out" / "runs").glob("*/verdict.json"))) == 4
    assert not (tmp_path / "out" / ".lab").exists()


def test_a_campaign_that_was_stopped_goes_on_if_it_is_told_to(without_until, lab, tmp_path):
    spread_over_batches(without_until, repeats=9)
    lab.statuses = ["delayed"]
    with pytest.raises(TooNoisy):
        run(without_until, tmp_path / "out", lab, tries=3, stop_if_noisy=True)
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3)
    assert read_statuses(directory) == {"valid"}
    assert set(lab.tries.values()) == {2}


def test_runs_that_are_late_after_the_first_batch_are_tried_again(without_until, lab, tmp_path):
    spread_over_batches(without_until, repeats=9)
    lab.delayed = {("1 Mb/s", repeat) for repeat in range(4, 9)}
    _, _, directory = run(without_until, tmp_path / "out", lab, tries=3, stop_if_noisy=True)
    assert read_statuses(directory) == {"valid"}
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
        assert read_statuses(directory) == {"valid"}


@pytest.mark.parametrize("status", ["invalid", "spoiled", "failed"])
def test_what_is_invalid_for_other_reasons_stops_nothing(without_until, lab, tmp_path, status):
    spread_over_batches(without_until, repeats=9)
    lab.statuses = [status]
    run(without_until, tmp_path / "out", lab, tries=2, stop_if_noisy=True)
    assert len(lab.tries) == 9
