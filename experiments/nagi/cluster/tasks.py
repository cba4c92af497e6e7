# SPDX-License-Identifier: Apache-2.0
"""What workers of a cluster do. Each function is one of its arguments alone; arguments and results
are texts, bytes and numbers.
"""

from __future__ import annotations

import atexit
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from distributed import Variable, Worker, get_client, get_worker
from nagi_contracts.errors import InputError
from nagi_contracts.plan import RunPlan
from nagi_contracts.records import Build, Keep
from nagi_reports import analysis

from nagi.campaign.one_run import run_one
from nagi.cluster.content import Sums, files_of, has, kept, packed, unpack
from nagi.cluster.installation import Installation, Use
from nagi.labs import guest
from nagi.labs.errors import Unfit
from nagi.labs.shape import Shape
from nagi.labs.virtual import Parts, VirtualLab, unpacked_agent
from nagi.scratch import make_scratch

_FETCH_TIMEOUT_S = 60
# What comes of a run: files, or why there are none.
Outcome = tuple[bytes, str]


def variable_of(key: str) -> str:
    """The variable in which the scheduler has a set of files."""
    return f"nagi-{key}"


def examine(use: Use, wanted: list[Sums]) -> tuple[dict[str, str], dict[str, str], list[int], str]:
    """What is installed here (Installation), which of the sets of files are not here yet, and what
    keeps this machine from running guests; empty if nothing does."""
    try:
        found = Installation.here(use)
        if use.guests:
            guest.require_machine()
    except InputError as error:
        return {}, {}, [], str(error)
    missing = [index for index, sums in enumerate(wanted) if not has(sums)]
    return found.parts, found.machine, missing, ""


def prepare(wanted: list[Sums], plan: str) -> str:
    """Fetches sets of files, of which the first has the kernel, then asks a guest what would keep
    it from running `plan`; empty if nothing does."""
    for sums in wanted:
        kept(sums, _fetch)
    read = RunPlan.model_validate_json(plan)
    with make_scratch(_here()) as directory, _processor() as processor:
        lab = VirtualLab(
            Shape.of(read),
            1,
            directory,
            directory / "records",
            _is_cancelled(get_worker()),
            parts=_parts(wanted[0], {}, processor),
        )
        try:
            lab.prepare([read])
        except Unfit as error:
            return str(error)
    return ""


def run(plan: str, build: str, keep: str, library: Sums, own: dict[str, Sums]) -> Outcome:
    """Does a run in a guest whose kernel is in the set `library`; `own`: modules of users' own
    schemes, by the names of their congestion controls."""
    cancelled = _is_cancelled(get_worker())
    with make_scratch(_here()) as directory, _processor() as processor:
        done = run_one(
            RunPlan.model_validate_json(plan),
            Build.model_validate_json(build),
            Keep.model_validate_json(keep),
            _parts(library, own, processor),
            directory,
            cancelled,
        )
        return (b"", done) if isinstance(done, str) else (packed(done, files_of(done)), "")


def analyse(archive: bytes) -> Outcome:
    """The files that metrics of a run directory are in, or why there are none."""
    with make_scratch(_here()) as directory:
        run = directory / "run"
        unpack(archive, run)
        try:
            analysis.analyse_run(run)
        except InputError as error:
            return b"", str(error).replace(f"{run}/", "")
        written = [run / name for name in (analysis.METRICS, analysis.GOODPUT)]
        return packed(run, [file for file in written if file.exists()]), ""


def _parts(library: Sums, own: dict[str, Sums], processor: int) -> Parts:
    modules = {name: kept(sums, _fetch) / next(iter(sums)) for name, sums in own.items()}
    return Parts(kept(library, _fetch), lambda _: modules, [processor], _agent())


def _fetch(key: str) -> bytes:
    """Files that the client has given to the scheduler."""
    found: Any = Variable(variable_of(key), client=get_client()).get(timeout=_FETCH_TIMEOUT_S)
    return bytes(found)


def _here() -> Path:
    """Where this worker may have files of its own."""
    return Path(get_worker().local_directory)


@cache
def _agent() -> Path:
    """The agent, made once a process."""
    files = ExitStack()
    atexit.register(files.close)
    return unpacked_agent(files.enter_context(make_scratch(_here())))


def _is_cancelled(worker: Worker) -> Callable[[], bool]:
    """Whether nobody wants this task any more: its client has gone or cancelled it, or the worker
    is to end."""
    key = worker.get_current_task()

    def look() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name not in _AT_WORK

    return look


_AT_WORK = ("running", "paused")


@contextmanager
def _processor() -> Iterator[int]:
    """A processor on which no other worker of this machine has a guest, if there is one. It is held
    by an abstract socket, of which the kernel lets go however this process ends."""
    with socket.socket(socket.AF_UNIX) as held:
        yield _claim(held, guest.processors())


def _claim(held: socket.socket, processors: list[int]) -> int:
    for processor in processors:
        with suppress(OSError):  # it is held by another
            held.bind(f"\0nagi-processor-{processor}")
            return processor
    return processors[os.getpid() % len(processors)]
