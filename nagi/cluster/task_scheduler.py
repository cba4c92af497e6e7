# SPDX-License-Identifier: Apache-2.0
"""Assigns tasks to workers, and repeats the tasks of workers that are lost."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from distributed import KilledWorker
from nagi_contracts.units import format_count

from nagi.cluster.result_fetcher import Fetch, ResultFetcher
from nagi.cluster.scheduler_client import SchedulerClient
from nagi.cluster.worker import AnyFuture, Task, TaskResult, Worker
from nagi.cluster.worker_registry import REPAIR, WorkerRegistry, describe_error
from nagi.labs.errors import Gone, Interrupted

_MAX_LOST_WORKERS = 3  # per task; a task that ends more workers is given up


class TaskScheduler:
    """The tasks that are pending, running or finished.

    A worker has as many tasks at a time as it has threads. `notify` is called with a message about
    each lost worker.
    """

    def __init__(
        self, client: SchedulerClient, registry: WorkerRegistry, notify: Callable[[str], None]
    ) -> None:
        self._client = client
        self._registry = registry
        self._notify = notify
        self._fetcher = ResultFetcher(client)
        self._pending: deque[Task] = deque()
        self._results: deque[TaskResult] = deque()
        self._lost_workers: Counter[str] = Counter()  # by run

    def close(self) -> None:
        """Cancel the fetches of results that have not begun."""
        self._fetcher.close()

    def add(self, tasks: Sequence[Task]) -> None:
        """Add pending tasks."""
        self._pending.extend(tasks)

    def assign(self) -> None:
        """Give pending tasks to the workers that are free. Raises Gone."""
        for worker in self._registry.list_ready():
            while self._pending and worker.is_free:
                self._start(self._pending.popleft(), worker)

    def take_results(self) -> Iterator[TaskResult]:
        """Yield the results that have arrived, each once."""
        while self._results:
            yield self._results.popleft()

    def drop_worker(self, worker: Worker) -> None:
        """Cancel the tasks of a lost worker, and let other workers repeat them."""
        lost = {**worker.running, **worker.fetching}
        worker.running.clear()
        worker.fetching.clear()
        self._client.cancel([*lost, *([worker.inquiry] if worker.inquiry else [])])
        if worker.is_ready:
            repeated = f"; {format_count(len(lost), 'run')} of it done by others" if lost else ""
            self._notify(f"worker {worker} is gone{repeated}")
        for task in lost.values():
            self._retry(task)

    def drop_all(self) -> None:
        """Cancel and forget all tasks and results."""
        self._pending.clear()
        self._results.clear()
        for worker in self._registry.list_all():
            self._client.cancel([*worker.running, *worker.fetching])
            worker.running.clear()
            worker.fetching.clear()

    def _start(self, task: Task, worker: Worker) -> None:
        try:
            future = self._client.submit(
                worker, task.name, task.function, *task.arguments, make_archive=task.make_archive
            )
        except Gone:
            self._pending.appendleft(task)
            raise
        worker.running[future] = task
        self._client.call_when_done(future, partial(self._handle_end, worker))

    def _handle_end(self, worker: Worker, future: AnyFuture) -> None:
        """Fetch the result of a task, or retry or give up a task that failed."""
        task = worker.running.pop(future, None)
        if task is None:  # the task was dropped
            return
        if future.status == "finished":
            worker.fetching[future] = task
            self._fetcher.fetch(future, partial(self._handle_result, worker, future))
            return
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, KilledWorker | Interrupted):
            self._retry(task)
        elif isinstance(error, OSError):
            self._registry.exclude(worker, describe_error(error), REPAIR)
            self._retry(task)
        else:
            message = f"worker {worker}: {describe_error(error)}"
            self._results.append(TaskResult(task, b"", message))

    def _handle_result(self, worker: Worker, future: AnyFuture, fetch: Fetch) -> None:
        """Store a result that was fetched, or retry the task if the result was lost."""
        task = worker.fetching.pop(future, None)
        if task is None:
            return
        if fetch.cancelled() or fetch.exception() is not None:
            self._retry(task)
        else:
            archive, error = fetch.result()
            self._results.append(TaskResult(task, archive, error))
        future.release()

    def _retry(self, task: Task) -> None:
        """Make a task pending again, unless several workers were lost during it."""
        self._lost_workers[task.run_id] += 1
        if self._lost_workers[task.run_id] < _MAX_LOST_WORKERS:
            self._pending.appendleft(task)
        else:
            error = f"{_MAX_LOST_WORKERS} workers were lost that did it"
            self._results.append(TaskResult(task, b"", error))
