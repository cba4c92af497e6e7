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
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nagi import schemes
from nagi.ansible_runs import LabError
from nagi.collection import attempts, collect, over, record_failure, verdict_of
from nagi.contracts.plan import RunPlan
from nagi.contracts.records import Build, Campaign, CampaignRun, Verdict
from nagi.errors import refuse
from nagi.labs import netns
from nagi.labs.shape import Shape
from nagi.planner import plan_runs
from nagi.spec import Experiment, Point

BATCH_SECONDS = 75.0  # of runs a cell is given at once: what shipping costs is then little


@dataclass(frozen=True)
class Selection:
    """The runs of a campaign, and what was left out."""

    form: str | None
    points: list[Point]
    plans: list[RunPlan]
    unavailable: dict[str, schemes.Availability]  # scheme -> why this machine cannot run it
    build: Build

    @property
    def experiment(self) -> Experiment:
        """The experiment at its first point: what holds for the whole campaign."""
        return self.points[0].experiment

    def available(self) -> list[RunPlan]:
        return [plan for plan in self.plans if not self.schemes_missing(plan)]

    def by_point(self) -> list[list[RunPlan]]:
        """The plans, a list a point."""
        return [
            [plan for plan in self.plans if plan.point == point.values] for point in self.points
        ]

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

    def done_before(self, plans: list[RunPlan]) -> None: ...
    def runs_added(self, plans: list[RunPlan]) -> None: ...
    def lab_starting(self, cells: int) -> None: ...
    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float) -> None: ...
    def run_over(self, plan: RunPlan, verdict: Verdict) -> None: ...


class CampaignDirectory:
    """The directory of a campaign, held by one process at a time."""

    def __init__(self, out: Path) -> None:
        self.out = out.absolute()
        self.runs = self.out / "runs"
        self.records = self.out / ".records"
        self.lab = self.out / ".lab"
        self.campaign = self.out / "campaign.json"

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

    def has(self, plan: RunPlan) -> bool:
        """Whether a run has been done, whatever became of it."""
        return (self.runs / plan.run_id).exists()

    def describe(self, selection: Selection, lab: str, left_out: dict[str, str]) -> Campaign:
        """Writes campaign.json."""
        experiment = selection.experiment
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
            keep=experiment.keep,
            until=experiment.until,
            statements=experiment.report.statements,
        )
        campaign.write(self.campaign)
        return campaign


def jobs_for(processors: int) -> int:
    """How many runs to have side by side: one a processor, as a run at 100 Mb/s keeps about one
    busy; more than eight are started too slowly to be worth it."""
    return min(max(1, processors), 8)


class Runner:
    """Runs what of a campaign has not been run. Finished runs are kept whatever happens."""

    def __init__(
        self,
        selection: Selection,
        directory: CampaignDirectory,
        *,
        jobs: int,
        tries: int,
        analyse: Callable[[Path], None],
        grow: Callable[[Selection], Selection],
        interrupted: Callable[[], bool],
        observer: Observer,
    ) -> None:
        """`tries`: how often a run is tried whose links did not do what was asked. `analyse`
        computes the metrics of a run directory. `grow` adds the runs that are to be done in view of
        those that are over. `observer` hears of every run that ends."""
        self.selection = selection
        self._grow = grow
        self._plans = selection.available()
        self._build = selection.build
        self._directory = directory
        self._jobs = jobs
        self._tries = tries
        self._analyse = analyse
        self._interrupted = interrupted
        self._observer = observer
        self._failed_now: set[str] = set()  # tried again by the next nagi, not by this one

    def run(self) -> dict[str, Verdict]:
        """Runs everything that is left to run, and returns the verdict on every run.

        Raises Interrupted, LabError, or InputError if an agent refused before anything was run.
        """
        directory = self._directory
        # An earlier nagi may have ended between a run's end and its collection.
        self._collect(self._plans)
        shutil.rmtree(directory.records, ignore_errors=True)
        self._observer.done_before([p for p in self._plans if not self._is_pending(p)])
        try:
            self._run_pending()
            while self._add_runs():
                self._run_pending()
        finally:
            shutil.rmtree(directory.lab, ignore_errors=True)
        shutil.rmtree(directory.records, ignore_errors=True)
        verdicts = {plan.run_id: verdict_of(directory.runs, plan.run_id) for plan in self._plans}
        return {run_id: verdict for run_id, verdict in verdicts.items() if verdict is not None}

    def _run_pending(self) -> None:
        """Runs what is left to run; then every run that came to its end has its metrics."""
        while pending := [plan for plan in self._plans if self._is_pending(plan)]:
            shapes: dict[tuple[Shape, int], list[RunPlan]] = {}
            for plan in pending:
                # Runs side by side can disturb each other: another try has the machine alone.
                jobs = 1 if self._status(plan) == "invalid" else self._jobs
                shapes.setdefault((Shape.of(plan), jobs), []).append(plan)
            for (shape, jobs), plans in shapes.items():
                self._run_shape(shape, plans, jobs)
            self._failed_now |= {plan.run_id for plan in pending if self._status(plan) == "failed"}
        for plan in self._plans:
            if self._status(plan) in ("valid", "invalid"):
                self._analyse(self._directory.runs / plan.run_id)

    def _add_runs(self) -> bool:
        """Asks for further runs; returns whether there are any."""
        known = {plan.run_id for plan in self._plans}
        self.selection = self._grow(self.selection)
        added = [plan for plan in self.selection.available() if plan.run_id not in known]
        self._plans += added
        if added:
            self._observer.runs_added(added)
        return bool(added)

    def _status(self, plan: RunPlan) -> str | None:
        verdict = verdict_of(self._directory.runs, plan.run_id)
        return verdict.status if verdict else None

    def _is_pending(self, plan: RunPlan) -> bool:
        status = self._status(plan)
        if status == "invalid":
            return attempts(self._directory.runs, plan.run_id) + 1 < self._tries
        return status is None or (status == "failed" and plan.run_id not in self._failed_now)

    def _collect(self, plans: list[RunPlan]) -> list[RunPlan]:
        """Makes run directories of those that are over; returns the others."""
        directory = self._directory
        left = []
        for plan in plans:
            cell = over(directory.records, plan)
            if cell is None:
                left.append(plan)
                continue
            verdict = collect(
                directory.records, directory.runs, plan, cell, netns.NAME, self._build
            )
            if verdict.status != "failed":
                self._analyse(directory.runs / plan.run_id)
            self._observer.run_over(plan, verdict)
        return left

    def _run_shape(self, shape: Shape, plans: list[RunPlan], jobs: int) -> None:
        """Runs plans of one shape in a lab of their own."""
        cells = min(jobs, len(plans))
        self._observer.lab_starting(cells)
        with netns.NetnsLab(
            shape,
            cells,
            self._directory.lab,
            self._directory.records,
            _modules(plans),
            self._interrupted,
        ) as lab:
            try:
                lab.prepare(plans)
            except LabError as error:
                raise refuse(str(error), "nothing was run") from None
            while plans:
                batch = next_batch(plans, lab.cells)
                chosen = [plan for dealt in batch.values() for plan in dealt]
                self._run_batch(lab, batch, chosen)
                done = {plan.run_id for plan in chosen}
                plans = [plan for plan in plans if plan.run_id not in done]

    def _run_batch(
        self, lab: netns.NetnsLab, batch: dict[str, list[RunPlan]], chosen: list[RunPlan]
    ) -> None:
        self._observer.batch_starting(batch, lab.lead_s())
        trouble = None
        try:
            lab.run_batch(batch)
        except LabError as error:
            trouble = error
        finally:
            left = self._collect(chosen)
        for plan in left:
            reason = str(trouble) if trouble else "an agent left no record"
            self._observer.run_over(plan, record_failure(self._directory.runs, plan, reason))
        if trouble and len(left) == len(chosen):
            raise trouble


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
