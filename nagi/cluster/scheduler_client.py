# SPDX-License-Identifier: Apache-2.0
"""The client of a Dask scheduler. One thread handles all its events.

Dask fetches results in its own thread. The client queues the results as events, and the thread that
uses the cluster handles the events in `handle_events()`, so that no other code of nagi needs locks.
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
# A function that is called at the end of a task, with the task's future, and with the value that
# its function returned or the exception that it raised; None if the task or its result was lost.
HandleEnd = Callable[[AnyFuture, Any], None]


@dataclass(frozen=True)
class Task:
    """A call of `function` that one worker executes.

    Attributes:
        name: The name in Dask's dashboard.
        function: The function, which must be importable on the worker.
        arguments: The arguments of the function.
        make_archive: A function that makes an archive, which becomes the last argument; None
            without an archive. It is called when the task is submitted, to save memory.
        run_id: The run that the task executes or analyses; "" without one.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    make_archive: Callable[[], bytes] | None = None
    run_id: str = ""


class SchedulerClient:
    """A connection to a scheduler.

    `address` is the address of the scheduler.
    """

    def __init__(self, address: str) -> None:
        """Connect to the scheduler. Raises InputError if no scheduler answers.

        Args:
            address: The scheduler's address, or a file that `dask scheduler` has written.
        """
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._client, self.address = connect_client(address)

    def close(self) -> None:
        """Disconnect. The scheduler then cancels all tasks of this client."""
        with suppress(Exception):  # the scheduler may have ended
            self._client.close(timeout=5)

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's dashboard, or None if the scheduler has none. Raises Gone."""
        services = self.request(self._client.scheduler_info)["services"]
        return str(self._client.dashboard_link) if "dashboard" in services else None

    def request(self, call_scheduler: Callable[[], Any]) -> Any:
        """Call `call_scheduler()`, which uses the connection, and return its result.

        Raises:
            Gone: The connection to the scheduler is lost.
        """
        if self._client.status == "running":
            with suppress(OSError, RuntimeError):  # the connection is lost during the call
                return call_scheduler()
        raise Gone(f"the scheduler at {self.address} is gone")

    def read_threads(self) -> dict[str, int]:
        """Return the number of threads of each connected worker, by address. Raises Gone."""
        threads: dict[str, int] = self.request(self._client.nthreads)
        return threads

    def read_names(self) -> dict[str, str]:
        """Return the name of each connected worker, by address. Raises Gone."""
        workers = self.request(self._client.scheduler_info)["workers"]
        return {address: str(worker["name"]) for address, worker in workers.items()}

    def run_on_scheduler(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Execute `function` in the scheduler's process, and return its result. Raises Gone."""
        return self.request(lambda: self._client.run_on_scheduler(function, *arguments))

    def publish(self, key: str, archive: bytes) -> None:
        """Store an archive at the scheduler, so that workers can fetch it by `key`. Raises Gone."""
        variable = Variable(tasks.make_variable_name(key), client=self._client)
        self.request(lambda: variable.set(archive))

    def submit(self, address: str, task: Task, handle_end: HandleEnd) -> AnyFuture:
        """Start a task on the worker at `address` and on no other worker.

        Args:
            address: The address of the worker.
            task: The task.
            handle_end: A function that `handle_events()` calls when the task has ended.

        Returns:
            The future of the task, which identifies the task in `handle_end` and `cancel()`.

        Raises:
            Gone: The connection to the scheduler is lost.
        """

        def submit() -> AnyFuture:
            """Send archive and task to the worker. _queue_end() waits for the end of the task."""
            archives: list[Any] = []
            if task.make_archive is not None:
                # With "direct": False the archive is sent through the scheduler, because this
                # machine may be unable to reach the worker.
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
            # An empty event ends the wait of handle_events(), because the worker can take another
            # task before the result has been fetched.
            future.add_done_callback(lambda _: self._events.put(lambda: None))
            assert self._client.loop is not None  # the client is connected
            self._client.loop.add_callback(self._queue_end, future, handle_end)
            return future

        submitted: AnyFuture = self.request(submit)
        return submitted

    async def _queue_end(self, future: AnyFuture, handle_end: HandleEnd) -> None:
        """Fetch the result of a task when it has ended, and queue a call of `handle_end`.

        Dask's `as_completed()` is not used, because it never yields a task whose result could not
        be fetched, such as after a timeout.
        """
        answer = None
        try:
            answer = await self._client.gather(future, asynchronous=True)
        except BaseException as error:
            if future.status == "error":
                answer = error
        self._events.put(partial(handle_end, future, answer))

    def cancel(self, futures: Sequence[AnyFuture]) -> None:
        """Cancel tasks. Do nothing if the scheduler is gone."""
        if futures and self._client.status == "running":
            with suppress(OSError, RuntimeError):
                self._client.cancel(futures)

    def handle_events(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for an event, then execute all events that are queued."""
        with suppress(Empty):
            self._events.get(timeout=timeout_s)()
            while True:
                self._events.get_nowait()()
