# SPDX-License-Identifier: Apache-2.0
"""The physical lab: real hosts of an inventory, which nagi reaches over SSH (host_pool.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nagi_contracts.errors import refuse
from nagi_contracts.plan import RunPlan

from nagi.labs.cells import Cell
from nagi.labs.errors import LabError, Unfit
from nagi.labs.host_pool import LEASE_S, HostPool, Survey
from nagi.labs.names import PHYSICAL
from nagi.labs.shape import Shape


class PhysicalLab:
    """A lab of some cells of an inventory, for plans of one shape. It implements `Lab`."""

    in_real_time = True

    def __init__(
        self,
        pool: HostPool,
        cells: list[Cell],
        shape: Shape,
        survey: Survey,
        modules: list[str],
        records: Path,
        campaign: str,
    ) -> None:
        """Write the inventory and the batches' directory.

        Args:
            pool: The hosts.
            cells: The cells to use.
            shape: The shape of the plans.
            survey: The inspections of the hosts.
            modules: The kernel modules to load.
            records: The directory to which records are fetched.
            campaign: The name of the campaign, for the hosts' reservation.
        """
        self._pool = pool
        self._campaign = campaign
        playbooks = pool.make_playbooks(cells, shape, survey.inspections, modules)
        self.batches = pool.make_batches(cells, shape, playbooks, records, survey.inspections)

    @property
    def cells(self) -> list[str]:
        return self.batches.cells

    def prepare(self, plans: list[RunPlan], lease_s: float = LEASE_S) -> None:
        self._pool.is_reserved = True
        holder = self._pool.describe_holder(self._campaign, time.time() + lease_s)
        self.batches.prepare("physical_lab.yml", plans, nagi_holder=holder)

    def run_batch(self, plans: dict[str, list[RunPlan]]) -> dict[str, str]:
        self.batches.run_batch(plans)
        return {}

    def estimate_lead_s(self) -> float:
        return self.batches.estimate_lead_s()


class PhysicalLabs:
    """Makes labs of the cells of an inventory. The `with` statement reserves all hosts.

    At the end of the block the hosts stay reserved, until the pool releases them.
    """

    name = PHYSICAL

    def __init__(
        self,
        pool: HostPool,
        survey: Survey,
        records: Path,
        campaign: str,
    ) -> None:
        """Store the arguments, without contacting a host.

        Args:
            pool: The hosts.
            survey: The inspections of the hosts.
            records: The directory to which records are fetched.
            campaign: The name of the campaign, for the hosts' reservation.
        """
        self._pool = pool
        self._survey = survey
        self._records = records
        self._campaign = campaign
        self._excluded: set[str] = set()

    def __enter__(self) -> PhysicalLabs:
        """Reserve the hosts, and fetch the records that an earlier process did not fetch.

        Raises:
            InputError: Hosts could not be reserved.
        """
        playbooks = self._pool.make_playbooks(self._pool.cells, None, {}, [])
        batches = self._pool.make_batches(self._pool.cells, None, playbooks, self._records)
        self._pool.is_reserved = True
        try:
            batches.run_playbook(
                "hold.yml",
                nagi_holder=self._pool.describe_holder(self._campaign, time.time() + LEASE_S),
            )
        except LabError as error:
            raise refuse(str(error), "see `nagi doctor`; nothing was run") from None
        batches.fetch_records()
        return self

    def __exit__(self, *_: object) -> None:
        pass  # HostPool.__exit__() releases the hosts

    @contextmanager
    def open(self, shape: Shape, plans: list[RunPlan], jobs: int) -> Iterator[PhysicalLab]:
        """Make a lab of the cells that have all nodes and links of `shape`.

        The lab has at most `jobs` cells, and no cell that exclude_cells() has excluded.

        Raises:
            Unfit: No cell has all nodes and links of `shape`.
        """
        cells = [cell for cell in self._pool.cells if cell.name not in self._excluded]
        suitable_cells = [cell for cell in cells if not cell.list_missing(shape)]
        if not suitable_cells:
            raise Unfit(
                "; ".join(
                    f"{cell.name}: {', '.join(cell.list_missing(shape))}"
                    for cell in self._pool.cells
                )
            )
        yield PhysicalLab(
            self._pool,
            suitable_cells[: min(jobs, len(plans))],
            shape,
            self._survey,
            [],
            self._records,
            self._campaign,
        )

    def exclude_cells(self, error: LabError) -> list[str]:
        """Exclude the cells of the hosts that failed, unless no cell would remain (see `Labs`)."""
        failed_hosts = {failure.host for failure in error.failures}
        cells = [cell for cell in self._pool.cells if cell.name not in self._excluded]
        failed_cells = sorted(
            cell.name
            for cell in cells
            if failed_hosts & {host.name for host in cell.hosts.values()}
        )
        if len(failed_cells) == len(cells):
            return []
        self._excluded.update(failed_cells)
        return failed_cells
