# SPDX-License-Identifier: Apache-2.0
"""The virtual lab on a cluster.

Each run is a task of one worker, which returns the complete run directory. Workers can also compute
the metrics of runs that exist already.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep

from nagi.campaign.host_records import WHOLE
from nagi.cluster import tasks
from nagi.cluster.content import hash_files, list_files, pack, unpack, unpack_into
from nagi.cluster.pool import Cluster
from nagi.cluster.scheduler_client import Task
from nagi.cluster.worker_registry import GuestFiles
from nagi.labs import guest, guest_kernel, guest_modules
from nagi.labs.errors import LabError
from nagi.labs.names import VIRTUAL
from nagi.labs.shape import Shape


def collect_guest_files(plans: list[RunPlan]) -> GuestFiles:
    """Return the files that workers need to execute plans in guests.

    Args:
        plans: The plans, at least one. They must have been made on this machine.

    Raises:
        InputError: A file is missing.
    """
    module_sets = [
        [module] for plan in plans for module in guest_modules.build_user_modules(plan).values()
    ]
    distinct_sets = {str(file_set): file_set for file_set in module_sets}
    return GuestFiles([_list_library(), *distinct_sets.values()], plans[0])


def _list_library() -> list[Path]:
    """Return the files that every guest needs: kernel, modules, preloaded library, filter."""
    directory = guest_kernel.find_kernel_directory()
    files = [file for pattern in ("linux", "*.ko") for file in directory.glob(pattern)]
    return [*files, guest_kernel.find_preloaded_library(), guest.require_filter()]


class ClusterLab:
    """A lab that executes runs of any shape on all workers. It implements `Lab`."""

    in_real_time = False

    def __init__(self, cluster: Cluster, records: Path, build: Build, keep: Keep) -> None:
        """Read the files of guests.

        Args:
            cluster: The cluster, whose workers have been examined.
            records: The directory of records. Complete run directories are unpacked to its
                directory WHOLE.
            build: The build of nagi, which workers write to run directories.
            keep: The files of a run that are kept.
        """
        self._cluster = cluster
        self._library = hash_files(_list_library())
        self._records = records
        self._build = build.model_dump_json()
        self._keep = keep.model_dump_json()

    @property
    def cells(self) -> list[str]:
        """One name per thread of the ready workers. Names do not determine the worker of a run."""
        return [f"thread{number}" for number in range(max(1, self._cluster.threads))]

    def prepare(self, plans: list[RunPlan]) -> None:
        """Do nothing, because workers were examined when they were registered."""

    def estimate_lead_s(self) -> float:
        return 0.0

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Execute plans as `Lab` states, but on any worker.

        Workers return complete run directories, which are unpacked to WHOLE in `records`.
        """
        batch_tasks = [
            self._make_task(plan) for cell_plans in plans.values() for plan in cell_plans
        ]
        reasons = {}
        for result in self._cluster.run_tasks(batch_tasks):
            if result.error:
                reasons[result.task.run_id] = result.error
            else:
                unpack(result.archive, self._records / WHOLE / result.task.run_id)
        return reasons

    def _make_task(self, plan: RunPlan) -> Task:
        """Make the task that executes a run on a worker.

        The task names the files that the guest needs by their checksums.
        """
        modules = {
            name: hash_files([file])
            for name, file in guest_modules.build_user_modules(plan).items()
        }
        arguments = plan.model_dump_json(), self._build, self._keep, self._library, modules
        return Task("nagi-run", tasks.run, arguments, run_id=plan.run_id)


class ClusterLabs:
    """Opens the lab of a cluster, which is the same lab for all shapes. It implements `Labs`."""

    name = VIRTUAL

    def __init__(self, cluster: Cluster, records: Path, build: Build, keep: Keep) -> None:
        self._lab = ClusterLab(cluster, records, build, keep)

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[ClusterLab]:
        yield self._lab

    def exclude_cells(self, error: LabError) -> list[str]:
        return []


def analyse(cluster: Cluster, runs: list[Path]) -> Iterator[tuple[Path, str]]:
    """Compute the metrics of run directories on workers, and write the metrics to the directories.

    Yields:
        Each run directory when its task ends, with the reason of the failure; "" if it succeeded.

    Raises:
        Gone: The scheduler is gone, or no worker has been ready for the time to wait for workers.
        Interrupted: The user asked to stop.
    """
    directories = {run.name: run for run in runs}
    analyses = [
        Task("nagi-analyse", tasks.analyse, make_archive=partial(_pack_run, run), run_id=run.name)
        for run in runs
    ]
    for result in cluster.run_tasks(analyses):
        run = directories[result.task.run_id]
        if not result.error:
            unpack_into(result.archive, run)
        yield run, result.error


def _pack_run(run: Path) -> bytes:
    return pack(run, list_files(run))
