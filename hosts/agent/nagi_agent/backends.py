# SPDX-License-Identifier: Apache-2.0
"""Backends on this host: programs that carry packets, and companions of nagi-link.

A backend is a folder of nagi/backends, which bundle.py packs into the agent's file. If it has a
share in the agent, its module `host` has an object `part` of a class derived from HostPart. The
agent iterates over these parts, and knows no backend by its name.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Callable, Iterator, Mapping, Optional, Protocol, Sequence

from nagi.backends import names

from nagi_agent.contracts import Batch, Json, NodePlan, RunPlan
from nagi_agent.job import Job
from nagi_agent.settings import Settings


class Running(Protocol):
    """The running emulator, boards or switch that carry packets in a run.

    Attributes:
        check_interval_s: check() is to be called at this interval; math.inf for never.
    """

    check_interval_s: float

    def begin(self) -> None:
        """Wait until packets are carried.

        Raises:
            RuntimeError: it ended, or did not start in time.
        """

    def check(self) -> None:
        """Check that it still runs, and do the periodic work of the run.

        Raises:
            RuntimeError: it has ended, or something that it needs has failed.
        """

    def finish(self) -> None:
        """End it, and leave its records in the run's directory.

        Raises:
            RuntimeError: it had ended before, or it failed.
        """

    def kill(self) -> None:
        """End it by force, if it has not ended."""


class Companion(Protocol):
    """A program that runs beside nagi-link.

    Attributes:
        descriptors: file descriptors that nagi-link inherits.
    """

    descriptors: tuple[int, ...]

    def close_descriptors(self) -> None:
        """Close this process's copies of the descriptors, after nagi-link has started."""

    def check(self) -> None:
        """Raise RuntimeError if the program has failed."""

    def finish(self) -> None:
        """End the program, after nagi-link has ended.

        Raises:
            RuntimeError: it failed, or it had to be killed.
        """

    def kill(self) -> None:
        """End the program by force, if it has not ended."""


class HostPart:
    """The share of a backend in the agent. Parts override what concerns their backend.

    Attributes:
        commands: commands of nagi-agent that the backend adds, by name. Each gets the path of a
            file, and returns the exit status.
        undo: commands that undo the changes of start() on this host if the agent dies. They have no
            effect if there are no changes.
    """

    commands: Mapping[str, Callable[[str], int]] = {}
    undo: Sequence[list[str]] = ()

    def find_problems(self, batch: Batch) -> list[str]:
        """Return the problems that keep the batch from running on this host, each with its cure."""
        return []

    def read_facts(self, job: Job) -> Json:
        """Return the facts about the backend for the inspection of this host."""
        return {}

    def drives(self, plan: RunPlan, job: Job) -> bool:
        """Return whether start() can do the work of this node. See find_driver()."""
        return False

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        """Start the emulator, boards or switch of this node.

        Args:
            job: this host's settings.
            plan: the run.
            epoch_s: when the run begins, in seconds since the Unix epoch: instant 0 of its clocks.
            directory: the run's directory, for all files.
            live: whether the topology is live, so that any program may use it.

        Raises:
            RuntimeError: it cannot be started.
        """
        raise NotImplementedError

    def configure(self, configuration: Json, plan: RunPlan, job: Job) -> None:
        """Add the backend's keys to nagi-link's configuration of a run."""

    def start_companions(
        self, configuration: Json, plan: RunPlan, job: Job, directory: str
    ) -> Iterator[Companion]:
        """Start the programs that run beside nagi-link, and yield each one when it is started.

        Args:
            configuration: nagi-link's configuration, which gets the programs' descriptors.
            plan: the run.
            job: this host's settings.
            directory: the run's directory, for all files.

        Raises:
            RuntimeError: a program cannot be started.
        """
        yield from ()


@functools.lru_cache(maxsize=None)
def load_parts() -> dict[str, HostPart]:
    """Return the parts of all backends, by backend, in the order in which they are asked."""
    return names.load_parts("host")


def find_driver(plan: RunPlan, job: Job) -> Optional[HostPart]:
    """Return the part that does the work of this node, or None if the kernel does it.

    If several parts can, the last one does: other backends come after nagi-link, and replace it.
    """
    drivers = [part for part in load_parts().values() if part.drives(plan, job)]
    return drivers[-1] if drivers else None


def find_node(plan: RunPlan, job: Job) -> Optional[NodePlan]:
    """Return the plan of this host's node, or None if this host is the emulator."""
    return next((node for node in plan.nodes if node.name == job.node), None)


def make_settings(driver: HostPart, node: NodePlan, job: Job) -> Settings:
    """Return the settings of a node whose packets the driver carries: the kernel gets no routes.

    Args:
        driver: the part that does the work of this node.
        node: the node.
        job: this host's settings.
    """
    # Settings of a guest need not be restored, because the guest is used only once.
    journal = None if job.virtual else job.settings_journal
    return Settings(replace(node, routes=[]), job.interfaces, journal, driver.undo)
