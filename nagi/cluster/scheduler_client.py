# SPDX-License-Identifier: Apache-2.0
"""The client of a Dask scheduler, whose events one thread handles.

Dask calls back from threads of its own. Callbacks are queued here, and the thread that uses the
cluster executes them in `handle_events()`, so that no other code of nagi needs locks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Variable

from nagi.cluster import tasks
from nagi.cluster.connection import connect_client
from nagi.cluster.worker import AnyFuture, Worker
from nagi.labs.errors import Gone


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

    def submit(
        self,
        worker: Worker,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        make_archive: Callable[[], bytes] | None = None,
    ) -> AnyFuture:
        """Start `function` on `worker` and on no other. Raises Gone.

        Args:
            worker: the worker that executes the function
            name: the prefix of the task's key, which Dask's dashboard shows
            function: a function that can be pickled
            *arguments: its arguments
            make_archive: returns one more argument, which is sent through the scheduler, as this
                machine need not reach the worker
        """

        def submit() -> AnyFuture:
            archives: list[Any] = []
            if make_archive is not None:
                options = {"workers": [worker.address], "hash": False, "direct": False}
                archives.append(self._client.scatter(make_archive(), **options))
            return self._client.submit(
                function,
                *arguments,
                *archives,
                key=f"{name}-{uuid.uuid4()}",
                workers=[worker.address],
                allow_other_workers=False,
                pure=False,
            )

        future: AnyFuture = self.ask(submit)
        return future

    def cancel(self, futures: Sequence[AnyFuture]) -> None:
        """Cancel tasks, unless the scheduler is gone."""
        if futures and self._client.status == "running":
            with suppress(OSError, RuntimeError):
                self._client.cancel(futures)

    def call_when_done(self, future: AnyFuture, callback: Callable[[AnyFuture], None]) -> None:
        """Queue `callback(future)` as an event once `future` is done."""
        future.add_done_callback(lambda done: self.add_event(partial(callback, done)))

    def add_event(self, event: Callable[[], None]) -> None:
        """Queue an event. Any thread may call this method."""
        self._events.put(event)

    def handle_events(self, timeout_s: float) -> None:
        """Wait up to `timeout_s` for an event, then execute all events that are queued."""
        with suppress(Empty):
            self._events.get(timeout=timeout_s)()
            while True:
                self._events.get_nowait()()
