# SPDX-License-Identifier: Apache-2.0
"""The functions that workers of a cluster execute.

The result of each function depends on its arguments alone. Arguments and results are texts, bytes
and numbers.
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
from nagi.cluster.content import Sums, ensure_files, has_files, list_files, pack, unpack
from nagi.cluster.installation import Installation, Requirements
from nagi.labs import guest
from nagi.labs.errors import Unfit
from nagi.labs.shape import Shape
from nagi.labs.virtual import GuestParts, VirtualLab, unpack_agent
from nagi.scratch import make_scratch

_FETCH_TIMEOUT_S = 60
_ACTIVE_STATES = ("running", "paused")  # of a worker that does not shut down
# An archive of files and an empty text, or no files and the reason.
Outcome = tuple[bytes, str]


def make_variable_name(key: str) -> str:
    """Return the name of the scheduler's variable that stores a set of files."""
    return f"nagi-{key}"


def examine(
    requirements: Requirements, sets: list[Sums]
) -> tuple[dict[str, str], dict[str, str], list[int], str]:
    """Examine the worker's machine.

    Args:
        requirements: what the machine has to fulfil
        sets: the checksums of the sets of files that guests need

    Returns:
        parts and machine of the Installation, the indices of the sets that are missing here, and
        what keeps this machine from running guests, or an empty text
    """
    try:
        installation = Installation.from_this_machine(requirements)
        if requirements.guests:
            guest.require_machine()
    except InputError as error:
        return {}, {}, [], str(error)
    missing = [index for index, sums in enumerate(sets) if not has_files(sums)]
    return installation.parts, installation.machine, missing, ""


def prepare(sets: list[Sums], plan: str) -> str:
    """Fetch sets of files, and try whether a guest can execute a plan.

    Args:
        sets: the checksums of the sets; the first set has the kernel
        plan: a RunPlan as JSON

    Returns:
        what keeps a guest from executing the plan, or an empty text
    """
    for sums in sets:
        ensure_files(sums, _fetch_files)
    run_plan = RunPlan.model_validate_json(plan)
    with make_scratch(_find_worker_directory()) as directory, _reserve_processor() as processor:
        lab = VirtualLab(
            Shape.from_plan(run_plan),
            1,
            directory,
            directory / "records",
            _make_cancel_check(get_worker()),
            parts=_make_parts(sets[0], {}, processor),
        )
        try:
            lab.prepare([run_plan])
        except Unfit as error:
            return str(error)
    return ""


def run(plan: str, build: str, keep: str, library: Sums, modules: dict[str, Sums]) -> Outcome:
    """Execute a run in a guest, and return its run directory.

    Args:
        plan: the RunPlan as JSON
        build: the Build as JSON
        keep: the Keep as JSON, which lists the files of the run that are kept
        library: the checksums of the set that has the kernel
        modules: the checksums of the modules of users' own schemes, by congestion control
    """
    interrupted = _make_cancel_check(get_worker())
    with make_scratch(_find_worker_directory()) as directory, _reserve_processor() as processor:
        run_or_reason = run_one(
            RunPlan.model_validate_json(plan),
            Build.model_validate_json(build),
            Keep.model_validate_json(keep),
            _make_parts(library, modules, processor),
            directory,
            interrupted,
        )
        return (
            (b"", run_or_reason)
            if isinstance(run_or_reason, str)
            else (pack(run_or_reason, list_files(run_or_reason)), "")
        )


def analyse(archive: bytes) -> Outcome:
    """Compute the metrics of a run directory, and return the files that contain them.

    Args:
        archive: the run directory, as `content.pack()` packs it
    """
    with make_scratch(_find_worker_directory()) as directory:
        run = directory / "run"
        unpack(archive, run)
        try:
            analysis.analyse_run(run)
        except InputError as error:
            return b"", str(error).replace(f"{run}/", "")
        files = [run / name for name in (analysis.METRICS, analysis.GOODPUT)]
        return pack(run, [path for path in files if path.exists()]), ""


def _make_parts(library: Sums, own: dict[str, Sums], processor: int) -> GuestParts:
    modules = {
        name: ensure_files(sums, _fetch_files) / next(iter(sums)) for name, sums in own.items()
    }
    return GuestParts(
        ensure_files(library, _fetch_files), lambda _: modules, [processor], _unpack_agent()
    )


def _fetch_files(key: str) -> bytes:
    """Return the archive that the client has stored at the scheduler under a key."""
    archive: Any = Variable(make_variable_name(key), client=get_client()).get(
        timeout=_FETCH_TIMEOUT_S
    )
    return bytes(archive)


def _find_worker_directory() -> Path:
    """Return the directory for files of this worker."""
    return Path(get_worker().local_directory)


@cache
def _unpack_agent() -> Path:
    """Return the directory of the agent, which is unpacked once per process."""
    cleanup = ExitStack()
    atexit.register(cleanup.close)
    return unpack_agent(cleanup.enter_context(make_scratch(_find_worker_directory())))


def _make_cancel_check(worker: Worker) -> Callable[[], bool]:
    """Return a predicate that is true when the current task must be interrupted.

    This is when the client has cancelled the task or is gone, or when the worker shuts down.
    """
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name not in _ACTIVE_STATES

    return is_cancelled


@contextmanager
def _reserve_processor() -> Iterator[int]:
    """Yield a processor on which no other worker of this machine has a guest, if there is one.

    An abstract socket reserves it: the kernel closes the socket however this process ends.
    """
    with socket.socket(socket.AF_UNIX) as reservation:
        yield _bind_processor(reservation, guest.list_processors())


def _bind_processor(reservation: socket.socket, processors: list[int]) -> int:
    for processor in processors:
        with suppress(OSError):  # another worker has reserved it
            reservation.bind(f"\0nagi-processor-{processor}")
            return processor
    return processors[os.getpid() % len(processors)]
