# SPDX-License-Identifier: Apache-2.0
"""A Dask cluster on which nagi executes tasks.

`WorkerRegistry` discovers and examines workers. `Cluster` assigns tasks to workers that are ready.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import KilledWorker
from nagi_contracts.errors import InputError, excerpt, refuse
from nagi_contracts.units import format_count

from nagi.cluster.installation import Installation, Requirements
from nagi.cluster.scheduler_client import AnyFuture, SchedulerClient, Task
from nagi.cluster.worker_registry import (
    REPAIR,
    GuestFiles,
    Worker,
    WorkerRegistry,
    WorkerState,
    describe_error,
)
from nagi.labs.errors import Gone, Interrupted

_UPDATE_INTERVAL_S = 0.5
_BUSY_TIMEOUT_S = 60.0  # a worker that takes longer to answer has other work
_ANSWERED_TIMEOUT_S = 10  # after this time, ready workers begin although others did not answer
# The key in Dask's configuration of the time to wait for workers. The environment variable
# DASK_NAGI__WAIT_FOR_WORKERS sets the same value.
_SETTING, _DEFAULT = "nagi.wait-for-workers", "30s"
_REJOIN_INTERVAL_S = 1.0  # between two attempts to reach a scheduler that is gone
_MAX_LOST_WORKERS = 3  # a task fails when this many workers were lost while they executed it


@dataclass(frozen=True)
class TaskResult:
    """The result of a task: an archive of files (content.py), or an error.

    One of `archive` and `error` is empty.
    """

    task: Task
    archive: bytes
    error: str


class Cluster:
    """The cluster of the scheduler at `address`.

    A worker executes as many tasks at a time as it has threads. nagi, not Dask, chooses the worker
    of a task and repeats the tasks of lost workers, because Dask

    - counts a lost worker also against tasks that only waited at this worker,
    - gives a task up after a number of lost workers that is a setting of the scheduler,
    - keeps a task forever if its permitted workers are gone, even if other workers are ready.

    Attributes:
        notify: A function that is called with messages for the user, such as the loss of a worker.
            Callers may replace it.
    """

    def __init__(
        self, address: str, interrupted: Callable[[], bool], notify: Callable[[str], None]
    ) -> None:
        """Connect to the scheduler.

        Args:
            address: The scheduler's address, or a file that `dask scheduler` has written.
            interrupted: A function that returns whether the user asked to stop.
            notify: A function that receives messages for the user.

        Raises:
            InputError: No scheduler answers, or Dask's setting of the timeout is not a duration.
        """
        self.notify = notify
        self._interrupted = interrupted
        self._timeout_s = _read_timeout_s()
        self._updated_s = -_UPDATE_INTERVAL_S
        self._last_ready_s = 0.0  # when a worker was ready, or the scheduler came back
        self._option = address
        installation = Installation.from_this_machine(Requirements())
        _silence_dask()
        self._client = SchedulerClient(address)
        # Callers replace `notify`, therefore it is looked up at each call.
        self._registry = WorkerRegistry(self._client, installation, lambda text: self.notify(text))
        self._pending: deque[Task] = deque()
        self._results: deque[TaskResult] = deque()
        self._lost_workers: Counter[str] = Counter()  # run id -> workers lost during its tasks

    def close(self) -> None:
        """Disconnect from the cluster. Tasks of this client that still run are cancelled."""
        self._client.close()

    @property
    def address(self) -> str:
        """The address of the scheduler."""
        return self._client.address

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's dashboard, or None if the scheduler has none."""
        return self._client.dashboard

    @property
    def threads(self) -> int:
        """The number of tasks that ready workers can execute at a time."""
        return sum(worker.threads for worker in self._list_ready())

    def describe_workers(self) -> str:
        """Return a text for messages with the number of ready workers and of their threads."""
        workers = self._list_ready()
        threads = f" with {self.threads} threads" if self.threads > len(workers) else ""
        return f"{format_count(len(workers), 'worker')}{threads}"

    def require_workers(
        self, requirements: Requirements | None = None, guest_files: GuestFiles | None = None
    ) -> None:
        """Wait until all connected workers have been examined, and at least one is ready.

        Workers that do not answer in time are not waited for if another worker is ready.

        Args:
            requirements: The requirements of workers; by default, those for reading captures.
            guest_files: The files that guests need, or None if workers execute no runs.

        Raises:
            InputError: No worker fulfils the requirements.
            Interrupted: The user asked to stop.
            Gone: The scheduler is gone, and did not come back.
        """
        self._registry.set_requirements(requirements or Requirements(), guest_files)
        self._registry.check_scheduler()
        started_s = time.monotonic()
        is_notified = False
        while True:
            self._poll()
            waited_s = time.monotonic() - started_s
            unexamined = self._registry.list_workers(WorkerState.NEW)
            if self._registry.list_workers() and not unexamined:
                break
            unexamined_text = format_count(len(unexamined), "worker")
            if waited_s > _ANSWERED_TIMEOUT_S and self._list_ready():
                self.notify(f"{unexamined_text} not used yet, because no answer has arrived")
                break
            limit_s = max(self._timeout_s, _BUSY_TIMEOUT_S) if unexamined else self._timeout_s
            wait_longer = "to wait longer, set DASK_NAGI__WAIT_FOR_WORKERS, for example to 10min"
            if waited_s > limit_s and unexamined:
                raise refuse(
                    f"{unexamined_text} of {self.address} did not answer in {limit_s:.0f} s, "
                    "perhaps because of other work",
                    f"give the same command when the workers are idle; {wait_longer}",
                )
            if waited_s > limit_s:
                raise refuse(
                    f"no worker has connected to {self.address} in {limit_s:.0f} s",
                    f"start one: {_make_worker_command(self.address)}; {wait_longer}",
                )
            if not is_notified and (not unexamined or waited_s > _ANSWERED_TIMEOUT_S):
                missing = "answers of workers" if unexamined else "workers"
                self.notify(f"waiting up to {limit_s:.0f} s for {missing} of {self.address}")
                is_notified = True
        if not self._list_ready():
            raise refuse(
                f"{self.address} has no worker that can be used",
                "repair the problems listed above, then give the same command again",
            )

    def run_tasks(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Execute tasks on the workers, and yield each result when it arrives, in any order.

        Tasks that are unfinished when the iterator is closed are cancelled.

        Raises:
            Gone: For the time in _SETTING, the scheduler has been gone, or no worker has been
                ready.
            InputError: A scheduler with another build of nagi has come back.
            Interrupted: The user asked to stop.
        """
        self._pending.extend(tasks)
        unfinished = len(tasks)
        self._last_ready_s = time.monotonic()
        try:
            while unfinished:
                self._poll()
                while self._results:
                    unfinished -= 1
                    yield self._results.popleft()
                if self._list_ready():
                    self._last_ready_s = time.monotonic()
                elif time.monotonic() - self._last_ready_s > self._timeout_s:
                    raise Gone(
                        f"{self.address} has had no worker that can be used for "
                        f"{self._timeout_s:.0f} s; start one: {_make_worker_command(self.address)}"
                    )
        finally:
            self._pending.clear()
            self._results.clear()
            for worker in self._registry.list_workers():
                self._client.cancel(list(worker.tasks))
                worker.tasks.clear()

    def _poll(self) -> None:
        """Update the list of workers, assign tasks to free workers, and handle events.

        This waits for events for a fraction of a second, or until a lost scheduler is back.

        Raises:
            Gone: The scheduler is gone, and did not come back.
            InputError: A scheduler with another build of nagi has come back.
            Interrupted: The user asked to stop.
        """
        if self._interrupted():
            raise Interrupted
        try:
            self._exchange()
        except Gone as error:
            self._rejoin(error)

    def _exchange(self) -> None:
        """Do what _poll() does while the scheduler is connected. Raises Gone if it is not."""
        if time.monotonic() - self._updated_s >= _UPDATE_INTERVAL_S:
            threads = self._client.read_threads()
            for worker in self._registry.remove_lost(threads):
                self._drop_worker(worker)
            self._registry.add_new(threads)
            self._updated_s = time.monotonic()
        for worker in self._list_ready():
            while self._pending and worker.is_free:
                task = self._pending[0]
                handle_end = partial(self._handle_end, worker)
                worker.tasks[self._client.submit(worker.address, task, handle_end)] = task
                self._pending.popleft()
        self._client.handle_events(_UPDATE_INTERVAL_S / 5)

    def _rejoin(self, gone: Gone) -> None:
        """Wait until the scheduler is back, and connect to it again.

        All tasks without a result become pending. They have not lost a worker, so they are not
        counted as in _retry(). The scheduler that comes back has no workers and no files of before.

        Args:
            gone: The error of the lost connection, raised again if the scheduler stays away.
        """
        self.notify(f"{gone}; waiting up to {self._timeout_s:.0f} s for it to come back")
        for worker in self._registry.list_workers():
            self._pending.extendleft(worker.tasks.values())
            worker.tasks.clear()
        self._client.close()
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            if self._interrupted():
                raise Interrupted
            try:
                self._client = SchedulerClient(self._option)
                break
            except InputError:
                if time.monotonic() > deadline_s:
                    raise gone from None
            time.sleep(_REJOIN_INTERVAL_S)
        self._registry.change_client(self._client)
        self._registry.check_scheduler()
        self._last_ready_s = time.monotonic()
        self.notify(f"the scheduler at {self.address} is back")

    def _list_ready(self) -> list[Worker]:
        return self._registry.list_workers(WorkerState.READY)

    def _drop_worker(self, worker: Worker) -> None:
        """Cancel the tasks of a lost worker, notify the user, and let other workers repeat them."""
        lost_tasks = list(worker.tasks.values())
        self._client.cancel([*worker.tasks, *([worker.inquiry] if worker.inquiry else [])])
        worker.tasks.clear()
        if worker.state is WorkerState.READY:
            runs = format_count(len(lost_tasks), "run")
            repeated = f"; other workers repeat its {runs}" if lost_tasks else ""
            self.notify(f"worker {worker} is gone{repeated}")
        for task in lost_tasks:
            self._retry(task)

    def _handle_end(self, worker: Worker, future: AnyFuture, answer: Any) -> None:
        """Store the result of a task, or retry the task if its worker was lost or is broken.

        A worker is broken if the task raised OSError. A broken worker gets no further tasks.

        Args:
            worker: The worker that executed the task.
            future: The future of the task.
            answer: The (archive, error) of the task's function, the exception that it raised, or
                None if the task or its result was lost.
        """
        task = worker.tasks.pop(future, None)
        if task is None:  # _drop_worker() has dropped the task
            return
        if answer is None or isinstance(answer, KilledWorker | Interrupted):
            self._retry(task)
        elif isinstance(answer, OSError):
            self._registry.exclude(worker, describe_error(answer), REPAIR)
            self._retry(task)
        elif isinstance(answer, BaseException):
            message = f"worker {worker}: {describe_error(answer)}"
            self._results.append(TaskResult(task, b"", message))
        else:
            self._results.append(TaskResult(task, *answer))

    def _retry(self, task: Task) -> None:
        """Count one more worker that a task has lost, and make the task pending again.

        If the task has lost _MAX_LOST_WORKERS workers, it fails instead.
        """
        self._lost_workers[task.run_id] += 1
        if self._lost_workers[task.run_id] < _MAX_LOST_WORKERS:
            self._pending.appendleft(task)
        else:
            error = f"{_MAX_LOST_WORKERS} workers were lost while they executed the run"
            self._results.append(TaskResult(task, b"", error))


def _silence_dask() -> None:
    """Switch off the logs of Dask, because nagi reports the errors of the cluster.

    Dask sets the levels of its loggers itself, so the level of each logger is changed.
    """
    packages = ("distributed", "tornado", "asyncio")
    for name in (*packages, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in packages:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _read_timeout_s() -> float:
    """Return the time to wait for workers, in seconds, from Dask's configuration.

    Raises:
        InputError: The setting is not a duration.
    """
    setting = dask.config.get(_SETTING, _DEFAULT)
    try:
        return float(parse_timedelta(setting))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refuse(
            f"Dask's setting {_SETTING} is {excerpt(str(setting))}, which is not a duration",
            "write a duration such as 10min",
        ) from None


def _make_worker_command(address: str) -> str:
    return f"`dask worker {address} --nthreads 1 --dashboard-address 127.0.0.1:0`"
