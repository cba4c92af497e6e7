# SPDX-License-Identifier: Apache-2.0
"""The client of a Dask scheduler, whose events one thread handles.

Dask fetches results in a thread of its own. They are queued here, and the thread that uses the
cluster handles them in `handle_events()`, so that no other code of nagi needs locks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Future, Variable

from nagi.cluster import tasks
from nagi.cluster.connection import connect_client
from nagi.labs.errors import Gone

AnyFuture = Future[Any]
# Receives the future of a task that has ended, and what its function has returned or raised, or
# None if the task or its result was lost.
HandleEnd = Callable[[AnyFuture, Any], None]


@dataclass(frozen=True)
class Task:
    """A call of `function` that one worker executes.

    `name` is what Dask's dashboard shows. `function` can be pickled. It is called with `arguments`
    and, if `make_archive` is given, with the archive that `make_archive` returns as the last
    argument. `run_id` is the run that the task executes or analyses, if there is one.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    make_archive: Callable[[], bytes] | None = None
    run_id: str = ""


class SchedulerClient:
    """A connection to the scheduler at `address`, or at the address in the file `address`."""

    def __init__(self, address: str) -> None:
        """Connect. Raises InputError if no scheduler answers."""
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._client, self.address = connect_client(address)

    def close(self) -> None:
        """Disconnect. The scheduler then cancels all tasks of this client."""
        with suppress(Exception):  # the scheduler may have ended
            self._client.close(timeout=5)

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's dashboard, if the scheduler has one."""
        services = self.ask(self._client.scheduler_info)["services"]
        return str(self._client.dashboard_link) if "dashboard" in services else None

    def ask(self, question: Callable[[], Any]) -> Any:
        """Return the answer of `question()`, which calls the scheduler. Raises Gone."""
        if self._client.status == "running":
            with suppress(OSError, RuntimeError):  # the connection is lost during the call
                return question()
        raise Gone(f"the scheduler at {self.address} is gone")

    def read_threads(self) -> dict[str, int]:
        """Return the number of threads of each connected worker, by address. Raises Gone."""
        threads: dict[str, int] = self.ask(self._client.nthreads)
        return threads

    def read_names(self) -> dict[str, str]:
        """Return the name of each connected worker, by address. Raises Gone."""
        workers = self.ask(self._client.scheduler_info)["workers"]
        return {address: str(worker["name"]) for address, worker in workers.items()}

    def run_on_scheduler(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `function` returns in the scheduler's process. Raises Gone."""
        return self.ask(lambda: self._client.run_on_scheduler(function, *arguments))

    def publish(self, key: str, archive: bytes) -> None:
        """Store an archive at the scheduler, from where workers fetch it. Raises Gone."""
        variable = Variable(tasks.make_variable_name(key), client=self._client)
        self.ask(lambda: variable.set(archive))

    def submit(self, address: str, task: Task, handle_end: HandleEnd) -> AnyFuture:
        """Start a task on the worker at `address` and on no other. Raises Gone.

        Args:
            address: the address of the worker
            task: the task
            handle_end: is called as an event when the task has ended
        """

        def submit() -> AnyFuture:
            archives: list[Any] = []
            if task.make_archive is not None:
                # It is sent through the scheduler, as this machine need not reach the worker.
                options = {"workers": [address], "hash": False, "direct": False}
                archives.append(self._client.scatter(task.make_archive(), **options))
            future: AnyFuture = self._client.submit(
                task.function,
                *task.arguments,
                *archives,
                key=f"{task.name}-{uuid.uuid4()}",
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            # The worker can take another task before the result has been fetched.
            future.add_done_callback(lambda _: self._events.put(lambda: None))
            assert self._client.loop is not None  # the client is connected
            self._client.loop.add_callback(self._queue_end, future, handle_end)
            return future

        submitted: AnyFuture = self.ask(submit)
        return submitted

    async def _queue_end(self, future: AnyFuture, handle_end: HandleEnd) -> None:
        """Queue the end of a task as an event.

        The result is fetched as soon as it exists. Dask's `as_completed()` does the same, but it
        never yields a task whose result could not be fetched, such as after a timeout.
        """
        answer = None
        try:
            answer = await self._client.gather(future, asynchronous=True)
        except BaseException as error:
            if future.status == "error":
                answer = error
        self._events.put(partial(handle_end, future, answer))

    def cancel(self, futures: Sequence[AnyFuture]) -> None:
        """Cancel tasks, unless the scheduler is gone."""
        if futures and self._client.status == "running":
            with suppress(OSError, RuntimeError):
                self._client.cancel(futures)

    def handle_events(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for an event, then execute all events that are queued."""
        with suppress(Empty):
            self._events.get(timeout=timeout_s)()
            while True:
                self._events.get_nowait()()
