# SPDX-License-Identifier: Apache-2.0
"""A campaign: all runs of an experiment, resumed where it stopped.

    OUT/campaign.json      which runs make it up
    OUT/runs/RUN_ID/       one directory a run
    OUT/results.parquet    a row a flow a run
    OUT/report.pdf
    OUT/.lab/              the lab's own files while it exists
    OUT/.records/          what agents have recorded and nobody has collected yet
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nagi import schemes
from nagi.ansible_runs import LabError
from nagi.collection import collect, over, record_failure, verdict_of
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Build, Campaign, CampaignRun, Verdict
from nagi.errors import refuse
from nagi.labs import netns
from nagi.labs.shape import Shape
from nagi.planner import plan_runs
from nagi.spec import Point

BATCH_SECONDS = 75.0  # of runs a cell is given at once: what shipping costs is then little


@dataclass(frozen=True)
class Selection:
    """The runs of a campaign, and what was left out."""

    form: str | None
    points: list[Point]
    plans: list[RunPlan]
    unavailable: dict[str, schemes.Availability]  # scheme -> why this machine cannot run it
    build: Build

    def available(self) -> list[RunPlan]:
        return [plan for plan in self.plans if not self.schemes_missing(plan)]

    def schemes_missing(self, plan: RunPlan) -> list[str]:
        return [flow.scheme for flow in plan.flows if flow.scheme in self.unavailable]


def select(points: list[Point], form: str | None, only: dict[str, str], build: Build) -> Selection:
    """Plans the points that have the values in `only`. Raises InputError."""
    for axis, value in only.items():
        known = sorted({point.values[axis] for point in points if axis in point.values})
        if not known:
            axes = ", ".join(points[0].values)
            raise refuse(f"--only {axis}=...: there is no such axis", f"axes: {axes}")
        if value not in known:
            raise refuse(f"--only {axis}={value}: no such value", f"values: {', '.join(known)}")
    chosen = [p for p in points if all(p.values[axis] == value for axis, value in only.items())]
    if not chosen:
        raise refuse("--only leaves no runs", "loosen it")
    plans = [plan.with_ids(build.id) for point in chosen for plan in plan_runs(point, form)]
    names = {flow.scheme for plan in plans for flow in plan.flows}
    found = {name: schemes.availability(schemes.schemes()[name], "netns") for name in names}
    unavailable = {name: found[name] for name in sorted(names) if not found[name].available}
    return Selection(form, chosen, plans, unavailable, build)


class Observer(Protocol):
    """Who wants to know how a campaign goes on."""

    def lab_starting(self, cells: int) -> None: ...
    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float) -> None: ...
    def run_over(self, plan: RunPlan, verdict: Verdict) -> None: ...


@dataclass
class Outcome:
    """How the runs of a campaign stand."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)

    def count(self, status: str) -> int:
        return sum(verdict.status == status for verdict in self.verdicts.values())


class CampaignDirectory:
    """The directory of a campaign, held by one process at a time."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.runs = out / "runs"
        self.records = out / ".records"
        self.lab = out / ".lab"
        self.campaign = out / "campaign.json"
        self.results = out / "results.parquet"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises InputError if another process holds it."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refuse(
                f"cannot write there: {error.strerror}",
                "give another directory with --out",
                file=str(self.out),
            ) from None
        with (self.out / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise refuse(
                    "another nagi is at work in this directory",
                    "wait for it, or give another one with --out",
                    file=str(self.out),
                ) from None
            yield

    def describe(self, selection: Selection, lab: str, left_out: dict[str, str]) -> Campaign:
        """Writes campaign.json."""
        experiment = selection.points[0].experiment
        campaign = Campaign(
            experiment=experiment.name,
            form=selection.form,
            title=experiment.title,
            reference=experiment.reference,
            lab=lab,
            build=selection.build,
            x=experiment.report.x,
            series=experiment.report.series,
            panels=experiment.report.panels,
            runs=[
                CampaignRun(
                    run_id=plan.run_id, point_id=plan.point_id, point=plan.point, repeat=plan.repeat
                )
                for plan in selection.available()
            ],
            left_out=left_out,
        )
        campaign.write(self.campaign)
        return campaign


def jobs_for(processors: int) -> int:
    """How many runs to have side by side: one a processor. A run at 100 Mb/s keeps about one busy."""
    return max(1, processors)


def run_campaign(
    selection: Selection,
    directory: CampaignDirectory,
    jobs: int,
    analyse: Callable[[Path], None],
    interrupted: Callable[[], bool],
    observer: Observer,
    *,
    retry_invalid: bool = False,
) -> Outcome:
    """Runs what has not been run. Raises Interrupted or LabError; finished runs are kept.

    `analyse` computes the metrics of a run directory whose run came to its end. `observer` hears of every run that comes to its end now; the outcome is about all of them.
    """
    plans = selection.available()
    outcome = Outcome()

    def collect_what_is_over(waiting: list[RunPlan]) -> list[RunPlan]:
        left = []
        for plan in waiting:
            cell = over(directory.records, plan)
            if cell is None:
                left.append(plan)
                continue
            verdict = collect(
                directory.records, directory.runs, plan, cell, netns.NAME, selection.build
            )
            if verdict.status != "failed":
                analyse(directory.runs / plan.run_id)
            outcome.verdicts[plan.run_id] = verdict
            observer.run_over(plan, verdict)
        return left

    # An earlier nagi may have ended between a run's end and its collection.
    pending = []
    for plan in collect_what_is_over(plans):
        before = verdict_of(directory.runs, plan.run_id)
        if before is None or before.status == "failed" or (
            retry_invalid and before.status == "invalid"
        ):
            pending.append(plan)
        else:
            if before.status != "failed":
                analyse(directory.runs / plan.run_id)
            outcome.verdicts[plan.run_id] = before
    shutil.rmtree(directory.records, ignore_errors=True)

    shapes: dict[Shape, list[RunPlan]] = {}
    for plan in pending:
        shapes.setdefault(Shape.of(plan), []).append(plan)
    try:
        for shape, waiting in shapes.items():
            cells = min(jobs, len(waiting))
            observer.lab_starting(cells)
            with netns.NetnsLab(
                shape,
                cells,
                directory.lab,
                directory.records,
                _modules(waiting),
                interrupted,
            ) as lab:
                try:
                    lab.check(waiting)
                except LabError as error:
                    raise refuse(str(error), "nothing was run") from None
                while waiting:
                    batch = next_batch(waiting, lab.cells)
                    chosen = [plan for plans in batch.values() for plan in plans]
                    observer.batch_starting(batch, lab.lead_s())
                    trouble = None
                    try:
                        lab.run_batch(batch)
                    except LabError as error:
                        trouble = error
                    finally:
                        unfinished = collect_what_is_over(chosen)
                    reason = str(trouble) if trouble else "an agent left no record"
                    for plan in unfinished:
                        verdict = record_failure(directory.runs, plan, reason)
                        outcome.verdicts[plan.run_id] = verdict
                        observer.run_over(plan, verdict)
                    if trouble and len(unfinished) == len(chosen):
                        raise trouble
                    done = {plan.run_id for plan in chosen}
                    waiting = [plan for plan in waiting if plan.run_id not in done]
    finally:
        shutil.rmtree(directory.lab, ignore_errors=True)
    shutil.rmtree(directory.records, ignore_errors=True)
    return outcome


def next_batch(waiting: list[RunPlan], cells: list[str]) -> dict[str, list[RunPlan]]:
    """The next runs for each cell: dealt out in turn, until each has about BATCH_SECONDS."""
    batch: dict[str, list[RunPlan]] = {cell: [] for cell in cells}
    seconds = dict.fromkeys(cells, 0.0)
    for plan in waiting:
        cell = min(cells, key=lambda name: seconds[name])
        if seconds[cell] >= BATCH_SECONDS:
            break
        batch[cell].append(plan)
        seconds[cell] += plan.timeline.end_s + netns.BETWEEN_RUNS
    return batch


def _modules(plans: list[RunPlan]) -> list[str]:
    """Kernel modules to load for these plans."""
    wanted = {flow.congestion_control for plan in plans for flow in plan.flows}
    return [f"tcp_{name}" for name in sorted(wanted - schemes.loaded())]
