# SPDX-License-Identifier: Apache-2.0
"""A worker of a Dask cluster, and the tasks that it executes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from distributed import Future

from nagi.cluster import tasks

AnyFuture = Future[Any]


@dataclass(frozen=True)
class Task:
    """A call of `function` that one worker executes.

    `name` is what Dask's dashboard shows. `function` is called with `arguments` and, if
    `make_archive` is given, with the archive that `make_archive` returns as the last argument.
    """

    name: str
    run_id: str
    function: Callable[..., tasks.Outcome]
    arguments: tuple[Any, ...] = ()
    make_archive: Callable[[], bytes] | None = None


@dataclass(frozen=True)
class TaskResult:
    """The result of a task: an archive of files (content.py), or an error.

    `archive` is empty if `error` is not.
    """

    task: Task
    archive: bytes
    error: str


class WorkerState(Enum):
    """The states of a worker. Only a ready worker gets tasks of a campaign."""

    NEW = "is being examined"
    READY = "fulfils all requirements"
    EXCLUDED = "does not fulfil a requirement"


@dataclass
class Worker:
    """A worker that is connected to the scheduler."""

    address: str
    name: str
    threads: int
    state: WorkerState = WorkerState.NEW
    inquiry: AnyFuture | None = None
    running: dict[AnyFuture, Task] = field(default_factory=dict)
    fetching: dict[AnyFuture, Task] = field(default_factory=dict)  # results in transfer

    @property
    def is_new(self) -> bool:
        return self.state is WorkerState.NEW

    @property
    def is_ready(self) -> bool:
        return self.state is WorkerState.READY

    @property
    def is_free(self) -> bool:
        """True if the worker can take another task.

        Results that were not fetched yet occupy memory of the worker, so their number is limited.
        """
        return len(self.running) < self.threads and len(self.fetching) <= 2 * self.threads

    def __str__(self) -> str:
        return self.address if self.name == self.address else f"{self.name} ({self.address})"
