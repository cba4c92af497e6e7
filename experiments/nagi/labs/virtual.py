# SPDX-License-Identifier: Apache-2.0
"""The virtual lab: hosts, routers and emulator as network namespaces of a guest (guest.py), in
virtual time. Every run has a guest of its own, booted for it.

A cell is a processor: guests run one after the other on each.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from queue import Empty, Queue
from types import MappingProxyType
from typing import NamedTuple

from nagi_contracts import paths
from nagi_contracts.errors import InputError, excerpt
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
from nagi.labs.guest_programs import shown_programs
from nagi.labs.inventory import host_of, module_interfaces, netns_places, veth_pairs
from nagi.labs.lab import LabsHere, SwitchPrograms, make_agent, schedule
from nagi.labs.shape import Shape
from nagi.plan import schemes
from nagi.plan.scheme_sources import find_source, list_sources
from nagi.plan.schemes import Availability, Scheme

NAME = "virtual"
# By the guest's clock, from boot to the first run's begin. It passes in no time.
_LEAD_S = 30.0
_CHECK_LIMIT_S = 60.0
_JOB, _ANSWER, _SPOOL = "job.json", "answer.json", "spool"
_SECCOMP_CURE = "; permit seccomp(2) and ptrace(2) (containers: --security-opt seccomp=unconfined)"
_IN_NETNS = "run it with --lab netns"
# A guest that broke off with no more than this free on the disk did so for want of room.
_FULL_BYTES = 4 << 20
# The cell's name in every guest: what is in there does not depend on which cell it is.
_INSIDE = "guest"


class Limit(NamedTuple):
    """How long a guest's run may take before it is ended, in wall seconds."""

    at_least_s: float = 120.0
    per_virtual_s: float = 20.0

    def of(self, plan: RunPlan) -> float:
        return self.at_least_s + self.per_virtual_s * plan.timeline.end_s


LIMIT = Limit()


def own_modules(plan: RunPlan) -> dict[str, Path]:
    """The modules of users' own schemes that a plan made here needs, by the names of their
    congestion controls. Raises InputError."""
    own = [(name, each) for flow in plan.flows for name, each in flow.objects().items()]
    return {
        name: guest_kernel.own_module(each.source, each.source)
        for name, each in own
        if list_sources(each.source)
    }


@dataclass(frozen=True)
class Parts:
    """The parts of guests, beside executables. `library`: the directory with kernel, modules
    of ours and the preloaded library; `own_modules`: the modules of users' own schemes that a plan
    needs, by name; `processors`: those that guests run on; `agent`: a directory with the agent's
    sources, None: it is made."""

    library: Path
    own_modules: Callable[[RunPlan], dict[str, Path]]
    processors: list[int]
    agent: Path | None = None

    @classmethod
    def here(cls) -> Parts:
        """As this machine has them."""
        return cls(guest_kernel.directory(), own_modules, guest.processors())


class VirtualLab:
    """A lab of `cells` guests side by side for runs of one shape."""

    in_real_time = False

    def __init__(
        self,
        shape: Shape,
        cells: int,
        directory: Path,
        records: Path,
        interrupted: Callable[[], bool],
        limit: Limit = LIMIT,
        parts: Parts | None = None,
    ) -> None:
        self._parts = parts or Parts.here()
        processors = self._parts.processors
        self._processors = {
            f"cell{index}": processors[index % len(processors)] for index in range(cells)
        }
        self._shape = shape
        self._directory = directory
        self._records = records
        self._interrupted = interrupted
        self._limit = limit
        self._agent = self._parts.agent or unpacked_agent(directory)

    @property
    def cells(self) -> list[str]:
        return list(self._processors)

    def lead_s(self) -> float:
        return 0.0

    def prepare(self, plans: list[RunPlan]) -> None:
        cell = self.cells[0]
        own = self._own("check")
        job = self._job("check", plans)
        said = self._boot(own, job, 0, cell, _CHECK_LIMIT_S)
        if said is not None:
            cure = _SECCOMP_CURE if "SECCOMP" in said else ""
            raise Unfit(f"a guest of the virtual lab does not work here: {said}{cure}")
        problems = _problems(own)
        shutil.rmtree(own, ignore_errors=True)
        if problems:
            raise Unfit(problems)

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        """Whichever cell is free takes the next run, of whatever cell it was meant to be."""
        waiting: Queue[RunPlan] = Queue()
        for turn in zip_longest(*plans.values()):
            for plan in filter(None, turn):
                waiting.put(plan)

        def run_waiting(cell: str) -> dict[str, str]:
            failures = {}
            with suppress(Empty):
                while True:
                    plan = waiting.get_nowait()
                    why = self._run(plan, cell)
                    if why is not None:
                        failures[plan.run_id] = why
            return failures

        with ThreadPoolExecutor(len(plans)) as pool:
            found = [pool.submit(run_waiting, cell) for cell in plans]
        return {run_id: why for each in found for run_id, why in each.result().items()}

    def _run(self, plan: RunPlan, cell: str) -> str | None:
        """Returns why a run has left no record of all its nodes, if so."""
        own = self._own(plan.run_id)
        job = self._job("run", [plan])
        limit_s = self._limit.of(plan)
        modules = self._parts.own_modules(plan)
        seen = {_of_own(name): module.parent for name, module in modules.items()}
        said = self._boot(own, job, plan.seed, cell, limit_s, seen)
        for node in job.nodes:
            left = own / _SPOOL / host_of(_INSIDE, node) / plan.run_id
            if left.exists():
                target = self._records / host_of(cell, node) / plan.run_id
                shutil.rmtree(target, ignore_errors=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                left.chmod(0o755)
                left.rename(target)
        if said is None:
            said = _problems(own) or None
        else:
            _keep_console(own, console_of(self._records, plan))
        shutil.rmtree(own, ignore_errors=True)
        return said

    def _own(self, name: str) -> Path:
        """Make a guest's own directory, empty. Others on this machine cannot enter its parent: a
        guest lets each of its users write to some of it."""
        guests = self._directory / "guests"
        guests.mkdir(parents=True, exist_ok=True)
        guests.chmod(0o700)
        own = guests / name
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir()
        return own

    def _boot(
        self,
        own: Path,
        job: GuestJob,
        seed: int,
        cell: str,
        limit_s: float,
        modules: Mapping[Path, Path] = MappingProxyType({}),
    ) -> str | None:
        """Returns what went wrong, if it gave no answer. `modules`: directories with modules that
        it is to see -> where they are. Raises OSError if the disk is full."""
        job.write(own / _JOB)
        # Those of all nodes are the same.
        plans = [run.plan for run in next(iter(job.nodes.values())).batch.runs]
        for node in job.nodes:
            (own / _SPOOL / host_of(_INSIDE, node)).mkdir(parents=True)
        programs = {
            guest.LIBRARY: self._parts.library,
            guest.AGENT: self._agent,
            guest.NAGI_LINK: paths.executable("nagi-link"),
            **modules,
            **shown_programs(plans),
            **{path_in_guest(file): file.source for plan in plans for file in plan.files()},
        }
        if self._shape.switches:
            programs[guest.NAGI_SWITCH] = paths.executable("nagi-switch")
        if (nagi_fpga := paths.executable("nagi-fpga")).exists():
            programs[guest.NAGI_FPGA] = nagi_fpga
        script = f"exec /usr/bin/python3 -I -S {guest.AGENT} guest {guest.OWN / _JOB}"
        memory_mib = guest.memory_mib(len(self._shape.nodes))
        booted = Guest(own, programs, script, seed, self._processors[cell], memory_mib)
        ended = booted.run(limit_s, self._interrupted)
        if ended.planted:
            names = ", ".join(map(excerpt, ended.planted[:3]))
            return f"a program in the guest left what is no file in place of records: {names}"
        if ended.stuck:
            return (
                f"the guest was ended, as nothing was recorded for {guest.STUCK_PROCESSOR_S:.0f} s "
                "of processor time: its clock stands still while a scheme or a program computes "
                f"without an end; its console: {ended.console}"
            )
        if not ended.in_time:
            return f"the guest was ended after {limit_s:.0f} s; its console: {ended.console}"
        if (own / _ANSWER).exists():
            return None
        if shutil.disk_usage(own).free < _FULL_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(own))
        return f"the guest broke off; its console: {ended.console}"

    def _job(self, action: Action, plans: list[RunPlan]) -> GuestJob:
        runs = list(schedule(plans))
        virtual = {
            "virtual": True,
            "files": {
                file.key: str(path_in_guest(file)) for plan in plans for file in plan.files()
            },
        }
        places = netns_places(
            self._shape,
            [_INSIDE],
            guest.OWN / _SPOOL,
            Path("/run/nagi"),
            guest.NAGI_LINK,
            replace(SwitchPrograms.here(), nagi_switch=str(guest.NAGI_SWITCH)),
            # Where it is outside, too: beside it is what it imports.
            paths.executable("nagi-sdr"),
            guest.NAGI_FPGA,
        )
        nodes = {
            place.node: GuestNode(
                interfaces=[
                    GuestInterface.model_validate(each)
                    for each in module_interfaces(self._shape, place.node, place.interfaces)
                ],
                batch=place.batch(runs, []).model_copy(update=virtual),
            )
            for place in places
        }
        return GuestJob(
            action=action,
            veths=[
                Veth(node=end.node, name=end.link, mac=end.mac, peer=peer)
                for end, peer in veth_pairs(self._shape)
            ],
            modules=self._modules(plans) if action == "run" else [],
            nodes=nodes,
            start_at=guest.BOOT_S + _LEAD_S,
            answer=str(guest.OWN / _ANSWER),
        )

    def _modules(self, plans: list[RunPlan]) -> list[GuestModule]:
        own = {name for plan in plans for name in self._parts.own_modules(plan)}
        objects = {
            name: each
            for plan in plans
            for flow in plan.flows
            for name, each in flow.objects().items()
        }
        return [
            GuestModule(
                file=str((_of_own(name) if name in own else guest.LIBRARY) / f"{name}.ko"),
                parameters=each.parameters,
            )
            for name, each in objects.items()
        ]


class VirtualLabs(LabsHere):
    """Makes virtual labs."""

    name = NAME

    def __init__(
        self,
        directory: Path,
        records: Path,
        interrupted: Callable[[], bool],
        limit: Limit = LIMIT,
    ) -> None:
        super().__init__(directory, records, interrupted)
        self._limit = limit

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[VirtualLab]:
        yield VirtualLab(
            shape,
            min(jobs, len(plans)),
            self._directory,
            self._records,
            self._interrupted,
            self._limit,
        )


def jobs_for(plans: list[RunPlan]) -> int:
    """One guest a processor, if there is memory for them."""
    return max(1, min(len(guest.processors()), guest.free_memory_mib() // _needed_mib(plans)))


def require_fit(plans: list[RunPlan]) -> None:
    """Raise InputError if this machine has not the memory for a guest of the largest plan."""
    guest.require_memory(_needed_mib(plans), guest.free_memory_mib())


def _needed_mib(plans: list[RunPlan]) -> int:
    return guest.needed_mib(max((len(plan.nodes) for plan in plans), default=0))


def availability(scheme: Scheme) -> Availability:
    """Whether the guest kernel has `scheme`."""
    try:
        kernel = guest_kernel.require_installed()
    except InputError as error:
        return Availability(False, error.problems[0].what, error.problems[0].cure)
    if scheme.kernel is not None:
        present = scheme.congestion_control in kernel.congestion_controls
        found = schemes.check_kernel_control(scheme, kernel.release, present)
        if not present:
            return replace(found, cure=_IN_NETNS)
    ends = [scheme] if scheme.receiver is None else [scheme, scheme.receiver]
    try:
        ours = [each for each in ends if each.object_file is not None]
        modules = [each.congestion_control for each in ours if _own_module(each) is None]
    except InputError as error:
        first = error.problems[0]
        return Availability(False, str(first).removesuffix(f"; {first.cure}"), first.cure)
    if any(module not in kernel.modules for module in modules):
        return Availability(
            False,
            "the virtual lab's kernel has no eBPF struct_ops, only hosts/tcp as modules",
            _IN_NETNS,
        )
    if modules and kernel.module_sources != guest_kernel.module_sources():
        return Availability(
            False,
            "the virtual lab has it from other sources than those in hosts/tcp now",
            "build its modules anew: `nagi setup virtual-lab`",
        )
    return Availability(True)


def _own_module(scheme: Scheme) -> Path | None:
    """The module of a user's own scheme in C, built if it has not been; None: it is none. Raises
    InputError."""
    if scheme.own_file is None or scheme.object_file is None:
        return None
    if not list_sources(scheme.object_file):
        return None
    return guest_kernel.own_module(scheme.object_file, find_source(scheme.own_file))


def console_of(records: Path, plan: RunPlan) -> Path:
    """Return where the console of a run's guest is kept if the guest did not come to its end."""
    return records / "consoles" / f"{plan.run_id}.log"


def _keep_console(own: Path, target: Path) -> None:
    """Keep the end of a guest's console."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(own / guest.CONSOLE, target)


def _problems(own: Path) -> str:
    """What a guest's nodes complained of, each said once; empty if nothing was wrong."""
    problems = GuestAnswer.read(own / _ANSWER).problems
    found = [f"{node}: {each}" for node, all_ in problems.items() for each in all_]
    return "; ".join(dict.fromkeys(found))


def _of_own(name: str) -> Path:
    """Where a guest sees the module of a user's own scheme."""
    return guest.LIBRARY.parent / "schemes" / name


def path_in_guest(file: CommandFile) -> Path:
    """Return where a guest sees a file of commands."""
    return guest.INSIDE / "files" / file.sha256[:16] / file.name


def unpacked_agent(directory: Path) -> Path:
    """The agent as a directory, with what Python makes of its sources: a guest cannot keep that."""
    target = directory / "agent"
    shutil.rmtree(target, ignore_errors=True)
    with zipfile.ZipFile(make_agent(directory, {})) as archive:
        archive.extractall(target)
    subprocess.run(
        [
            "/usr/bin/python3",
            "-I",  # by no setting of the user's it puts them elsewhere
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode",
            "unchecked-hash",
            target,
        ],
        check=True,
    )
    return target
