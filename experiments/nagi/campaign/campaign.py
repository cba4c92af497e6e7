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
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nagi_contracts.base import refuse_links
from nagi_contracts.errors import choices, excerpt, refuse
from nagi_contracts.memo import Memo
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.records import Build, Campaign, CampaignRun, Verdict

from nagi.campaign.collection import (
    attempts,
    collect,
    finished_cell,
    is_to_do,
    record_failure,
    remove_collected,
    verdict_of,
)
from nagi.campaign.cost import Cost
from nagi.labs.errors import Gone, LabError, Unfit
from nagi.labs.lab import BETWEEN_RUNS, Lab, Labs
from nagi.labs.shape import Shape
from nagi.labs.virtual import console_of
from nagi.plan import fpga, radio, schemes
from nagi.plan.planner import plan_runs
from nagi.spec.experiment import Experiment
from nagi.spec.points import Point
from nagi.verdict.certificate import is_late

_MAX_FAILED_LABS = 3
_LATE_RUNS = 3  # so many say that a machine is too busy, fewer may be chance
# Of runs a cell is given at once in real time: what shipping costs is then little.
BATCH_SECONDS = 75.0
# In virtual time shipping costs nothing, but all cells wait for the last run of a batch.
RUNS_A_BATCH = 8
_LOOK_EVERY_S = 0.2
REPEAT = "repeat"  # chosen from as if it were an axis


@dataclass(frozen=True)
class Selection:
    """The runs of a campaign, and what was left out."""

    variant: str | None
    points: list[Point]
    plans: list[RunPlan]
    unavailable: dict[str, schemes.Availability]  # scheme -> why this machine cannot run it
    build: Build
    switch: SwitchTarget = "nagi"
    no_radios: schemes.Availability | None = None  # why links cannot be radios; None: they can
    no_fpgas: schemes.Availability | None = None  # why no FPGA can be simulated; None: it can
    only: dict[str, list[str]] = field(default_factory=dict)  # axis, or repeat -> chosen values

    @property
    def experiment(self) -> Experiment:
        """The experiment at its first point: what holds for the whole campaign."""
        return self.points[0].experiment

    def available(self) -> list[RunPlan]:
        return [plan for plan in self.plans if not self.missing(plan)]

    def by_point(self) -> list[list[RunPlan]]:
        """The plans, a list a point."""
        found: dict[tuple[str, ...], list[RunPlan]] = {
            tuple(point.values.values()): [] for point in self.points
        }
        for plan in self.plans:
            found[tuple(plan.point.values())].append(plan)
        return list(found.values())

    def missing(self, plan: RunPlan) -> list[str]:
        """What a run needs and cannot have: schemes, and links that are radios or FPGAs."""
        links = radio.list_radios([plan]) if self.no_radios is not None else []
        links += fpga.list_simulated([plan]) if self.no_fpgas is not None else []
        schemes_ = [flow.scheme for flow in plan.flows if flow.scheme in self.unavailable]
        return [*schemes_, *(f"link {name}" for name in links)]

    def radios_missing(self) -> list[str]:
        """The links of any run that are radios, and cannot be."""
        return radio.list_radios(self.plans) if self.no_radios is not None else []

    def fpgas_missing(self) -> list[str]:
        """The links of any run whose FPGA is to be simulated, and cannot be."""
        return fpga.list_simulated(self.plans) if self.no_fpgas is not None else []


def select(
    points: list[Point],
    variant: str | None,
    only: dict[str, list[str]],
    build: Build,
    available: Callable[[schemes.Scheme], schemes.Availability] = schemes.check_availability,
    switch: SwitchTarget = "nagi",
    radios: Callable[[], schemes.Availability] = radio.check_availability,
    fpgas: Callable[[], schemes.Availability] = fpga.check_availability,
) -> Selection:
    """Plans the points that have, of each axis in `only`, one of its values; of their repeats,
    which are counted from 1, those under "repeat". `available` says whether a scheme can run where
    the runs are to take place, `switch` what switches run, `radios` whether links can be radios
    there, `fpgas` whether FPGAs can be simulated; they are asked if any is. Raises InputError."""
    is_axis = any(REPEAT in point.values for point in points)
    repeats = [] if is_axis else only.get(REPEAT, [])
    of_axes = {axis: values for axis, values in only.items() if axis != REPEAT or is_axis}
    for axis, values in of_axes.items():
        known = sorted({point.values[axis] for point in points if axis in point.values})
        if not known:
            what = f"--only {excerpt(axis)}=...: there is no such axis"
            raise refuse(what, choices(axis, [*points[0].values, REPEAT], "axes"))
        _require_known(axis, values, known)
    chosen = [
        p for p in points if all(p.values[axis] in values for axis, values in of_axes.items())
    ]
    if not chosen:
        raise refuse("--only leaves no runs", "give fewer values, or others")
    memo = Memo()
    plans = [
        plan.with_ids(build.id, memo)
        for point in chosen
        for plan in plan_runs(point, variant, switch=switch, memo=memo)
    ]
    if repeats:
        if chosen[0].experiment.until is not None:
            what = f"--only {REPEAT}=...: the experiment's `until` decides how many there are"
            raise refuse(what, "choose points, or remove `until`")
        _require_known(REPEAT, repeats, sorted({_number(plan) for plan in plans}, key=int))
        plans = [plan for plan in plans if _number(plan) in repeats]
    found = {name: available(scheme) for name, scheme in sorted(schemes_of(chosen).items())}
    unavailable = {name: each for name, each in found.items() if not each.available}
    can_be = radios() if radio.list_radios(plans) else None
    no_radios = None if can_be is None or can_be.available else can_be
    can_simulate = fpgas() if fpga.list_simulated(plans) else None
    no_fpgas = None if can_simulate is None or can_simulate.available else can_simulate
    return Selection(variant, chosen, plans, unavailable, build, switch, no_radios, no_fpgas, only)


def _require_known(axis: str, values: list[str], known: list[str]) -> None:
    for value in values:
        if value not in known:
            what = f"--only {axis}={excerpt(value)}: there is no such value"
            raise refuse(what, choices(value, known, "values"))


def _number(plan: RunPlan) -> str:
    """Of a repeat, as people count."""
    return str(plan.repeat + 1)


def has_switches(points: list[Point]) -> bool:
    """Whether a node of any of them is a switch."""
    return any(point.experiment.list_nodes("switch") for point in points)


def has_radios(points: list[Point]) -> bool:
    """Whether a link of any of them is a radio."""
    links = [link for point in points for link in point.experiment.links.values()]
    return any(link.emulator == "sdr" for link in links)


def has_simulated_fpgas(points: list[Point]) -> bool:
    """Whether an FPGA that any of them has is simulated."""
    links = [link for point in points for link in point.experiment.links.values()]
    return any(link.simulates_fpga for link in links)


def schemes_of(points: list[Point]) -> dict[str, schemes.Scheme]:
    """The schemes that flows of `points` use, by their names there; unknown ones are left out."""
    found = {
        flow.scheme: schemes.find_scheme(flow.scheme, point.document.resolve_path)
        for point in points
        for flow in point.experiment.flows.values()
        if not flow.is_absent
    }
    return {name: scheme for name, scheme in found.items() if scheme is not None}


class TooNoisy(Exception):
    """Most of the first runs were late: this machine is too busy for runs in real time. What is
    finished is kept."""

    def __init__(self, runs: int, late: list[Verdict]) -> None:
        """`runs`: how many were run, of which `late` ones missed their timing."""
        super().__init__(f"{len(late)} of the first {runs} runs were late")
        self.runs = runs
        self.late = late


class Observer(Protocol):
    """Who wants to know how a campaign goes on."""

    def done_before(self, plans: list[RunPlan]) -> None: ...
    def runs_added(self, plans: list[RunPlan]) -> None: ...
    def round_starting(self, plans: list[RunPlan]) -> None: ...
    def lab_starting(self, lab: str, cells: int) -> None: ...
    def lab_failed(self, why: str, given_up: list[str]) -> None: ...
    def batch_starting(self, plans: dict[str, list[RunPlan]], lead_s: float | None) -> None: ...
    def run_over(self, plan: RunPlan, verdict: Verdict) -> None: ...


class CampaignDirectory:
    """The directory of a campaign, held by one process at a time."""

    def __init__(self, out: Path) -> None:
        self.out = out.absolute()
        self.runs = self.out / "runs"
        self.records = self.out / ".records"
        self.lab = self.out / ".lab"
        self.campaign = self.out / "campaign.json"
        self.lock = self.out / ".lock"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises InputError if another process holds it. If no campaign comes of it, what was made
        here is removed again."""
        made = [path for path in (self.runs, *self.runs.parents) if not path.exists()]
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refuse(
                f"cannot write there: {error.strerror}",
                "give another directory with --out",
                file=str(self.out),
            ) from None
        refuse_links(self.out)
        with self.lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise refuse(
                    "another nagi is at work in this directory",
                    "wait for it, or give another one with --out",
                    file=str(self.out),
                ) from None
            try:
                yield
            finally:
                if self.out in made and not self.campaign.exists():
                    self.lock.unlink()
                    with suppress(OSError):  # there is something in it
                        for path in made:
                            path.rmdir()

    def has(self, plan: RunPlan) -> bool:
        """Whether a run has been done, whatever became of it."""
        return (self.runs / plan.run_id).exists()

    def is_to_do(self, plan: RunPlan) -> bool:
        """Return whether a run has not been done, or has failed and will be tried again."""
        return is_to_do(verdict_of(self.runs, plan.run_id))

    def describe(self, selection: Selection, lab: str, left_out: dict[str, str]) -> Campaign:
        """Writes campaign.json."""
        experiment = selection.experiment
        campaign = Campaign(
            experiment=experiment.name,
            variant=selection.variant,
            only=selection.only,
            switch=selection.switch,
            title=experiment.title,
            reference=experiment.reference,
            lab=lab,
            build=selection.build,
            x=experiment.report.x,
            series=experiment.report.series,
            panels=experiment.report.panels,
            competitor=experiment.report.competitor,
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


class Runner:
    """Runs what of a campaign has not been run. Finished runs are kept whatever happens."""

    def __init__(
        self,
        selection: Selection,
        directory: CampaignDirectory,
        labs: Labs,
        *,
        jobs: int,
        tries: int,
        stop_if_noisy: bool = False,
        runs_a_batch: int = RUNS_A_BATCH,
        one_shape: bool = True,
        analyse: Callable[[Path], None],
        grow: Callable[[Selection], Selection],
        observer: Observer,
        finished_cell: Callable[[Path, Path, RunPlan], str | None] = finished_cell,
        collect: Callable[[Path, Path, RunPlan, str, str, Build], Verdict] = collect,
    ) -> None:
        """`tries`: how often a run is tried whose links did not do what was asked, or that a host
        was too busy to begin in time; `stop_if_noisy`: whether to stop instead, if most runs of the
        first batch are late. `runs_a_batch`: in virtual time, of a cell; `one_shape`: whether a lab
        is for runs of one shape. `analyse` computes the metrics of a run directory. `grow` adds the
        runs that are to be done in view of those that are over. `observer` hears of every run that
        ends. `finished_cell` and `collect`: how runs that are over are found, and become run
        directories."""
        self.selection = selection
        self._labs = labs
        self._grow = grow
        self._plans = selection.available()
        self._build = selection.build
        self._directory = directory
        self._jobs = jobs
        self._tries = tries
        self._stop_if_noisy = stop_if_noisy
        self._runs_a_batch = runs_a_batch
        self._one_shape = one_shape
        self._analyse = analyse
        self._observer = observer
        self._finished_cell = finished_cell
        self._collect_run = collect
        self.cost = Cost()
        self._failed_now: set[str] = set()  # tried again by the next nagi, not by this one
        self._late_now: Counter[str] = Counter()  # how often each run was begun too late

    def run(self) -> dict[str, Verdict]:
        """Runs everything that is left to run, and returns the verdict on every run.

        Raises Interrupted, LabError, TooNoisy, or InputError if an agent refused before anything
        was run.
        """
        directory = self._directory
        # An earlier nagi may have ended between a run's end and its collection, or just after that.
        for plan in self._plans:
            remove_collected(directory.records, directory.runs, plan)
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
            self._observer.round_starting(pending)
            shapes: dict[tuple[Shape, int], list[RunPlan]] = {}
            for plan in pending:
                # Runs side by side can disturb each other: another try has the machine alone.
                again = self._status(plan) == "invalid" or plan.run_id in self._late_now
                jobs = 1 if again else self._jobs
                shape = Shape.of(plan if self._one_shape else pending[0])
                shapes.setdefault((shape, jobs), []).append(plan)
            for (shape, jobs), plans in shapes.items():
                self._run_shape(shape, plans, jobs)
            for plan in pending:
                self._note_failure(plan)
        for plan in self._plans:
            if self._status(plan) in ("valid", "invalid"):
                self._analyse(self._directory.runs / plan.run_id)

    def _note_failure(self, plan: RunPlan) -> None:
        verdict = verdict_of(self._directory.runs, plan.run_id)
        if verdict is None or verdict.status != "failed":
            return
        self._late_now[plan.run_id] += verdict.too_late
        if not verdict.too_late or self._late_now[plan.run_id] >= self._tries:
            self._failed_now.add(plan.run_id)

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
            cell = self._finished_cell(directory.records, directory.runs, plan)
            if cell is None:
                left.append(plan)
                continue
            with self.cost.spent("results"):
                verdict = self._collect_run(
                    directory.records, directory.runs, plan, cell, self._labs.name, self._build
                )
                if verdict.status != "failed":
                    self._analyse(directory.runs / plan.run_id)
            self._observer.run_over(plan, verdict)
        return left

    def _run_shape(self, shape: Shape, plans: list[RunPlan], jobs: int) -> None:
        """Runs plans of one shape in labs of their own: a lab that fails is made anew, without the
        cells that cannot be mended."""
        idle = 0  # labs in which nothing came to an end
        while plans:
            before = len(plans)
            trouble = None
            try:
                with self._labs.open(shape, plans, jobs) as lab:
                    self._observer.lab_starting(self._labs.name, len(lab.cells))
                    with self.cost.spent("labs"):
                        lab.prepare(plans)
                    while plans and trouble is None:
                        plans, trouble = self._run_batch(lab, plans)
            except LabError as error:
                trouble = error
            if trouble is None:
                return
            if isinstance(trouble, Gone):
                raise trouble
            if isinstance(trouble, Unfit) and not self.cost.runs:
                raise refuse(str(trouble), "nothing was run") from None
            idle = idle + 1 if len(plans) == before else 0
            if idle == _MAX_FAILED_LABS:
                raise trouble
            self._observer.lab_failed(str(trouble), self._labs.give_up(trouble))

    def _run_batch(self, lab: Lab, plans: list[RunPlan]) -> tuple[list[RunPlan], LabError | None]:
        """Runs the next of `plans`. Returns those still to be run, and what went wrong: the run
        that it broke, the first that is not over in its cell, has then failed; the others wait."""
        about_s = BATCH_SECONDS
        if not lab.in_real_time:
            about_s = self._runs_a_batch * max(plan.timeline.end_s for plan in plans)
        batch = next_batch(plans, lab.cells, about_s)
        chosen = [plan for dealt in batch.values() for plan in dealt]
        self._observer.batch_starting(batch, lab.lead_s() if lab.in_real_time else None)
        not_over = list(chosen)
        trouble = None
        reasons: dict[str, str] = {}
        try:
            with self.cost.batch(batch, in_real_time=lab.in_real_time):
                if lab.in_real_time:  # which analyses would disturb
                    reasons = lab.run_batch(batch)
                else:
                    reasons = self._collect_while(lambda: lab.run_batch(batch), not_over)
        except LabError as error:
            trouble = error
        finally:
            left = {plan.run_id for plan in self._collect(not_over)}
        reason = str(trouble) if trouble else "an agent left no record"
        for cell, dealt in batch.items():
            unfinished = [plan for plan in dealt if plan.run_id in left]
            if trouble is not None:
                is_broken = trouble.cells is None or cell in trouble.cells
                unfinished = [
                    plan for plan in unfinished[:1] if is_broken and self._has_begun(plan)
                ]
            for plan in unfinished:
                left.discard(plan.run_id)
                why = reasons.get(plan.run_id, reason)
                console = console_of(self._directory.records, plan)
                verdict = record_failure(self._directory.runs, plan, why, console)
                self._observer.run_over(plan, verdict)
        if trouble is None:
            self._require_quiet(chosen)
        finished = {plan.run_id for plan in chosen} - left
        return [plan for plan in plans if plan.run_id not in finished], trouble

    def _collect_while(
        self, run: Callable[[], dict[str, str]], plans: list[RunPlan]
    ) -> dict[str, str]:
        """Does `run`. Each of `plans` is collected as soon as it is over, and taken out of them."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(run)
            while not running.done():
                wait([running], timeout=_LOOK_EVERY_S)
                plans[:] = self._collect(plans)
        return running.result()

    def _require_quiet(self, batch: list[RunPlan]) -> None:
        """Raises TooNoisy if that is wanted, this is the first batch and most of it was late: three
        runs at least, or all of a smaller batch if more wait. A few runs are soon tried again."""
        if not self._stop_if_noisy:
            return
        self._stop_if_noisy = False
        verdicts = [verdict_of(self._directory.runs, plan.run_id) for plan in batch]
        late = [verdict for verdict in verdicts if verdict is not None and is_late(verdict)]
        tried = {plan.run_id for plan in batch}
        others_wait = any(self._is_pending(p) for p in self._plans if p.run_id not in tried)
        if 2 * len(late) > len(batch) and (
            len(late) >= _LATE_RUNS or (len(late) == len(batch) and others_wait)
        ):
            raise TooNoisy(len(batch), late)

    def _has_begun(self, plan: RunPlan) -> bool:
        """Whether an agent has begun a run that is not over."""
        return any(self._directory.records.glob(f"*/{plan.run_id}"))


def next_batch(
    waiting: list[RunPlan], cells: list[str], about_s: float = BATCH_SECONDS
) -> dict[str, list[RunPlan]]:
    """The next runs for each cell: dealt out in turn, until each has about so many seconds of them,
    and at least one."""
    batch: dict[str, list[RunPlan]] = {cell: [] for cell in cells}
    seconds = dict.fromkeys(cells, 0.0)
    for plan in waiting:
        cell = min(cells, key=lambda name: seconds[name])
        if batch[cell] and seconds[cell] >= about_s:
            break
        batch[cell].append(plan)
        seconds[cell] += plan.timeline.end_s + BETWEEN_RUNS
    return batch
