# SPDX-License-Identifier: Apache-2.0
"""The netns lab: hosts, routers and emulator as network namespaces of one machine, in real time.

A cell is one complete testbed. Cells execute runs side by side. Each interface of a node is one end
of a veth pair, and the emulator has the other end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nagi_contracts import paths
from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan

from nagi.labs.ansible_runs import Playbooks
from nagi.labs.inventory import make_netns_inventory, make_netns_placements
from nagi.labs.keeper import Keeper
from nagi.labs.lab import Batches, LocalLabs, list_plan_objects, make_agent
from nagi.labs.names import NETNS
from nagi.labs.programs import list_local_programs
from nagi.labs.shape import Shape
from nagi.plan import schemes

# The time from the choice of the first run's start until this start. All agents must be started
# within this time, which took 0.13 s per host on two processors.
_LEAD_S = 1.5
_LEAD_PER_HOST_S = 0.2


def require_root() -> None:
    """Raise InputError if this process is not root. The netns lab makes network namespaces."""
    if os.geteuid() != 0:
        raise refuse(
            "the netns lab makes network namespaces, which needs root",
            "run the same command with sudo",
        )


class NetnsLab:
    """A netns lab for plans of one shape, in the namespaces of a keeper. It implements `Lab`."""

    in_real_time = True

    def __init__(
        self,
        keeper_pid: int,
        shape: Shape,
        cells: int,
        plans: list[RunPlan],
        directory: Path,
        records: Path,
        interrupted: Callable[[], bool],
    ) -> None:
        """Write the inventory and the agent. Namespaces are made by prepare().

        Args:
            keeper_pid: The process ID of the keeper.
            shape: The shape of the plans.
            cells: The number of cells.
            plans: All plans of the lab, whose kernel modules and eBPF objects are needed.
            directory: The directory of the lab.
            records: The directory of records.
            interrupted: A function that returns whether the user asked to stop.
        """
        self.keeper_pid = keeper_pid
        placements = make_netns_placements(
            shape,
            [f"cell{index}" for index in range(cells)],
            records,
            directory,
            paths.executable("nagi-link"),
            list_local_programs,
        )
        inventory = make_netns_inventory(
            shape,
            placements,
            keeper_pid=keeper_pid,
            agent=make_agent(directory, list_plan_objects(plans)),
            modules=list_kernel_modules(plans),
        )
        self.playbooks = Playbooks(directory / "ansible", inventory, interrupted)
        self.batches = Batches(
            placements,
            self.playbooks,
            directory,
            records,
            lambda hosts: _LEAD_S + _LEAD_PER_HOST_S * hosts,
            fetch=False,
        )

    @property
    def cells(self) -> list[str]:
        return self.batches.cells

    def prepare(self, plans: list[RunPlan]) -> None:
        self.batches.prepare("netns_lab.yml", plans)

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        self.batches.run_batch(plans)
        return {}

    def estimate_lead_s(self) -> float:
        return self.batches.estimate_lead_s()


class NetnsLabs(LocalLabs):
    """Makes netns labs, each with its own keeper. It implements `Labs`."""

    name = NETNS

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[NetnsLab]:
        """Make a lab with `jobs` cells, or with fewer if there are fewer plans."""
        with Keeper() as keeper:
            yield NetnsLab(
                keeper.pid,
                shape,
                min(jobs, len(plans)),
                plans,
                self._directory,
                self._records,
                self._interrupted,
            )


def list_kernel_modules(plans: list[RunPlan]) -> list[str]:
    """Return the kernel modules of TCP schemes that plans need and that are not loaded yet.

    The names are sorted. Schemes that are eBPF objects have no module.
    """
    flows = [flow for plan in plans for flow in plan.flows]
    kernel_schemes = {flow.congestion_control for flow in flows if flow.scheme_object is None}
    kernel_schemes -= {schemes.NO_CONTROL}
    return [f"tcp_{name}" for name in sorted(kernel_schemes - schemes.read_loaded_controls())]
