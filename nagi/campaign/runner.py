# SPDX-License-Identifier: Apache-2.0
"""Executes the pending runs of a campaign. A campaign that was interrupted resumes."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Protocol

from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Verdict

from nagi.campaign.batches import BATCH_S, RUNS_PER_BATCH, choose_batch
from nagi.campaign.cost import Cost
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.host_records import find_finished_cell, remove_collected
from nagi.campaign.run_directory import count_invalid_attempts, read_verdict, record_failure
from nagi.campaign.selection import Selection
from nagi.labs.errors import Gone, LabError, Unfit
from nagi.labs.lab import Lab, Labs
from nagi.labs.shape import Shape
from nagi.labs.virtual import make_console_path
from nagi.verdict.certificate import is_late

_MAX_FAILED_LABS = 3
_LATE_RUNS = 3  # fewer late runs may be chance, and do not show that the machine is too busy
_POLL_INTERVAL_S = 0.2


class TooNoisy(Exception):
    """Most runs of the first batch were late: the machine is too busy for runs in real time.

    Finished runs are kept.
    """

    def __init__(self, runs: int, late: list[Verdict]) -> None:
        """Make the error for `late` verdicts among the first `runs` runs."""
        super().__init__(f"{len(late)} of the first {runs} runs were late")
        self.runs = runs
        self.late = late


class Observer(Protocol):
    """Receives the events of a campaign."""

    def done_before(self, plans: list[RunPlan]) -> None:
        """Receive the runs that need not be executed, before the first run is executed."""

    def runs_added(self, plans: list[RunPlan]) -> None:
        """Receive runs that `until` has added."""

    def round_starting(self, plans: list[RunPlan]) -> None:
        """Receive the pending runs, before each round of attempts."""

    def lab_starting(self, lab: str, cells: int) -> None:
        """Receive the name and the number of cells of a lab that starts."""

    def lab_failed(self, why: str, given_up: list[str]) -> None:
        """Receive the error of a lab, and the names of the cells that are excluded from now on."""

    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None:
        """Receive the plans of a batch by cell.

        `lead_s` is the time from the start of the batch to its first run; None in virtual time.
        """

    def run_over(self, plan: RunPlan, verdict: Verdict) -> None:
        """Receive a run that has ended or failed, with its verdict."""


class Runner:
    """Executes the pending runs of a campaign. If it ends by an error, finished runs are kept."""

    def __init__(
        self,
        selection: Selection,
        directory: CampaignDirectory,
        labs: Labs,
        *,
        jobs: int,
        tries: int,
        stop_if_noisy: bool = False,
        runs_per_batch: int = RUNS_PER_BATCH,
        one_shape: bool = True,
        analyse: Callable[[Path], None],
        grow: Callable[[Selection], Selection],
        observer: Observer,
        collect: Callable[[Path, Path, RunPlan, str, str, Build], Verdict],
        find_finished_cell: Callable[[Path, RunPlan], str | None] = find_finished_cell,
    ) -> None:
        """Make a runner.

        Args:
            selection: The runs of the campaign.
            directory: The directory of the campaign, which the caller has locked.
            labs: An object that opens labs.
            jobs: The maximum number of runs that a lab executes in parallel.
            tries: The maximum number of attempts of a run that is invalid, or that began too late
                because a host was busy.
            stop_if_noisy: Whether run() raises TooNoisy if most runs of the first batch are late.
            runs_per_batch: The number of runs per cell and batch in virtual time.
            one_shape: Whether all runs of a lab must have the same shape (nodes and links).
            analyse: A function that computes the metrics of a run directory.
            grow: A function that returns the selection with the runs that `until` adds.
            observer: An object that receives the events of the campaign.
            collect: A function that makes the run directory of a completed run, as
                collection.collect() does.
            find_finished_cell: A function that returns the cell that completed a run, or None.
        """
        self.selection = selection
        self._labs = labs
        self._grow = grow
        self._plans = selection.list_available()
        self._build = selection.build
        self._directory = directory
        self._jobs = jobs
        self._tries = tries
        self._stop_if_noisy = stop_if_noisy
        self._runs_per_batch = runs_per_batch
        self._one_shape = one_shape
        self._analyse = analyse
        self._observer = observer
        self._find_finished_cell = find_finished_cell
        self._collect_run = collect
        self.cost = Cost()
        self._failed_now: set[str] = set()  # ids of failed runs that only the next process repeats
        self._late_now: Counter[str] = Counter()  # run id -> attempts that began too late

    def run(self) -> dict[str, Verdict]:
        """Execute all pending runs, and return run id -> verdict, for all runs with a verdict.

        Runs that ended in an earlier process, but were not collected, are collected first. Metrics
        of all valid and invalid runs are computed. The directories `.lab` and `.records` are
        removed.

        Raises:
            Interrupted: The user asked to stop.
            LabError: Labs failed repeatedly, or a lab cannot be opened again.
            TooNoisy: Most runs of the first batch were late, because this machine is too busy.
            InputError: An agent refused the runs before the first run was executed.
        """
        directory = self._directory
        # An earlier process may have ended before it collected a run, or before it removed the
        # records of a run that it had collected.
        for plan in self._plans:
            remove_collected(directory.records, directory.runs, plan)
        self._collect(self._plans)
        shutil.rmtree(directory.records, ignore_errors=True)
        self._observer.done_before([plan for plan in self._plans if not self._is_pending(plan)])
        try:
            self._run_pending()
            while self._add_runs():
                self._run_pending()
        finally:
            shutil.rmtree(directory.lab, ignore_errors=True)
        shutil.rmtree(directory.records, ignore_errors=True)
        verdicts = {plan.run_id: read_verdict(directory.runs, plan.run_id) for plan in self._plans}
        return {run_id: verdict for run_id, verdict in verdicts.items() if verdict is not None}

    def _run_pending(self) -> None:
        """Execute the pending runs until none is left, then compute the metrics of all runs."""
        while pending := [plan for plan in self._plans if self._is_pending(plan)]:
            self._observer.round_starting(pending)
            shapes: dict[tuple[Shape, int], list[RunPlan]] = {}
            for plan in pending:
                # Parallel runs can disturb each other, so a repeated run has the machine alone.
                is_repeated = self._read_status(plan) == "invalid" or plan.run_id in self._late_now
                jobs = 1 if is_repeated else self._jobs
                shape = Shape.from_plan(plan if self._one_shape else pending[0])
                shapes.setdefault((shape, jobs), []).append(plan)
            for (shape, jobs), plans in shapes.items():
                self._run_shape(shape, plans, jobs)
            for plan in pending:
                self._note_failure(plan)
        for plan in self._plans:
            if self._read_status(plan) in ("valid", "invalid"):
                self._analyse(self._directory.runs / plan.run_id)

    def _note_failure(self, plan: RunPlan) -> None:
        """Decide whether this process or only the next one repeats a run, if the run has failed."""
        verdict = read_verdict(self._directory.runs, plan.run_id)
        if verdict is None or verdict.status != "failed":
            return
        self._late_now[plan.run_id] += verdict.too_late
        if not verdict.too_late or self._late_now[plan.run_id] >= self._tries:
            self._failed_now.add(plan.run_id)

    def _add_runs(self) -> bool:
        """Add the runs that `until` requires, given all results. Return whether runs were added."""
        planned = {plan.run_id for plan in self._plans}
        self.selection = self._grow(self.selection)
        new_plans = [plan for plan in self.selection.list_available() if plan.run_id not in planned]
        self._plans += new_plans
        if new_plans:
            self._observer.runs_added(new_plans)
        return bool(new_plans)

    def _read_status(self, plan: RunPlan) -> str | None:
        """Return the status of a run's verdict, or None."""
        verdict = read_verdict(self._directory.runs, plan.run_id)
        return verdict.status if verdict else None

    def _is_pending(self, plan: RunPlan) -> bool:
        """Return whether this process must execute or repeat a run."""
        status = self._read_status(plan)
        if status == "invalid":
            return count_invalid_attempts(self._directory.runs, plan.run_id) + 1 < self._tries
        return status is None or (status == "failed" and plan.run_id not in self._failed_now)

    def _collect(self, plans: list[RunPlan]) -> list[RunPlan]:
        """Make the run directory of each run that has ended, and its metrics unless it has failed.

        Return the plans whose runs have not ended.
        """
        directory = self._directory
        unfinished = []
        for plan in plans:
            cell = self._find_finished_cell(directory.records, plan)
            if cell is None:
                unfinished.append(plan)
                continue
            with self.cost.measure("results"):
                verdict = self._collect_run(
                    directory.records, directory.runs, plan, cell, self._labs.name, self._build
                )
                if verdict.status != "failed":
                    self._analyse(directory.runs / plan.run_id)
            self._observer.run_over(plan, verdict)
        return unfinished

    def _run_shape(self, shape: Shape, plans: list[RunPlan], jobs: int) -> None:
        """Execute plans of one shape (the same nodes and links).

        After a lab fails, another lab is opened, without the cells whose hosts have failed, until
        _MAX_FAILED_LABS labs in succession have completed no run.
        """
        labs_without_run = 0  # consecutive labs that completed no run
        while plans:
            pending_before = len(plans)
            lab_error = None
            excluded_cells: list[str] = []
            try:
                with self._labs.open(shape, plans, jobs) as lab:
                    self._observer.lab_starting(self._labs.name, len(lab.cells))
                    with self.cost.measure("overhead"):
                        lab.prepare(plans)
                    while plans and lab_error is None:
                        plans, lab_error, excluded_cells = self._run_batch(lab, plans)
            except LabError as error:
                lab_error = error
                excluded_cells = self._labs.exclude_cells(error)
            if lab_error is None:
                return
            if isinstance(lab_error, Gone):
                raise lab_error
            if isinstance(lab_error, Unfit) and not self.cost.runs:
                raise refuse(str(lab_error), "nothing was run") from None
            labs_without_run = labs_without_run + 1 if len(plans) == pending_before else 0
            if labs_without_run == _MAX_FAILED_LABS:
                raise lab_error
            self._observer.lab_failed(str(lab_error), excluded_cells)

    def _run_batch(
        self, lab: Lab, plans: list[RunPlan]
    ) -> tuple[list[RunPlan], LabError | None, list[str]]:
        """Execute the next batch of `plans`.

        If the lab fails, the run that an affected cell was executing is recorded as failed, unless
        hosts could not be reached and another cell can execute the run. The other runs of the batch
        stay pending.

        Returns:
            The plans that are still pending; the error of the lab, or None; and the names of the
            cells that are excluded because of it.
        """
        min_duration_s = BATCH_S
        if not lab.in_real_time:
            min_duration_s = self._runs_per_batch * max(plan.timeline.end_s for plan in plans)
        batch = choose_batch(plans, lab.cells, min_duration_s)
        batch_plans = [plan for cell_plans in batch.values() for plan in cell_plans]
        self._observer.batch_starting(batch, lab.estimate_lead_s() if lab.in_real_time else None)
        unfinished = list(batch_plans)
        lab_error = None
        excluded_cells: list[str] = []
        reasons: dict[str, str] = {}
        try:
            with self.cost.measure_batch(batch, in_real_time=lab.in_real_time):
                if lab.in_real_time:  # analyses would disturb the runs
                    reasons = lab.run_batch(batch)
                else:
                    reasons = self._collect_while(lambda: lab.run_batch(batch), unfinished)
        except LabError as error:
            lab_error = error
            excluded_cells = self._labs.exclude_cells(error)
        finally:
            pending_ids = {plan.run_id for plan in self._collect(unfinished)}
        reason = str(lab_error) if lab_error else "an agent wrote no record"
        for cell, cell_plans in batch.items():
            failed_plans = [plan for plan in cell_plans if plan.run_id in pending_ids]
            if lab_error is not None:
                is_broken = lab_error.cells is None or cell in lab_error.cells
                if cell in excluded_cells and lab_error.has_lost_hosts:
                    is_broken = False
                    for plan in failed_plans:  # these records are incomplete
                        for path in self._directory.records.glob(f"{cell}_*/{plan.run_id}"):
                            shutil.rmtree(path)
                failed_plans = [
                    plan for plan in failed_plans[:1] if is_broken and self._has_begun(plan)
                ]
            for plan in failed_plans:
                pending_ids.discard(plan.run_id)
                reason_of_run = reasons.get(plan.run_id, reason)
                console = make_console_path(self._directory.records, plan)
                verdict = record_failure(self._directory.runs, plan, reason_of_run, console)
                self._observer.run_over(plan, verdict)
        if lab_error is None:
            self._require_quiet(batch_plans)
        finished = {plan.run_id for plan in batch_plans} - pending_ids
        remaining = [plan for plan in plans if plan.run_id not in finished]
        return remaining, lab_error, excluded_cells

    def _collect_while(
        self, run: Callable[[], dict[str, str]], plans: list[RunPlan]
    ) -> dict[str, str]:
        """Call `run` and return its result; meanwhile, collect each of `plans` when it has ended.

        Collected plans are removed from the list.
        """
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run)
            while not running.done():
                wait([running], timeout=_POLL_INTERVAL_S)
                plans[:] = self._collect(plans)
        return running.result()

    def _require_quiet(self, batch: list[RunPlan]) -> None:
        """Raise TooNoisy if most runs of the first batch were late.

        Only the first call checks this. At least three runs must be late, or all runs of a smaller
        batch if other runs are pending. A few late runs are simply repeated, because
        this is faster than a decision of the user.
        """
        if not self._stop_if_noisy:
            return
        self._stop_if_noisy = False
        verdicts = [read_verdict(self._directory.runs, plan.run_id) for plan in batch]
        late = [verdict for verdict in verdicts if verdict is not None and is_late(verdict)]
        batch_ids = {plan.run_id for plan in batch}
        are_others_pending = any(
            self._is_pending(plan) for plan in self._plans if plan.run_id not in batch_ids
        )
        if 2 * len(late) > len(batch) and (
            len(late) >= _LATE_RUNS or (len(late) == len(batch) and are_others_pending)
        ):
            raise TooNoisy(len(batch), late)

    def _has_begun(self, plan: RunPlan) -> bool:
        """Return whether an agent has begun a run: whether records of the run exist."""
        return any(self._directory.records.glob(f"*/{plan.run_id}"))
