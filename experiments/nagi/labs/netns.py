# SPDX-License-Identifier: Apache-2.0
"""The netns lab: hosts, routers and emulator as network namespaces of one machine, in real time.

A cell is one complete testbed; cells run side by side. Every node's interface on a link is a veth
whose other end is the emulator's.
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
from nagi.labs.inventory import netns_inventory, netns_places
from nagi.labs.keeper import Keeper
from nagi.labs.lab import Batches, LabsHere, SwitchPrograms, make_agent, objects_of
from nagi.labs.shape import Shape
from nagi.plan import schemes

NAME = "netns"
# From choosing the first run's instant to it every agent must have started: seen to take 0.13 s a
# host on two processors.
_LEAD_S = 1.5
_LEAD_PER_HOST_S = 0.2


def require_root() -> None:
    """Raises InputError if this process may not make network namespaces."""
    if os.geteuid() != 0:
        raise refuse(
            "the netns lab makes network namespaces, which needs root",
            "run the same command with sudo",
        )


class NetnsLab:
    """A lab of `cells` cells of one shape for `plans`, in the namespaces of `keeper_pid`."""

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
        self.keeper_pid = keeper_pid
        places = netns_places(
            shape,
            [f"cell{index}" for index in range(cells)],
            records,
            directory,
            paths.executable("nagi-link"),
            SwitchPrograms.here(),
            paths.executable("nagi-sdr"),
            paths.executable("nagi-fpga"),
        )
        inventory = netns_inventory(
            shape,
            places,
            keeper_pid=keeper_pid,
            agent=make_agent(directory, objects_of(plans)),
            modules=modules_for(plans),
        )
        self.playbooks = Playbooks(directory / "ansible", inventory, interrupted)
        self.batches = Batches(
            places,
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
        self.batches.run(plans)
        return {}

    def lead_s(self) -> float:
        return self.batches.lead_s()


class NetnsLabs(LabsHere):
    """Makes netns labs, each with a keeper of its own."""

    name = NAME

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[NetnsLab]:
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


def modules_for(plans: list[RunPlan]) -> list[str]:
    """Kernel modules to load for these plans."""
    flows = [flow for plan in plans for flow in plan.flows]
    wanted = {flow.congestion_control for flow in flows if flow.scheme_object is None}
    wanted -= {schemes.NO_CONTROL}
    return [f"tcp_{name}" for name in sorted(wanted - schemes.read_loaded_controls())]
