# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster on which nagi executes tasks.

`WorkerRegistry` discovers and examines workers, `TaskScheduler` assigns tasks to them,
`ResultFetcher` fetches results. All of them use one `SchedulerClient`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence

import dask
from dask.utils import parse_timedelta
from nagi_contracts.errors import excerpt, refuse
from nagi_contracts.units import format_count

from nagi.cluster.installation import Installation, Requirements
from nagi.cluster.scheduler_client import SchedulerClient
from nagi.cluster.task_scheduler import TaskScheduler
from nagi.cluster.worker import Task, TaskResult
from nagi.cluster.worker_registry import GuestFiles, WorkerRegistry
from nagi.labs.errors import Gone, Interrupted

_UPDATE_INTERVAL_S = 0.5
_BUSY_TIMEOUT_S = 60.0  # an idle worker answers within this time
_ANSWERED_TIMEOUT_S = 10  # after it, the workers that have answered begin
# Dask's setting of how long nagi waits for workers; DASK_NAGI__WAIT_FOR_WORKERS sets it as well.
_SETTING, _DEFAULT = "nagi.wait-for-workers", "30s"


class Cluster:
    """The cluster of the scheduler at `address`.

    `notify` is called with a message about each worker that is excluded or lost; it may be
    replaced.
    """

    def __init__(
        self, address: str, interrupted: Callable[[], bool], notify: Callable[[str], None]
    ) -> None:
        """Connect to the scheduler.

        Args:
            address: the scheduler's address, or a file that `dask scheduler` has written
            interrupted: returns whether the user asked to stop
            notify: receives messages for the user

        Raises:
            InputError: no scheduler answers, or Dask's setting of the timeout is no duration
        """
        self.notify = notify
        self._interrupted = interrupted
        self._timeout_s = _read_timeout_s()
        self._updated_s = -_UPDATE_INTERVAL_S
        installation = Installation.from_this_machine(Requirements())
        _silence_dask()
        self._client = SchedulerClient(address)
        self._registry = WorkerRegistry(self._client, installation, self._notify)
        self._scheduler = TaskScheduler(self._client, self._registry, self._notify)

    def close(self) -> None:
        """Disconnect from the cluster. Tasks of this client that still run are cancelled."""
        self._scheduler.close()
        self._client.close()

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self._client.address

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's dashboard, if the scheduler has one."""
        return self._client.dashboard

    @property
    def threads(self) -> int:
        """The number of tasks that can run at a time."""
        return sum(worker.threads for worker in self._registry.list_ready())

    def describe_workers(self) -> str:
        """Return how many workers and threads are ready, for messages."""
        workers = self._registry.list_ready()
        threads = f" with {self.threads} threads" if self.threads > len(workers) else ""
        return f"{format_count(len(workers), 'worker')}{threads}"

    def require_workers(
        self, requirements: Requirements | None = None, guests: GuestFiles | None = None
    ) -> None:
        """Wait until all connected workers have been examined.

        Args:
            requirements: what workers have to fulfil; by default, what reading captures needs
            guests: the files that guests need, if workers execute runs

        Raises:
            InputError: no worker fulfils the requirements
            Interrupted: the user asked to stop
            Gone: the scheduler is gone
        """
        self._registry.set_requirements(requirements or Requirements(), guests)
        self._registry.check_scheduler()
        started_s = time.monotonic()
        is_notified = False
        while True:
            self._poll()
            waited_s = time.monotonic() - started_s
            new = self._registry.list_new()
            if self._registry.list_all() and not new:
                break
            if waited_s > _ANSWERED_TIMEOUT_S and self._registry.list_ready():
                self.notify(f"{format_count(len(new), 'worker')} not used yet: no answer")
                break
            limit_s = max(self._timeout_s, _BUSY_TIMEOUT_S) if new else self._timeout_s
            longer = "to wait longer, set DASK_NAGI__WAIT_FOR_WORKERS, such as 10min"
            if waited_s > limit_s and new:
                raise refuse(
                    f"{format_count(len(new), 'worker')} of {self.address}, and no answer in "
                    f"{limit_s:.0f} s: busy with something else",
                    f"give the same command when the workers are idle; {longer}",
                )
            if waited_s > limit_s:
                raise refuse(
                    f"no worker has come to {self.address} in {limit_s:.0f} s",
                    f"start one: {_make_worker_command(self.address)}; {longer}",
                )
            if not is_notified and (not new or waited_s > _ANSWERED_TIMEOUT_S):
                missing = "an answer of workers" if new else "workers"
                self.notify(f"waiting up to {limit_s:.0f} s for {missing} of {self.address}")
                is_notified = True
        if not self._registry.list_ready():
            raise refuse(
                f"{self.address} has no worker that can be used",
                "repair what is listed above, then give the same command again",
            )

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Execute tasks on the workers, and yield each result when it arrives.

        Tasks that are unfinished when the iterator is closed are cancelled.

        Raises:
            Gone: the scheduler is gone, or no worker has been ready for some time
            Interrupted: the user asked to stop
        """
        self._scheduler.add(tasks)
        unfinished = len(tasks)
        last_ready_s = time.monotonic()
        try:
            while unfinished:
                self._poll()
                for result in self._scheduler.take_results():
                    unfinished -= 1
                    yield result
                if self._registry.list_ready():
                    last_ready_s = time.monotonic()
                elif time.monotonic() - last_ready_s > self._timeout_s:
                    raise Gone(
                        f"{self.address} has had no worker that can be used for "
                        f"{self._timeout_s:.0f} s; start one: {_make_worker_command(self.address)}"
                    )
        finally:
            self._scheduler.drop_all()

    def _poll(self) -> None:
        """Update the list of workers, assign tasks, and handle the events of a short while."""
        if self._interrupted():
            raise Interrupted
        if time.monotonic() - self._updated_s >= _UPDATE_INTERVAL_S:
            self._update_workers()
            self._updated_s = time.monotonic()
        self._scheduler.assign()
        self._client.handle_events(_UPDATE_INTERVAL_S / 5)

    def _update_workers(self) -> None:
        """Drop the workers that are gone, and register new ones."""
        threads = self._client.read_threads()
        for worker in self._registry.remove_lost(threads):
            self._scheduler.drop_worker(worker)
        self._registry.add_new(threads)

    def _notify(self, message: str) -> None:
        self.notify(message)  # looked up now: callers replace it


def _silence_dask() -> None:
    """Switch off the logs of Dask, which sets levels of its loggers itself.

    nagi reports the errors of the cluster.
    """
    packages = ("distributed", "tornado", "asyncio")
    for name in (*packages, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in packages:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _read_timeout_s() -> float:
    """Return how long to wait for workers, in seconds. Raises InputError if it is no duration."""
    setting = dask.config.get(_SETTING, _DEFAULT)
    try:
        return float(parse_timedelta(setting))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refuse(
            f"Dask's setting {_SETTING} is {excerpt(str(setting))}", "write such as 10min"
        ) from None


def _make_worker_command(address: str) -> str:
    return f"`dask worker {address} --nthreads 1 --dashboard-address 127.0.0.1:0`"
