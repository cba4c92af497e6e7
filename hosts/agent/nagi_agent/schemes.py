# SPDX-License-Identifier: Apache-2.0
"""Register nagi's TCP schemes in the kernel for a run.

A scheme is an eBPF object, which nagi-tcp loads. nagi-tcp and the objects are part of the agent's
zip file (bundle.py). The agent starts nagi-tcp from memory, and leaves no copy on the host.
The kernel registers congestion controls for the whole machine and not per network namespace, so
every run registers a scheme under a unique name.
"""

from __future__ import annotations

import hashlib
import os
import select
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from typing import Optional

from nagi_agent import cgroups, commands, programs
from nagi_agent.contracts import FlowPlan, NodePlan, RunPlan, SchemeObjectPlan
from nagi_agent.processes import end_process, start_process

NAGI_TCP = "nagi-tcp"
_OBJECTS = "objects"  # directory in the agent's zip file
_READY_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0


def find_refused_objects() -> dict[str, str]:
    """Return the shipped scheme objects that this host's kernel refuses, as name -> reason."""
    directory = resources.files("nagi_agent").joinpath(_OBJECTS)
    if not directory.is_dir():
        return {}
    names = sorted(file.name for file in directory.iterdir() if file.name != NAGI_TCP)
    problems = {name: find_problem(name, {}) for name in names}
    return {name: problem for name, problem in problems.items() if problem is not None}


class _MemoryFile:
    """A file in memory that child processes can open by `path`, if they inherit `descriptor`."""

    def __init__(self, name: str, content: bytes) -> None:
        self.descriptor = os.memfd_create(name)
        self.path = f"/proc/self/fd/{self.descriptor}"
        with os.fdopen(os.dup(self.descriptor), "wb") as file:
            file.write(content)

    def __enter__(self) -> _MemoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class _CgroupRoot:
    """The root cgroup. Schemes that process packets are attached to it.

    `descriptor` is None without cgroup v2. nagi-tcp reports an error if a scheme needs the cgroup.
    """

    def __init__(self) -> None:
        self.descriptor: Optional[int] = None
        with suppress(OSError):
            self.descriptor = cgroups.open_root()

    def __enter__(self) -> _CgroupRoot:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


def find_problem(name: str, parameters: dict[str, int]) -> Optional[str]:
    """Return why this host's kernel refuses a scheme object, or None.

    Args:
        name: name of the scheme object.
        parameters: parameters of the scheme, by name.
    """
    try:
        with (
            _MemoryFile(NAGI_TCP, programs.read_program(_OBJECTS, NAGI_TCP)) as nagi_tcp,
            _MemoryFile(name, programs.read_shipped(_OBJECTS, name)) as scheme_object,
        ):
            result = subprocess.run(
                [NAGI_TCP, "check", scheme_object.path, *_build_options(parameters)],
                executable=nagi_tcp.path,
                pass_fds=(nagi_tcp.descriptor, scheme_object.descriptor),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
    except (OSError, RuntimeError) as error:
        return str(error)
    if result.returncode == 0:
        return None
    reason = _clean_error(result.stderr, scheme_object.path, name)
    return reason or f"{NAGI_TCP} ended with status {result.returncode}"


def _build_options(parameters: dict[str, int]) -> list[str]:
    return [
        part for key, value in sorted(parameters.items()) for part in ("--set", f"{key}={value}")
    ]


def find_objects(plan: RunPlan, node: str) -> dict[str, SchemeObjectPlan]:
    """Return the scheme objects that a run needs on a node, as planned name -> scheme object.

    In a flow with `traffic: command`, sender and receiver need the sender's scheme, because both
    may send data.
    """
    objects = {}
    for flow in plan.flows:
        sends = flow.sender == node or (flow.command is not None and flow.receiver == node)
        if flow.scheme_object is not None and sends:
            objects[flow.congestion_control] = flow.scheme_object
        if flow.receiver_object is not None and flow.receiver == node:
            assert flow.receiver_control is not None
            objects[flow.receiver_control] = flow.receiver_object
    return objects


class Schemes:
    """A context manager that registers the scheme objects of a run on one node.

    __enter__() registers the schemes, and raises RuntimeError if this fails. __exit__() unregisters
    them.

    Args:
        plan: the run.
        node: the node.
        directory: directory for the files of events, one per scheme; None writes no events.
        are_modules: whether the kernel already has the schemes, as modules with the planned names.
            Then no scheme is registered.

    Attributes:
        errors: error messages of nagi-tcp; complete after __exit__().
    """

    def __init__(
        self, plan: RunPlan, node: str, directory: Optional[str], *, are_modules: bool = False
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._objects = {} if are_modules else find_objects(plan, node)
        self._registered: list[_RegisteredScheme] = []
        self.errors: list[str] = []
        self._kernel_names: dict[str, str] = {}  # planned name -> registered name

    def __enter__(self) -> Schemes:
        try:
            for number, (planned_name, scheme_object) in enumerate(self._objects.items()):
                # The kernel allows 15 characters. A process id takes up to 7 of them.
                name = f"{self._plan.run_id[:6]}{number}_{os.getpid()}"
                self._kernel_names[planned_name] = name
                events = None
                if self._directory is not None and scheme_object.events:
                    events = os.path.join(self._directory, f"events.{number}.jsonl")
                self._registered.append(_RegisteredScheme(name, scheme_object, events))
            for scheme in self._registered:
                scheme.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for scheme in self._registered:
            if error := scheme.unregister():
                self.errors.append(error)
        self._registered = []

    def get_kernel_name(self, planned_name: str) -> str:
        """Return the name under which a congestion control of the plan is registered in the kernel.

        Names of congestion controls that this object has not registered are returned unchanged.
        """
        return self._kernel_names.get(planned_name, planned_name)

    def get_planned_name(self, kernel_name: Optional[str]) -> Optional[str]:
        """Return the name that the plan has for a congestion control of the kernel.

        Names of congestion controls that this object has not registered are returned unchanged.
        """
        for planned_name, name in self._kernel_names.items():
            if name == kernel_name:
                return planned_name
        return kernel_name

    def require_running(self) -> None:
        """Raise RuntimeError if a scheme is no longer registered."""
        for scheme in self._registered:
            scheme.require_running()

    def rename_in_routes(self, node: NodePlan) -> NodePlan:
        """Return a node of the plan, with the kernel's names of congestion controls in routes."""
        routes = [
            route
            if route.congctl is None
            else replace(route, congctl=self.get_kernel_name(route.congctl))
            for route in node.routes
        ]
        return replace(node, routes=routes)

    def rename_in_flow(self, flow: FlowPlan) -> FlowPlan:
        """Return a flow of the plan, with the kernel's names of congestion controls."""
        receiver = flow.receiver_control
        return replace(
            flow,
            congestion_control=self.get_kernel_name(flow.congestion_control),
            receiver_control=receiver and self.get_kernel_name(receiver),
        )


class _RegisteredScheme:
    """A scheme that stays registered as long as its nagi-tcp process runs."""

    def __init__(self, name: str, scheme_object: SchemeObjectPlan, events: Optional[str]) -> None:
        self._object = scheme_object.object
        content = programs.read_shipped(_OBJECTS, self._object)
        if hashlib.sha256(content).hexdigest() != scheme_object.sha256:
            raise RuntimeError(f"{self._object} differs from the planned object; build nagi again")
        options = [] if events is None else ["--events", events]
        with (
            _MemoryFile(NAGI_TCP, programs.read_program(_OBJECTS, NAGI_TCP)) as nagi_tcp,
            _MemoryFile("o", content) as object_file,
            _CgroupRoot() as root,
        ):
            self._object_path = object_file.path
            descriptors: tuple[int, ...] = (nagi_tcp.descriptor, object_file.descriptor)
            if root.descriptor is not None:
                options += ["--cgroup", f"/proc/self/fd/{root.descriptor}"]
                descriptors += (root.descriptor,)
            command = [NAGI_TCP, "hold", object_file.path, "--as", name, *options]
            self._process = start_process(
                [*command, *_build_options(scheme_object.parameters)],
                executable=nagi_tcp.path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
            )

    def wait_until_ready(self) -> None:
        """Wait until the scheme is registered.

        Raises:
            RuntimeError: The kernel refused the scheme, or the registration takes too long.
        """
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        ready, _, _ = select.select([output], [], [], _READY_TIMEOUT_S)
        if not ready:
            raise RuntimeError(f"{self._object}: not registered after {_READY_TIMEOUT_S:g} s")
        if not os.read(output, 4096):
            raise RuntimeError(self.unregister() or self._describe_end())

    def require_running(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(
                ": ".join(part for part in (self._describe_end(), self.unregister()) if part)
            )

    def _describe_end(self) -> str:
        end = commands.describe_exit_status(self._process.wait(_END_TIMEOUT_S))
        return f"{self._object}: {NAGI_TCP} {end}"

    def unregister(self) -> str:
        """Unregister the scheme, and return the error that nagi-tcp has printed; "" if none."""
        end_process(self._process, signal.SIGTERM, _END_TIMEOUT_S)
        _, errors = self._process.communicate()
        return _clean_error(errors.decode(errors="replace"), self._object_path, self._object)


def _clean_error(text: str, path: str, name: str) -> str:
    """Return an error of nagi-tcp without "nagi-tcp: ", and with `name` in place of `path`."""
    return text.strip().split(f"{NAGI_TCP}: ", 1)[-1].replace(path, name)
