# SPDX-License-Identifier: Apache-2.0
"""The virtual lab: hosts, routers and emulator as network namespaces of a guest, in virtual time.

Each run boots its own guest (guest.py). A cell is a processor, which executes one guest at a time.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from queue import Empty, Queue
from types import MappingProxyType
from typing import NamedTuple

from nagi_contracts import paths
from nagi_contracts.errors import excerpt
from nagi_contracts.guest import (
    Action,
    GuestAnswer,
    GuestInterface,
    GuestJob,
    GuestModule,
    GuestNode,
    Veth,
)
from nagi_contracts.plan import CommandFile, RunPlan

from nagi.labs import guest, guest_kernel
from nagi.labs.errors import Unfit
from nagi.labs.guest import Guest
from nagi.labs.guest_agent import unpack_agent
from nagi.labs.guest_modules import build_user_modules
from nagi.labs.inventory import (
    describe_interfaces,
    list_veth_pairs,
    make_host_name,
    make_netns_placements,
)
from nagi.labs.lab import LocalLabs, schedule
from nagi.labs.names import VIRTUAL
from nagi.labs.programs import list_guest_mounts, list_guest_programs
from nagi.labs.shape import Shape

# The time by the guest's clock from its boot to the start of the first run. Idle time costs no wall
# time.
_LEAD_S = 30.0
_CHECK_LIMIT_S = 60.0
_JOB, _ANSWER, _SPOOL = "job.json", "answer.json", "spool"
_SECCOMP_CURE = "; permit seccomp(2) and ptrace(2) (containers: --security-opt seccomp=unconfined)"
# If a guest ends without an answer and less disk space than this is free, the disk was full.
_FULL_BYTES = 4 << 20
# The name of the cell in every guest, so that the files of a guest do not depend on its cell.
_CELL_IN_GUEST = "guest"


class GuestTimeLimit(NamedTuple):
    """The wall time after which the guest of a run is killed."""

    minimum_s: float = 120.0
    per_virtual_second_s: float = 20.0  # per second of the run's timeline

    def compute_seconds(self, plan: RunPlan) -> float:
        """Return the limit of a run, in seconds of wall time."""
        return self.minimum_s + self.per_virtual_second_s * plan.timeline.end_s


TIME_LIMIT = GuestTimeLimit()


@dataclass(frozen=True)
class GuestParts:
    """The files and processors that guests use, in addition to executables.

    Attributes:
        library: The directory with kernel, nagi's modules and the preloaded library.
        find_user_modules: A function that returns the modules of users' schemes that a plan needs,
            by congestion control.
        processors: The processors that execute guests.
        agent: The directory with the agent's sources, or None if the lab makes it.
    """

    library: Path
    find_user_modules: Callable[[RunPlan], dict[str, Path]]
    processors: list[int]
    agent: Path | None = None

    @classmethod
    def from_this_machine(cls) -> GuestParts:
        """Return the parts that are installed on this machine."""
        return cls(
            guest_kernel.find_kernel_directory(), build_user_modules, guest.list_processors()
        )


class VirtualLab:
    """A lab that executes guests side by side, for runs of one shape. It implements `Lab`."""

    in_real_time = False

    def __init__(
        self,
        shape: Shape,
        cells: int,
        directory: Path,
        records: Path,
        interrupted: Callable[[], bool],
        limit: GuestTimeLimit = TIME_LIMIT,
        parts: GuestParts | None = None,
    ) -> None:
        """Unpack the agent, unless `parts` has its directory.

        Args:
            shape: The shape of the runs.
            cells: The number of cells. Each cell executes one guest at a time.
            directory: The directory of the lab.
            records: The directory of records.
            interrupted: A function that returns whether the user asked to stop.
            limit: The limits of wall time.
            parts: The files and processors of guests; by default, those of this machine.
        """
        self._parts = parts or GuestParts.from_this_machine()
        processors = self._parts.processors
        self._processors = {
            f"cell{index}": processors[index % len(processors)] for index in range(cells)
        }
        self._shape = shape
        self._directory = directory
        self._records = records
        self._interrupted = interrupted
        self._limit = limit
        self._agent = self._parts.agent or unpack_agent(directory)

    @property
    def cells(self) -> list[str]:
        return list(self._processors)

    def estimate_lead_s(self) -> float:
        return 0.0

    def prepare(self, plans: list[RunPlan]) -> None:
        """Boot a guest, in which the agents of all nodes check that they can execute `plans`.

        Raises:
            Unfit: The guest does not work, or an agent cannot execute the plans.
        """
        cell = self.cells[0]
        directory = self._make_directory("check")
        job = self._make_job("check", plans)
        error = self._boot(directory, job, 0, cell, _CHECK_LIMIT_S)
        if error is not None:
            cure = _SECCOMP_CURE if "SECCOMP" in error else ""
            raise Unfit(f"a guest of the virtual lab does not work here: {error}{cure}")
        problems = _read_problems(directory)
        shutil.rmtree(directory, ignore_errors=True)
        if problems:
            raise Unfit(problems)

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Execute plans as `Lab` states, but let a free cell take the next plan of any cell."""
        pending: Queue[RunPlan] = Queue()
        for next_plans_of_cells in zip_longest(*plans.values()):
            for plan in filter(None, next_plans_of_cells):
                pending.put(plan)

        def run_pending(cell: str) -> dict[str, str]:
            """Execute runs in `cell` until none is pending, and return run ID -> error."""
            failures = {}
            with suppress(Empty):
                while True:
                    plan = pending.get_nowait()
                    error = self._run(plan, cell)
                    if error is not None:
                        failures[plan.run_id] = error
            return failures

        with ThreadPoolExecutor(len(plans)) as pool:
            results = [pool.submit(run_pending, cell) for cell in plans]
        return {run_id: error for result in results for run_id, error in result.result().items()}

    def _run(self, plan: RunPlan, cell: str) -> str | None:
        """Execute a run in `cell`, and move its records to the records directory.

        Returns:
            The reason why the run failed, or None if it succeeded. After a failure of the guest,
            the file make_console_path() has the guest's console.
        """
        directory = self._make_directory(plan.run_id)
        job = self._make_job("run", [plan])
        limit_s = self._limit.compute_seconds(plan)
        modules = self._parts.find_user_modules(plan)
        module_directories = {
            _locate_user_module(name): module.parent for name, module in modules.items()
        }
        error = self._boot(directory, job, plan.seed, cell, limit_s, module_directories)
        for node in job.nodes:
            records = directory / _SPOOL / make_host_name(_CELL_IN_GUEST, node) / plan.run_id
            if records.exists():
                target = self._records / make_host_name(cell, node) / plan.run_id
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                records.chmod(0o755)
                records.rename(target)
        if error is None:
            error = _read_problems(directory) or None
        else:
            _keep_console(directory, make_console_path(self._records, plan))
        shutil.rmtree(directory, ignore_errors=True)
        return error

    def _make_directory(self, name: str) -> Path:
        """Make an empty directory for a guest. An earlier directory of the same name is removed.

        The parent directory is closed to other users of this machine (mode 0700), because parts of
        the guest's directory are writable by every user in the guest.
        """
        guests = self._directory / "guests"
        guests.mkdir(parents=True, exist_ok=True)
        guests.chmod(0o700)
        directory = guests / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory

    def _boot(
        self,
        directory: Path,
        job: GuestJob,
        seed: int,
        cell: str,
        limit_s: float,
        modules: Mapping[Path, Path] = MappingProxyType({}),
    ) -> str | None:
        """Boot a guest and wait for its answer.

        Args:
            directory: The directory of the guest.
            job: The job that the guest executes.
            seed: The seed of the guest's random numbers.
            cell: The cell, whose processor executes the guest.
            limit_s: The maximum wall time, in seconds.
            modules: Path in the guest -> directory of the host with modules of users' schemes.

        Returns:
            The error of the guest, or None if the guest wrote its answer and left only plain files.

        Raises:
            OSError: The disk is full.
        """
        job.write(directory / _JOB)
        # All nodes have the same plans.
        plans = [run.plan for run in next(iter(job.nodes.values())).batch.runs]
        for node in job.nodes:
            (directory / _SPOOL / make_host_name(_CELL_IN_GUEST, node)).mkdir(parents=True)
        mounts = {
            guest.LIBRARY: self._parts.library,
            guest.AGENT: self._agent,
            guest.NAGI_LINK: paths.executable("nagi-link"),
            **modules,
            **list_guest_mounts(plans),
            **{make_guest_path(file): file.source for plan in plans for file in plan.files()},
        }
        script = f"exec /usr/bin/python3 -I -S {guest.AGENT} guest {guest.WRITABLE / _JOB}"
        memory_mib = guest.choose_memory_mib(len(self._shape.nodes))
        run_guest = Guest(directory, mounts, script, seed, self._processors[cell], memory_mib)
        exit_ = run_guest.run(limit_s, self._interrupted)
        if exit_.removed:
            names = ", ".join(map(excerpt, exit_.removed[:3]))
            return f"a program in the guest left records that are not plain files: {names}"
        if exit_.stuck:
            return (
                "the guest was ended, because it recorded nothing for "
                f"{guest.STUCK_PROCESSOR_S:.0f} s of processor time: its clock stands still while "
                f"a scheme or a program never sleeps; its console: {exit_.console}"
            )
        if not exit_.in_time:
            return f"the guest was ended after {limit_s:.0f} s; its console: {exit_.console}"
        if (directory / _ANSWER).exists():
            return None
        if shutil.disk_usage(directory).free < _FULL_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))
        return f"the guest ended early; its console: {exit_.console}"

    def _make_job(self, action: Action, plans: list[RunPlan]) -> GuestJob:
        """Return the job of a guest that checks (`check`) or executes (`run`) plans."""
        runs = list(schedule(plans))
        changes = {
            "virtual": True,
            "files": {
                file.key: str(make_guest_path(file)) for plan in plans for file in plan.files()
            },
        }
        placements = make_netns_placements(
            self._shape,
            [_CELL_IN_GUEST],
            guest.WRITABLE / _SPOOL,
            Path("/run/nagi"),
            guest.NAGI_LINK,
            list_guest_programs,
        )
        nodes = {
            placement.node: GuestNode(
                interfaces=[
                    GuestInterface.model_validate(interface)
                    for interface in describe_interfaces(
                        self._shape, placement.node, placement.interfaces
                    )
                ],
                batch=placement.make_batch(runs, []).model_copy(update=changes),
            )
            for placement in placements
        }
        return GuestJob(
            action=action,
            veths=[
                Veth(node=interface.node, name=interface.link, mac=interface.mac, peer=peer)
                for interface, peer in list_veth_pairs(self._shape)
            ],
            modules=self._list_modules(plans) if action == "run" else [],
            nodes=nodes,
            start_at=guest.BOOT_S + _LEAD_S,
            answer=str(guest.WRITABLE / _ANSWER),
        )

    def _list_modules(self, plans: list[RunPlan]) -> list[GuestModule]:
        """Return the kernel modules of the schemes in `plans`, with the parameters of modules."""
        user_modules = {name for plan in plans for name in self._parts.find_user_modules(plan)}
        objects = {
            name: scheme_object
            for plan in plans
            for flow in plan.flows
            for name, scheme_object in flow.objects().items()
        }
        return [
            GuestModule(
                file=str(
                    (_locate_user_module(name) if name in user_modules else guest.LIBRARY)
                    / f"{name}.ko"
                ),
                parameters=scheme_object.parameters,
            )
            for name, scheme_object in objects.items()
        ]


class VirtualLabs(LocalLabs):
    """Makes virtual labs on this machine. It implements `Labs`."""

    name = VIRTUAL

    def __init__(
        self,
        directory: Path,
        records: Path,
        interrupted: Callable[[], bool],
        limit: GuestTimeLimit = TIME_LIMIT,
    ) -> None:
        super().__init__(directory, records, interrupted)
        self._limit = limit

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[VirtualLab]:
        """Make a lab with `jobs` cells, or with fewer if there are fewer plans."""
        yield VirtualLab(
            shape,
            min(jobs, len(plans)),
            self._directory,
            self._records,
            self._interrupted,
            self._limit,
        )


def count_jobs(plans: list[RunPlan]) -> int:
    """Return how many guests run side by side: one per processor, or fewer if memory is scarce."""
    return max(
        1,
        min(
            len(guest.list_processors()),
            guest.read_free_memory_mib() // _estimate_memory_mib(plans),
        ),
    )


def require_memory_for(plans: list[RunPlan]) -> None:
    """Raise InputError if this machine lacks memory for the plan with most nodes."""
    guest.require_memory(_estimate_memory_mib(plans), guest.read_free_memory_mib())


def _estimate_memory_mib(plans: list[RunPlan]) -> int:
    """Return the memory that the guest of the plan with most nodes uses, in MiB."""
    return guest.estimate_memory_mib(max((len(plan.nodes) for plan in plans), default=0))


def make_console_path(records: Path, plan: RunPlan) -> Path:
    """Return the file for the console of a run whose guest failed."""
    return records / "consoles" / f"{plan.run_id}.log"


def _keep_console(directory: Path, target: Path) -> None:
    """Copy the console of a guest to the file `target`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(directory / guest.CONSOLE, target)


def _read_problems(directory: Path) -> str:
    """Return the problems that a guest's nodes reported, as one text; "" if there are none."""
    problems = GuestAnswer.read(directory / _ANSWER).problems
    messages = [
        f"{node}: {problem}"
        for node, problems_of_node in problems.items()
        for problem in problems_of_node
    ]
    return "; ".join(dict.fromkeys(messages))


def _locate_user_module(name: str) -> Path:
    """Return the path in a guest of the directory with the module of a user's scheme."""
    return guest.LIBRARY.parent / "schemes" / name


def make_guest_path(file: CommandFile) -> Path:
    """Return the path in a guest of a file that a user's command needs."""
    return guest.MOUNT_POINT / "files" / file.sha256[:16] / file.name
