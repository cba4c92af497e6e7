# SPDX-License-Identifier: Apache-2.0
"""The interfaces between the agent and the backends.

On a host, a backend starts the programs that carry packets (emulator, boards or switch), or further
programs that run together with nagi-link. A backend is a folder of nagi/backends, which bundle.py
packs into the agent's zip file. If the backend runs code on hosts, its module `host` has an object
`part` of a class derived from HostPart. The agent loops over these objects, and never uses the name
of a backend.
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
        check_interval_s: interval at which the agent calls check(); math.inf for no calls.
    """

    check_interval_s: float

    def begin(self) -> None:
        """Wait until the emulator, boards or switch forward packets.

        Raises:
            RuntimeError: The emulator, boards or switch ended, or did not start in time.
        """

    def check(self) -> None:
        """Check that the emulator, boards or switch still run, and do periodic work.

        Raises:
            RuntimeError: The emulator, boards or switch, or a program that they need, have ended or
                failed.
        """

    def finish(self) -> None:
        """End the emulator, boards or switch; their records stay in the run's directory.

        Raises:
            RuntimeError: The emulator, boards or switch had ended before, or failed.
        """

    def kill(self) -> None:
        """End the emulator, boards or switch by force, if they still run."""


class Companion(Protocol):
    """A program that a backend runs together with nagi-link, such as nagi-sdr.

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
            RuntimeError: The program failed, or had to be killed.
        """

    def kill(self) -> None:
        """End the program by force, if it still runs."""


class HostPart:
    """The code of a backend that runs in the agent. Backends override the methods that they need.

    Attributes:
        commands: commands that the backend adds to nagi-agent, name -> function. The function gets
            the path of a file, and returns the exit status.
        undo: command lines that undo the changes of start() on this host if the agent dies. They
            have no effect if there are no changes.
    """

    commands: Mapping[str, Callable[[str], int]] = {}
    undo: Sequence[list[str]] = ()

    def find_problems(self, batch: Batch) -> list[str]:
        """Return the problems that prevent the batch from running on this host, with cures."""
        return []

    def read_facts(self, job: Job) -> Json:
        """Return facts about the backend on this host for `nagi doctor`; {} if there are none."""
        return {}

    def drives(self, plan: RunPlan, job: Job) -> bool:
        """Return whether this backend can carry the packets of this node. See find_driver()."""
        return False

    def start(
        self, job: Job, plan: RunPlan, epoch_s: float, directory: str, *, live: bool = False
    ) -> Running:
        """Start the emulator, boards or switch of this node.

        Args:
            job: this host's settings.
            plan: the run.
            epoch_s: when the run begins, in seconds since the Unix epoch. The times in the plan
                count from this instant.
            directory: the run's directory, which gets all files.
            live: whether the topology is set up for interactive use (`nagi up`), not for a run.

        Raises:
            RuntimeError: The emulator, boards or switch cannot be started.
        """
        raise NotImplementedError

    def configure(self, configuration: Json, plan: RunPlan, job: Job) -> None:
        """Add the backend's keys to `configuration`, nagi-link's configuration for a run."""

    def start_companions(
        self, configuration: Json, plan: RunPlan, job: Job, directory: str
    ) -> Iterator[Companion]:
        """Start the programs that run together with nagi-link, and yield each one when it runs.

        Args:
            configuration: nagi-link's configuration; this method adds the numbers of the
                descriptors that nagi-link inherits.
            plan: the run.
            job: this host's settings.
            directory: the run's directory, which gets all files.

        Raises:
            RuntimeError: A program cannot be started.
        """
        yield from ()


@functools.lru_cache(maxsize=None)
def load_parts() -> dict[str, HostPart]:
    """Return backend -> HostPart, in the order in which the agent calls the HostParts."""
    return names.load_parts("host")


def find_driver(plan: RunPlan, job: Job) -> Optional[HostPart]:
    """Return the driver, or None if the kernel carries this node's packets.

    The driver is the HostPart whose emulator, boards or switch carry the packets of this node. If
    several HostParts can carry the packets, return the last one, because backends that replace
    nagi-link come after nagi-link.
    """
    drivers = [part for part in load_parts().values() if part.drives(plan, job)]
    return drivers[-1] if drivers else None


def find_node(plan: RunPlan, job: Job) -> Optional[NodePlan]:
    """Return the plan of this host's node, or None if this host is the emulator."""
    return next((node for node in plan.nodes if node.name == job.node), None)


def make_settings(driver: HostPart, node: NodePlan, job: Job) -> Settings:
    """Return a context manager that applies the sysctls of a node whose packets a backend carries.

    It sets no routes, because the kernel does not forward the packets.

    Args:
        driver: the backend's HostPart.
        node: the node.
        job: this host's settings.
    """
    # Settings of a guest need not be restored, because the guest is used only once.
    journal = None if job.virtual else job.settings_journal
    return Settings(replace(node, routes=[]), job.interfaces, journal, driver.undo)
