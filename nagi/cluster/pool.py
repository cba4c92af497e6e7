# SPDX-License-Identifier: Apache-2.0
"""The workers of a Dask cluster, and tasks that they do.

A worker is used when it has what this machine has (installation.py) and a guest works there. It has
as many tasks at a time as it has threads. What it gives is fetched at once, and it forgets it.
Tasks of a worker that is lost are done by others.
"""

from __future__ import annotations

import concurrent.futures
import logging
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import dask
from dask.utils import parse_timedelta
from distributed import Future, KilledWorker, Variable
from nagi_contracts import __version__
from nagi_contracts.errors import excerpt, refuse
from nagi_contracts.plan import RunPlan
from nagi_contracts.units import count_of

from nagi.cluster import tasks
from nagi.cluster.connection import connected
from nagi.cluster.content import Sums, key_of, packed, sums_of
from nagi.cluster.installation import Installation, Use, differences
from nagi.labs.errors import Gone, Interrupted

_Future = Future[Any]

_LOOK_S = 0.5
_FETCHES = 2  # results that are fetched at once
_MAX_LOST = 3  # workers that a task may take with it
_ANSWER_S = 30
_BUSY_S = 60.0  # that a worker takes at most to answer, unless it is busy
_ALL_ANSWER_S = 10  # then those that have answered begin
# Dask's setting of how long workers are waited for; DASK_NAGI__WAIT_FOR_WORKERS sets it, too.
_SETTING, _DEFAULT = "nagi.wait-for-workers", "30s"
_MEND = "mend that, then start it again"
_SAME_BUILD = (
    f"install there what is here: nagi {__version__} of the same build (of a checkout the same "
    "commit, built by `make setup`), then start that worker again"
)


@dataclass(frozen=True)
class Task:
    """What one worker is to do: `function` of `arguments` and, if there is `files`, of the archive
    that it gives. `name`: what Dask's dashboard shows."""

    name: str
    run_id: str
    function: Callable[..., tasks.Outcome]
    arguments: tuple[Any, ...] = ()
    files: Callable[[], bytes] | None = None


@dataclass(frozen=True)
class Done:
    """What became of a task. `files`: an archive (content.py); or why there is none."""

    task: Task
    files: bytes
    why: str


@dataclass(frozen=True)
class Guests:
    """What guests need of workers. `sets`: files by content, first kernel and modules of ours;
    `plan`: of a run that guests are tried with."""

    sets: list[list[Path]]
    plan: RunPlan

    @cached_property
    def sums(self) -> list[Sums]:
        return [sums_of(files) for files in self.sets]


@dataclass
class _Worker:
    address: str
    name: str
    threads: int
    is_new: bool = True  # nobody knows yet whether it can be used
    is_ready: bool = False
    inquiry: _Future | None = None
    underway: dict[_Future, Task] = field(default_factory=dict)
    fetched: dict[_Future, Task] = field(default_factory=dict)  # just now

    @property
    def is_free(self) -> bool:
        """What nobody has fetched yet takes memory there."""
        waiting = len(self.fetched)
        return len(self.underway) < self.threads and waiting <= 2 * self.threads

    def __str__(self) -> str:
        return self.address if self.name == self.address else f"{self.name} ({self.address})"


class Cluster:
    """A cluster whose scheduler is at `address`, or is named by a file that `dask scheduler` has
    written. `say` is told who comes and who is lost."""

    def __init__(
        self, address: str, interrupted: Callable[[], bool], say: Callable[[str], None]
    ) -> None:
        """Raises InputError if no scheduler answers there."""
        self.say = say
        self._interrupted = interrupted
        self._patience_s = _patience_s()
        self._workers: dict[str, _Worker] = {}
        self._lost: Counter[str] = Counter()  # workers that a run's task was lost with
        self._waiting: deque[Task] = deque()
        self._results: deque[Done] = deque()
        # What is to be done by the thread that uses this, in view of what has happened.
        self._events: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._fetching = ThreadPoolExecutor(_FETCHES)
        self._looked_at = -_LOOK_S
        self._published: set[str] = set()
        self._use = Use()
        self._here = Installation.here(self._use)
        self._guests: Guests | None = None
        _silence()
        self._client, self.address = connected(address)

    def close(self) -> None:
        """Leaves the cluster; what goes on there for this client ends."""
        self._fetching.shutdown(wait=False, cancel_futures=True)
        with suppress(Exception):  # it may have gone
            self._client.close(timeout=5)

    @property
    def dashboard(self) -> str | None:
        """The address of Dask's dashboard, if the scheduler has one."""
        services = self._ask(self._client.scheduler_info)["services"]
        return str(self._client.dashboard_link) if "dashboard" in services else None

    @property
    def threads(self) -> int:
        """So many tasks go on at a time."""
        return sum(worker.threads for worker in self._ready())

    def in_words(self) -> str:
        """The workers that are used now, for people."""
        workers = self._ready()
        threads = f" with {self.threads} threads" if self.threads > len(workers) else ""
        return f"{count_of(len(workers), 'worker')}{threads}"

    def require_workers(self, use: Use | None = None, guests: Guests | None = None) -> None:
        """Waits until each worker that is there is found fit for `use` or not; None: for reading
        captures. Raises InputError if none is fit, Interrupted, Gone."""
        self._use, self._guests = use or Use(), guests
        self._here = Installation.here(self._use)
        self._check_scheduler()
        begun = time.monotonic()
        is_said = False
        while True:
            self._turn()
            waited_s = time.monotonic() - begun
            new = [worker for worker in self._workers.values() if worker.is_new]
            if self._workers and not new:
                break
            if waited_s > _ALL_ANSWER_S and self._ready():
                self.say(f"{count_of(len(new), 'worker')} not used yet: no answer")
                break
            limit_s = max(self._patience_s, _BUSY_S) if new else self._patience_s
            longer = "to wait longer, set DASK_NAGI__WAIT_FOR_WORKERS, such as 10min"
            if waited_s > limit_s and new:
                raise refuse(
                    f"{count_of(len(new), 'worker')} of {self.address}, and no answer in "
                    f"{limit_s:.0f} s: busy with something else",
                    f"give the same command when that is over; {longer}",
                )
            if waited_s > limit_s:
                raise refuse(
                    f"no worker has come to {self.address} in {limit_s:.0f} s",
                    f"start one: {_start_worker(self.address)}; {longer}",
                )
            if not is_said and (not new or waited_s > _ALL_ANSWER_S):
                for_what = "an answer of workers" if new else "workers"
                self.say(f"waiting up to {limit_s:.0f} s for {for_what} of {self.address}")
                is_said = True
        if not self._ready():
            raise refuse(
                f"{self.address} has no worker that can be used",
                "mend what is said above, then give the same command again",
            )

    def each(self, wanted: Sequence[Task]) -> Iterator[Done]:
        """Has all tasks done, and yields what becomes of them as they end. Raises Gone if the
        cluster goes away, Interrupted."""
        self._waiting.extend(wanted)
        left = len(wanted)
        last_ready = time.monotonic()
        try:
            while left:
                self._turn()
                while self._results:
                    left -= 1
                    yield self._results.popleft()
                if self._ready():
                    last_ready = time.monotonic()
                elif time.monotonic() - last_ready > self._patience_s:
                    raise Gone(
                        f"{self.address} has had no worker that can be used for "
                        f"{self._patience_s:.0f} s; start one: {_start_worker(self.address)}"
                    )
        finally:
            self._drop_all()

    def _ready(self) -> list[_Worker]:
        return [worker for worker in self._workers.values() if worker.is_ready]

    def _turn(self) -> None:
        """Looks who is there, gives out tasks, and waits a little for what happens."""
        if self._interrupted():
            raise Interrupted
        if time.monotonic() - self._looked_at >= _LOOK_S:
            self._look()
            self._looked_at = time.monotonic()
        for worker in self._ready():
            while self._waiting and worker.is_free:
                self._give(self._waiting.popleft(), worker)
        with suppress(Empty):
            self._events.get(timeout=_LOOK_S / 5)()
            while True:
                self._events.get_nowait()()

    def _ask(self, question: Callable[[], Any]) -> Any:
        """What the client is told by the scheduler. Raises Gone."""
        if self._client.status == "running":
            with suppress(OSError, RuntimeError):  # as when it goes just now
                return question()
        raise Gone(f"the scheduler at {self.address} is gone")

    def _look(self) -> None:
        """Notes who has come and who is lost."""
        threads: dict[str, int] = self._ask(self._client.nthreads)
        for address in self._workers.keys() - threads.keys():
            self._lose(self._workers.pop(address))
        if new := threads.keys() - self._workers.keys():
            known = self._ask(self._client.scheduler_info)["workers"]
            for address in sorted(new & known.keys()):
                worker = _Worker(address, str(known[address]["name"]), threads[address])
                self._workers[address] = worker
                sums = self._guests.sums if self._guests else []
                self._inquire(
                    worker, self._examined, "nagi-examine", tasks.examine, self._use, sums
                )

    def _submit(
        self, worker: _Worker, name: str, function: Callable[..., Any], *arguments: Any
    ) -> _Future:
        """`function` is done by this worker or not at all."""
        return self._client.submit(
            function,
            *arguments,
            key=f"{name}-{uuid.uuid4()}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
        )

    def _when_over(self, future: _Future, do: Callable[[_Future], None]) -> None:
        future.add_done_callback(lambda over: self._events.put(partial(do, over)))

    def _inquire(
        self,
        worker: _Worker,
        then: Callable[[_Worker, Any], None],
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
    ) -> None:
        """Asks a new worker something; `then` is told its answer."""

        def over(future: _Future) -> None:
            worker.inquiry = None
            if future.status == "finished":
                with suppress(OSError, CancelledError):  # it is lost, or late: see _look()
                    then(worker, future.result(timeout=_ANSWER_S))
            elif future.status == "error":
                error = future.exception()
                if isinstance(error, ImportError | AttributeError):
                    what = f"it has no nagi, or another one ({error})"
                    self._leave_out(worker, what, _SAME_BUILD)
                elif error is not None:
                    self._leave_out(worker, _in_words(error), _MEND)

        worker.inquiry = self._ask(lambda: self._submit(worker, name, function, *arguments))
        self._when_over(worker.inquiry, over)

    def _examined(self, worker: _Worker, answer: tuple[Any, ...]) -> None:
        parts, machine, missing, problem = answer
        if problem:
            what, _, cure = problem.partition("; ")
            return self._leave_out(worker, what, cure)
        if found := differences(self._here.parts, parts):
            return self._leave_out(worker, f"it has another build: {', '.join(found)}", _SAME_BUILD)
        if found := differences(self._here.machine, machine):
            self.say(
                f"worker {worker} has another {', '.join(found)} than this machine: captures of "
                "its runs may differ in bytes"
            )
        if self._guests is None:
            return self._admit(worker, "")
        for index in missing:
            self._publish(index)
        arguments = self._guests.sums, self._guests.plan.model_dump_json()
        self._inquire(worker, self._admit, "nagi-prepare", tasks.prepare, *arguments)
        return None

    def _publish(self, index: int) -> None:
        """Gives a set of files to the scheduler, once."""
        assert self._guests is not None
        key = key_of(self._guests.sums[index])
        if key not in self._published:
            files = self._guests.sets[index]
            archive = packed(files[0].parent, files)
            variable = Variable(tasks.variable_of(key), client=self._client)
            self._ask(lambda: variable.set(archive))
            self._published.add(key)

    def _admit(self, worker: _Worker, problem: str) -> None:
        if problem:
            return self._leave_out(worker, f"a guest does not work there: {problem}", _MEND)
        worker.is_new, worker.is_ready = False, True
        return None

    def _leave_out(self, worker: _Worker, what: str, cure: str) -> None:
        worker.is_new = worker.is_ready = False
        self.say(f"worker {worker} is left out: {what}; {cure}")

    def _give(self, task: Task, worker: _Worker) -> None:
        def submit() -> _Future:
            files: list[Any] = []
            if task.files is not None:
                # By the scheduler, as this machine may not reach workers.
                to = {"workers": [worker.address], "hash": False, "direct": False}
                files.append(self._client.scatter(task.files(), **to))
            return self._submit(worker, task.name, task.function, *task.arguments, *files)

        try:
            future = self._ask(submit)
        except Gone:
            self._waiting.appendleft(task)
            raise
        worker.underway[future] = task
        self._when_over(future, partial(self._over, worker))

    def _over(self, worker: _Worker, future: _Future) -> None:
        """A task has ended, one way or another."""
        task = worker.underway.pop(future, None)
        if task is None:  # it was dropped
            return
        if future.status == "finished":
            worker.fetched[future] = task
            fetching = self._fetching.submit(future.result)
            fetching.add_done_callback(
                lambda over: self._events.put(partial(self._fetched, worker, future, over))
            )
            return
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, KilledWorker | Interrupted):
            self._again(task)
        elif isinstance(error, OSError):
            self._leave_out(worker, _in_words(error), _MEND)
            self._again(task)
        else:
            self._results.append(Done(task, b"", f"worker {worker}: {_in_words(error)}"))

    def _fetched(
        self, worker: _Worker, future: _Future, fetching: concurrent.futures.Future[tasks.Outcome]
    ) -> None:
        task = worker.fetched.pop(future, None)
        if task is None:
            return
        if fetching.cancelled() or fetching.exception() is not None:
            self._again(task)
        else:
            files, why = fetching.result()
            self._results.append(Done(task, files, why))
        future.release()

    def _lose(self, worker: _Worker) -> None:
        lost = {**worker.underway, **worker.fetched}
        worker.underway.clear()
        worker.fetched.clear()
        self._cancel([*lost, *([worker.inquiry] if worker.inquiry else [])])
        if worker.is_ready:
            went = f"; {count_of(len(lost), 'run')} of it done by others" if lost else ""
            self.say(f"worker {worker} is gone{went}")
        for task in lost.values():
            self._again(task)

    def _again(self, task: Task) -> None:
        """Has a task done by another worker, unless it seems to be what ends them."""
        self._lost[task.run_id] += 1
        if self._lost[task.run_id] < _MAX_LOST:
            self._waiting.appendleft(task)
        else:
            why = f"{_MAX_LOST} workers were lost that did it"
            self._results.append(Done(task, b"", why))

    def _drop_all(self) -> None:
        """Forgets all tasks."""
        self._waiting.clear()
        self._results.clear()
        for worker in self._workers.values():
            self._cancel([*worker.underway, *worker.fetched])
            worker.underway.clear()
            worker.fetched.clear()

    def _cancel(self, futures: list[_Future]) -> None:
        if futures and self._client.status == "running":
            with suppress(OSError, RuntimeError):
                self._client.cancel(futures)

    def _check_scheduler(self) -> None:
        """Raises InputError if the scheduler's Python is not one that takes nagi's tasks."""
        cure = "start it from an environment that has the nagi that is used here"
        try:
            found = self._ask(lambda: self._client.run_on_scheduler(Installation.here, Use()))
        except (ImportError, AttributeError) as error:
            raise refuse(
                f"the scheduler at {self.address} has no nagi, or another one ({error})", cure
            ) from None
        mine = {name: self._here.parts[name] for name in found.parts}
        if differ := differences(mine, found.parts):
            what = f"the scheduler at {self.address} has another build: {', '.join(differ)}"
            raise refuse(what, cure)


def _silence() -> None:
    """What goes wrong with the cluster is said by nagi. Dask has given its loggers levels."""
    of_dask = ("distributed", "tornado", "asyncio")
    for name in (*of_dask, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in of_dask:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _patience_s() -> float:
    """Raises InputError."""
    given = dask.config.get(_SETTING, _DEFAULT)
    try:
        return float(parse_timedelta(given))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise refuse(
            f"Dask's setting {_SETTING} is {excerpt(str(given))}", "write such as 10min"
        ) from None


def _start_worker(address: str) -> str:
    return f"`dask worker {address} --nthreads 1 --dashboard-address 127.0.0.1:0`"


def _in_words(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
