# SPDX-License-Identifier: Apache-2.0
"""The functions that workers of a cluster execute.

The result of a function depends only on its arguments and the worker's machine. Arguments and
results are texts, bytes and numbers, in tuples, lists and dictionaries.
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
from nagi.labs.guest_agent import unpack_agent
from nagi.labs.shape import Shape
from nagi.labs.virtual import GuestParts, VirtualLab
from nagi.scratch import make_scratch

_FETCH_TIMEOUT_S = 60
_ACTIVE_STATES = ("running", "paused")  # of a worker that does not shut down
# An archive of files and an empty text; or an empty archive and the reason of the failure.
Outcome = tuple[bytes, str]


def make_variable_name(key: str) -> str:
    """Return the name of the scheduler's variable that stores the set of files with this key."""
    return f"nagi-{key}"


def examine(
    requirements: Requirements, sets: list[Sums]
) -> tuple[dict[str, str], dict[str, str], list[int], str]:
    """Examine the worker's machine.

    Args:
        requirements: The requirements of the worker's machine.
        sets: The checksums of each set of files that guests need.

    Returns:
        `parts` and `guest_programs` of the Installation; the indices of the sets that the worker's
        machine does not store; and the reason why the machine does not fulfil the requirements, or
        "". With a reason, the other three values are empty.
    """
    try:
        installation = Installation.from_this_machine(requirements)
        if requirements.runs_guests:
            guest.require_machine()
    except InputError as error:
        return {}, {}, [], str(error)
    missing = [index for index, sums in enumerate(sets) if not has_files(sums)]
    return installation.parts, installation.guest_programs, missing, ""


def prepare(sets: list[Sums], plan: str) -> str:
    """Fetch sets of files, and boot a guest that checks whether it can execute a plan.

    Args:
        sets: The checksums of each set; the first set has the kernel.
        plan: A RunPlan as JSON.

    Returns:
        The reason why a guest cannot execute the plan, or "".
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
    """Execute a run in a guest, and return (archive of its run directory, "") or (b"", reason).

    The reason says why the run failed.

    Args:
        plan: The RunPlan as JSON.
        build: The Build as JSON.
        keep: The Keep as JSON, which lists the files of the run that are kept.
        library: The checksums of the set that has the kernel.
        modules: Congestion control of a user's scheme -> checksums of a set that has its module.
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
    """Compute the metrics of a run directory.

    The result is an archive of the files with the metrics and an empty text; or, after a failure,
    an empty archive and the reason.

    Args:
        archive: The run directory, as `content.pack()` packs it.
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


def _make_parts(library: Sums, user_modules: dict[str, Sums], processor: int) -> GuestParts:
    """Fetch the files of guests that this machine does not store, and return the parts of a guest.

    Args:
        library: The checksums of the set that has the kernel.
        user_modules: Congestion control of a user's scheme -> checksums of a set that has its
            module.
        processor: The processor that executes the guest.
    """
    modules = {
        name: ensure_files(sums, _fetch_files) / next(iter(sums))
        for name, sums in user_modules.items()
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
    """Return a function that returns whether the current task must be interrupted.

    A task must be interrupted if the client has cancelled it or is gone, or if the worker shuts
    down.
    """
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled" or worker.status.name not in _ACTIVE_STATES

    return is_cancelled


@contextmanager
def _reserve_processor() -> Iterator[int]:
    """Yield a processor on which no other worker of this machine has a guest, if there is one.

    A bound abstract socket reserves the processor. The kernel closes this socket at the end of the
    process, even if the process is killed.
    """
    with socket.socket(socket.AF_UNIX) as reservation:
        yield _bind_processor(reservation, guest.list_processors())


def _bind_processor(reservation: socket.socket, processors: list[int]) -> int:
    """Reserve the first free processor by binding `reservation`, and return this processor.

    If other workers have reserved all processors, return one of them.
    """
    for processor in processors:
        with suppress(OSError):  # another worker has reserved it
            reservation.bind(f"\0nagi-processor-{processor}")
            return processor
    return processors[os.getpid() % len(processors)]
