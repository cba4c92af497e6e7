# SPDX-License-Identifier: Apache-2.0
"""Discovers the workers of a cluster and decides which of them are used.

A worker is used if its installation equals the installation of this machine (installation.py). If
workers execute runs, a guest must also work on the worker's machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from nagi_contracts import __version__
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan

from nagi.cluster import tasks
from nagi.cluster.content import Sums, hash_files, hash_sums, pack
from nagi.cluster.installation import Installation, Requirements, list_differences
from nagi.cluster.scheduler_client import AnyFuture, SchedulerClient, Task

REPAIR = "repair this, then start the worker again"
_SAME_BUILD = (
    f"install the same build of nagi {__version__} there as here (in a checkout: the same commit, "
    "built by `make setup`), then start that worker again"
)


@dataclass(frozen=True)
class GuestFiles:
    """Files that guests need on workers.

    Attributes:
        sets: Sets of files, which workers store by content (content.py). The first set has the
            kernel, nagi's modules and the preloaded library; each other set has a user's module.
        plan: A plan that each worker checks in a guest before it gets runs.
    """

    sets: list[list[Path]]
    plan: RunPlan

    @cached_property
    def sums(self) -> list[Sums]:
        """The checksums of each set."""
        return [hash_files(files) for files in self.sets]


class WorkerState(Enum):
    """The states of a worker. Only a ready worker gets tasks of a campaign."""

    NEW = "is being examined"
    READY = "fulfils all requirements"
    EXCLUDED = "does not fulfil a requirement"


@dataclass
class Worker:
    """A worker that is connected to the scheduler.

    Attributes:
        inquiry: The task that examines the worker, or None if no such task is running.
        tasks: The worker's tasks whose results have not been handled yet.
    """

    address: str
    name: str
    threads: int
    state: WorkerState = WorkerState.NEW
    inquiry: AnyFuture | None = None
    tasks: dict[AnyFuture, Task] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """True if the worker can take another task.

        Results that were not fetched yet occupy the worker's memory, so their number is limited.
        """
        running = sum(not future.done() for future in self.tasks)
        return running < self.threads and len(self.tasks) < 3 * self.threads

    def __str__(self) -> str:
        return self.address if self.name == self.address else f"{self.name} ({self.address})"


class WorkerRegistry:
    """The workers of a cluster. It examines new workers, and excludes unsuitable ones.

    Workers are examined by tasks, not by a WorkerPlugin of Dask. A worker that cannot import the
    plugin's module would not start any more, even after this process has ended. The registration
    of a plugin also waits for workers that do not answer.
    """

    def __init__(
        self, client: SchedulerClient, installation: Installation, notify: Callable[[str], None]
    ) -> None:
        """Make an empty registry.

        Args:
            client: The client of the scheduler.
            installation: The installation of this machine.
            notify: A function that is called with a message about each excluded worker.
        """
        self._client = client
        self._notify = notify
        self._workers: dict[str, Worker] = {}
        self._requirements = Requirements()
        self._installation = installation
        self._guest_files: GuestFiles | None = None
        self._published: set[str] = set()

    def change_client(self, client: SchedulerClient) -> None:
        """Forget all workers, and discover those of another scheduler, which has no files yet."""
        self._client = client
        self._workers.clear()
        self._published.clear()

    def set_requirements(self, requirements: Requirements, guest_files: GuestFiles | None) -> None:
        """Set the requirements of workers that are added from now on.

        Args:
            requirements: The requirements.
            guest_files: The files that guests need, or None if workers execute no runs.

        Raises:
            InputError: This machine does not fulfil the requirements itself.
        """
        self._requirements, self._guest_files = requirements, guest_files
        self._installation = Installation.from_this_machine(requirements)

    def list_workers(self, state: WorkerState | None = None) -> list[Worker]:
        """Return the workers in `state`; without `state`, all workers."""
        return [worker for worker in self._workers.values() if state in (None, worker.state)]

    def remove_lost(self, threads: Mapping[str, int]) -> list[Worker]:
        """Remove the workers that are not connected any more, and return them.

        Args:
            threads: The number of threads of each connected worker, by address.
        """
        return [self._workers.pop(address) for address in self._workers.keys() - threads.keys()]

    def add_new(self, threads: Mapping[str, int]) -> None:
        """Register the connected workers that are not registered yet, and start to examine them.

        Args:
            threads: The number of threads of each connected worker, by address.
        """
        if new := threads.keys() - self._workers.keys():
            names = self._client.read_names()
            for address in sorted(new & names.keys()):
                worker = Worker(address, names[address], threads[address])
                self._workers[address] = worker
                arguments = self._requirements, self._guest_files.sums if self._guest_files else []
                examination = Task("nagi-examine", tasks.examine, arguments)
                self._inquire(worker, examination, self._handle_examination)

    def exclude(self, worker: Worker, problem: str, cure: str) -> None:
        """Give `worker` no further tasks, and notify the user."""
        worker.state = WorkerState.EXCLUDED
        self._notify(f"worker {worker} is left out: {problem}; {cure}")

    def check_scheduler(self) -> None:
        """Raise InputError if the scheduler does not have the same build of nagi."""
        cure = "start it in an environment with the same build of nagi as here"
        address = self._client.address
        try:
            installation = self._client.run_on_scheduler(
                Installation.from_this_machine, Requirements()
            )
        except (ImportError, AttributeError) as error:
            raise refuse(
                f"the scheduler at {address} has no nagi, or another version ({error})", cure
            ) from None
        own_parts = {name: self._installation.parts[name] for name in installation.parts}
        if differences := list_differences(own_parts, installation.parts):
            problem = f"the scheduler at {address} has another build: {', '.join(differences)}"
            raise refuse(problem, cure)

    def _inquire(
        self, worker: Worker, task: Task, handle_answer: Callable[[Worker, Any], None]
    ) -> None:
        """Execute a task on a new worker, and call `handle_answer` with the worker and the result.

        If the task raises an error, exclude the worker.
        """

        def handle_end(future: AnyFuture, answer: Any) -> None:
            """Exclude the worker if the task raised an error; if not, handle the task's result."""
            worker.inquiry = None
            if isinstance(answer, ImportError | AttributeError):
                self.exclude(worker, f"it has no nagi, or another version ({answer})", _SAME_BUILD)
            elif isinstance(answer, BaseException):
                self.exclude(worker, describe_error(answer), REPAIR)
            elif answer is not None:  # remove_lost() handles workers that are lost meanwhile
                handle_answer(worker, answer)

        worker.inquiry = self._client.submit(worker.address, task, handle_end)

    def _handle_examination(self, worker: Worker, answer: tuple[Any, ...]) -> None:
        """Exclude a worker, or admit it, by the result of its examination.

        If the worker is to execute runs, a task first tries a guest on its machine.

        Args:
            worker: The worker.
            answer: The result of `tasks.examine()`.
        """
        parts, guest_programs, missing, error = answer
        if error:
            problem, _, cure = error.partition("; ")
            return self.exclude(worker, problem, cure)
        if differences := list_differences(self._installation.parts, parts):
            problem = f"it has another build: {', '.join(differences)}"
            return self.exclude(worker, problem, _SAME_BUILD)
        if differences := list_differences(self._installation.guest_programs, guest_programs):
            self._notify(
                f"worker {worker} has another {', '.join(differences)} than this machine: captures "
                "of its runs may differ in bytes"
            )
        if self._guest_files is None:
            return self._admit(worker, "")
        for index in missing:
            self._publish_set(index)
        arguments = self._guest_files.sums, self._guest_files.plan.model_dump_json()
        self._inquire(worker, Task("nagi-prepare", tasks.prepare, arguments), self._admit)
        return None

    def _publish_set(self, index: int) -> None:
        """Store a set of files at the scheduler, unless this process has stored it before.

        `index` is the position of the set in `GuestFiles.sets`.
        """
        assert self._guest_files is not None
        key = hash_sums(self._guest_files.sums[index])
        if key not in self._published:
            files = self._guest_files.sets[index]
            self._client.publish(key, pack(files[0].parent, files))
            self._published.add(key)

    def _admit(self, worker: Worker, problem: str) -> None:
        """Mark a worker as ready, or exclude it if `problem` is not empty."""
        if problem:
            return self.exclude(worker, f"a guest does not work there: {problem}", REPAIR)
        worker.state = WorkerState.READY
        return None


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
