# SPDX-License-Identifier: Apache-2.0
"""TCP schemes that the kernel does not have: eBPF objects, which nagi-tcp gives it for a run.

nagi-tcp and the objects come in the agent's own file (bundle.py) and are handed on in memory, so a
host keeps nothing of them. Registering is not per network namespace: every run on a host gives a
scheme a name of its own.
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
from nagi_agent.processes import end, start

NAGI_TCP = "nagi-tcp"
_OBJECTS = "objects"  # where they are in the agent's file
_READY_TIMEOUT_S = 10.0
_END_TIMEOUT_S = 5.0


def refused() -> dict[str, str]:
    """Of the objects that came with this agent those that this host's kernel does not take, and
    why."""
    place = resources.files("nagi_agent").joinpath(_OBJECTS)
    if not place.is_dir():
        return {}
    names = sorted(each.name for each in place.iterdir() if each.name != NAGI_TCP)
    found = {name: problem_with(name, {}) for name in names}
    return {name: problem for name, problem in found.items() if problem is not None}


class _InMemory:
    """A shipped file that other processes can open."""

    def __init__(self, name: str, content: bytes) -> None:
        self.descriptor = os.memfd_create(name)
        self.path = f"/proc/self/fd/{self.descriptor}"
        with os.fdopen(os.dup(self.descriptor), "wb") as file:
            file.write(content)

    def __enter__(self) -> _InMemory:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class _Cgroups:
    """The root of the cgroups, where schemes see packets; None where there is none, of which
    nagi-tcp complains if it needs it."""

    def __init__(self) -> None:
        self.descriptor: Optional[int] = None
        with suppress(OSError):
            self.descriptor = cgroups.open_root()

    def __enter__(self) -> _Cgroups:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


def problem_with(name: str, parameters: dict[str, int]) -> Optional[str]:
    """Why this host's kernel does not take an object; None if it does."""
    try:
        with (
            _InMemory(NAGI_TCP, programs.read(_OBJECTS, NAGI_TCP)) as nagi_tcp,
            _InMemory(name, programs.shipped(_OBJECTS, name)) as given,
        ):
            done = subprocess.run(
                [NAGI_TCP, "check", given.path, *_settings(parameters)],
                executable=nagi_tcp.path,
                pass_fds=(nagi_tcp.descriptor, given.descriptor),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
    except (OSError, RuntimeError) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = _in_words(done.stderr, given.path, name)
    return said or f"{NAGI_TCP} ended with {done.returncode}"


def _settings(parameters: dict[str, int]) -> list[str]:
    return [
        part for key, value in sorted(parameters.items()) for part in ("--set", f"{key}={value}")
    ]


def objects_on(plan: RunPlan, node: str) -> dict[str, SchemeObjectPlan]:
    """The scheme objects that a run needs on this node, by the name that the plan has for them.
    What commands of the user's own send goes both ways."""
    found = {}
    for flow in plan.flows:
        sends = flow.sender == node or (flow.command is not None and flow.receiver == node)
        if flow.scheme_object is not None and sends:
            found[flow.congestion_control] = flow.scheme_object
        if flow.receiver_object is not None and flow.receiver == node:
            assert flow.receiver_control is not None
            found[flow.receiver_control] = flow.receiver_object
    return found


class Schemes:
    """The scheme objects of a run on one node, registered from entry to exit. `directory`: there
    they write what they tell, a file each; None: they tell nothing. `loaded`: the kernel has them
    as modules, by the plan's names. Raises RuntimeError."""

    def __init__(
        self, plan: RunPlan, node: str, directory: Optional[str], *, loaded: bool = False
    ) -> None:
        self._plan = plan
        self._directory = directory
        self._objects = {} if loaded else objects_on(plan, node)
        self._held: list[_Held] = []
        self.complaints: list[str] = []  # once it is over
        self._names: dict[str, str] = {}

    def __enter__(self) -> Schemes:
        try:
            for number, (planned, scheme_object) in enumerate(self._objects.items()):
                # At most 15 characters, of which a process id takes 7.
                name = f"{self._plan.run_id[:6]}{number}_{os.getpid()}"
                self._names[planned] = name
                events = None
                if self._directory is not None and scheme_object.events:
                    events = os.path.join(self._directory, f"events.{number}.jsonl")
                self._held.append(_Held(name, scheme_object, events))
            for held in self._held:
                held.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for held in self._held:
            if complaint := held.end():
                self.complaints.append(complaint)
        self._held = []

    def registered(self, planned: str) -> str:
        """The kernel's name of a congestion control that the plan names."""
        return self._names.get(planned, planned)

    def planned(self, registered: Optional[str]) -> Optional[str]:
        """The other way round."""
        for planned, name in self._names.items():
            if name == registered:
                return planned
        return registered

    def require_running(self) -> None:
        """Raises RuntimeError if a scheme is not registered any more."""
        for held in self._held:
            held.require_running()

    def in_routes(self, node: NodePlan) -> NodePlan:
        """The plan's node with the kernel's names in its routes."""
        routes = [
            route
            if route.congctl is None
            else replace(route, congctl=self.registered(route.congctl))
            for route in node.routes
        ]
        return replace(node, routes=routes)

    def in_flow(self, flow: FlowPlan) -> FlowPlan:
        """The plan's flow with the kernel's name in it."""
        receiver = flow.receiver_control
        return replace(
            flow,
            congestion_control=self.registered(flow.congestion_control),
            receiver_control=receiver and self.registered(receiver),
        )


class _Held:
    """A scheme that a process of nagi-tcp's holds."""

    def __init__(self, name: str, scheme_object: SchemeObjectPlan, events: Optional[str]) -> None:
        self._object = scheme_object.object
        content = programs.shipped(_OBJECTS, self._object)
        if hashlib.sha256(content).hexdigest() != scheme_object.sha256:
            raise RuntimeError(f"{self._object} is not what was planned; build nagi anew")
        options = [] if events is None else ["--events", events]
        with (
            _InMemory(NAGI_TCP, programs.read(_OBJECTS, NAGI_TCP)) as nagi_tcp,
            _InMemory("o", content) as given,
            _Cgroups() as root,
        ):
            self._given = given.path
            shared: tuple[int, ...] = (nagi_tcp.descriptor, given.descriptor)
            if root.descriptor is not None:
                options += ["--cgroup", f"/proc/self/fd/{root.descriptor}"]
                shared += (root.descriptor,)
            hold = [NAGI_TCP, "hold", given.path, "--as", name, *options]
            self._process = start(
                [*hold, *_settings(scheme_object.parameters)],
                executable=nagi_tcp.path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=shared,
            )

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        ready, _, _ = select.select([output], [], [], _READY_TIMEOUT_S)
        if not ready:
            raise RuntimeError(f"{self._object}: not registered after {_READY_TIMEOUT_S:g} s")
        if not os.read(output, 4096):
            raise RuntimeError(self.end() or self._ended())

    def require_running(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(": ".join(part for part in (self._ended(), self.end()) if part))

    def _ended(self) -> str:
        how = commands.status_in_words(self._process.wait(_END_TIMEOUT_S))
        return f"{self._object}: {NAGI_TCP} {how}"

    def end(self) -> str:
        """Returns what it complained of."""
        end(self._process, signal.SIGTERM, _END_TIMEOUT_S)
        _, said = self._process.communicate()
        return _in_words(said.decode(errors="replace"), self._given, self._object)


def _in_words(said: str, path: str, name: str) -> str:
    """What nagi-tcp complains of, without its own name, and with an object's for its path."""
    return said.strip().split(f"{NAGI_TCP}: ", 1)[-1].replace(path, name)
