# SPDX-License-Identifier: Apache-2.0
"""The virtual lab on a cluster: each run is a task of a worker, which gives the whole run
directory. And metrics of runs that are there, computed on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep

from nagi.campaign.collection import WHOLE
from nagi.cluster import tasks
from nagi.cluster.content import files_of, packed, sums_of, unpack, unpack_into
from nagi.cluster.pool import Cluster, Guests, Task
from nagi.labs import guest, guest_kernel, virtual
from nagi.labs.errors import LabError
from nagi.labs.shape import Shape


def guests_for(plans: list[RunPlan]) -> Guests:
    """What workers need for guests of these plans, which were made here. Raises InputError."""
    own = [[module] for plan in plans for module in virtual.own_modules(plan).values()]
    different = {str(files): files for files in own}
    return Guests([_library(), *different.values()], plans[0])


def _library() -> list[Path]:
    """Return kernel, modules of ours, preloaded library and filter. Raises InputError without a
    filter."""
    directory = guest_kernel.directory()
    files = [file for pattern in ("linux", "*.ko") for file in directory.glob(pattern)]
    return [*files, guest_kernel.preloaded(), guest.required_filter()]


class ClusterLab:
    """A lab of all workers for runs of any shape."""

    in_real_time = False

    def __init__(self, cluster: Cluster, records: Path, build: Build, keep: Keep) -> None:
        self._cluster = cluster
        self._library = sums_of(_library())
        self._records = records
        self._build = build.model_dump_json()
        self._keep = keep.model_dump_json()

    @property
    def cells(self) -> list[str]:
        """One a thread, as there are now; a run is done by whichever worker is free."""
        return [f"thread{number}" for number in range(max(1, self._cluster.threads))]

    def prepare(self, plans: list[RunPlan]) -> None:
        """Workers have been asked before."""

    def lead_s(self) -> float:
        return 0.0

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        wanted = [self._task(plan) for dealt in plans.values() for plan in dealt]
        reasons = {}
        for done in self._cluster.each(wanted):
            if done.why:
                reasons[done.task.run_id] = done.why
            else:
                unpack(done.files, self._records / WHOLE / done.task.run_id)
        return reasons

    def _task(self, plan: RunPlan) -> Task:
        own = {name: sums_of([file]) for name, file in virtual.own_modules(plan).items()}
        arguments = plan.model_dump_json(), self._build, self._keep, self._library, own
        return Task("nagi-run", plan.run_id, tasks.run, arguments)


class ClusterLabs:
    """Makes labs of a cluster."""

    name = virtual.NAME

    def __init__(self, cluster: Cluster, records: Path, build: Build, keep: Keep) -> None:
        self._lab = ClusterLab(cluster, records, build, keep)

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[ClusterLab]:
        yield self._lab

    def give_up(self, trouble: LabError) -> list[str]:
        return []


def analyse(cluster: Cluster, runs: list[Path]) -> Iterator[tuple[Path, str]]:
    """Has the metrics of run directories computed anew from their captures, and puts them there.
    Yields each run when it is over, and why it has none, if so. Raises Gone, Interrupted."""
    directories = {run.name: run for run in runs}
    wanted = [
        Task("nagi-analyse", run.name, tasks.analyse, files=partial(_whole, run)) for run in runs
    ]
    for done in cluster.each(wanted):
        run = directories[done.task.run_id]
        if not done.why:
            unpack_into(done.files, run)
        yield run, done.why


def _whole(run: Path) -> bytes:
    return packed(run, files_of(run))
