# SPDX-License-Identifier: Apache-2.0
"""Where a campaign is to take place: what can run there, and the labs that can be made there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nagi_contracts.doctor import Doctor
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.units import count_of

from nagi.campaign.campaign import (
    CampaignDirectory,
    Selection,
    has_radios,
    has_simulated_fpgas,
)
from nagi.doctor import ExperimentNeeds, collect_failures, list_findings
from nagi.doctor.examination import to_observations
from nagi.labs import virtual
from nagi.labs.cells import read_cells
from nagi.labs.lab import Labs
from nagi.labs.netns import NetnsLabs
from nagi.labs.physical import HostPool, PhysicalLabs, Survey, token_for
from nagi.labs.shape import EMULATOR
from nagi.labs.virtual import VirtualLabs
from nagi.plan import fpga, radio, schemes
from nagi.plan.command_files import require_same_machine
from nagi.plan.schemes import Availability, Scheme
from nagi.spec.points import Point

if TYPE_CHECKING:
    from nagi.cluster.pool import Cluster


@dataclass(frozen=True)
class Site:
    """A place for runs. `jobs`: how many side by side if nobody says."""

    name: str
    jobs: Callable[[list[RunPlan]], int]
    available: Callable[[Scheme], Availability]
    require_fit: Callable[[list[RunPlan]], None]  # raises InputError if hosts cannot run the plans
    labs: Callable[[CampaignDirectory, Selection], AbstractContextManager[Labs]]
    radios: Callable[[], Availability]  # whether links can be radios
    fpgas: Callable[[], Availability]  # whether FPGAs can be simulated


def netns_site(interrupted: Callable[[], bool]) -> Site:
    """This machine."""
    return Site(
        NetnsLabs.name,
        jobs_for,
        schemes.availability,
        lambda plans: None,  # its hosts are made for them
        lambda directory, _: nullcontext(NetnsLabs(directory.lab, directory.records, interrupted)),
        radio.availability,
        fpga.availability,
    )


def virtual_site(interrupted: Callable[[], bool]) -> Site:
    """Guests on this machine, in virtual time."""
    return Site(
        VirtualLabs.name,
        virtual.jobs_for,
        virtual.availability,
        virtual.require_fit,
        lambda directory, _: nullcontext(
            VirtualLabs(directory.lab, directory.records, interrupted)
        ),
        radio.availability,
        fpga.availability,
    )


def cluster_site(cluster: Cluster, points: list[Point], switch: SwitchTarget | None) -> Site:
    """The workers of a cluster, whose guests are this machine's."""
    from nagi.cluster.installation import Use
    from nagi.cluster.lab import ClusterLabs, guests_for

    def require_fit(plans: list[RunPlan]) -> None:
        require_same_machine(plans)
        use = Use(
            guests=True,
            switch=switch,
            radios=has_radios(points),
            fpgas=has_simulated_fpgas(points),
        )
        cluster.require_workers(use, guests_for(plans))

    return Site(
        VirtualLabs.name,
        lambda plans: cluster.threads,
        virtual.availability,
        require_fit,
        lambda directory, selection: nullcontext(
            ClusterLabs(cluster, directory.records, selection.build, selection.experiment.keep)
        ),
        radio.availability,
        fpga.availability,
    )


def physical_site(
    inventory: Path,
    out: Path,
    scratch: Path,
    say: Callable[[str], None],
    interrupted: Callable[[], bool],
    cleanup: ExitStack,
    wanted: Iterable[Scheme] = (),
) -> Site:
    """The hosts of an inventory, whose agents come with `wanted` schemes beside ours. `out` is the
    campaign's directory, `scratch` one that is there as long as the site is used. `say` is told
    what does not keep runs from being done; `cleanup` lets hosts go. Raises InputError."""
    cells = read_cells(inventory)
    pool = cleanup.enter_context(
        HostPool(inventory, cells, scratch, token_for(out), interrupted, say, wanted)
    )
    survey = pool.survey()

    def require_fit(plans: list[RunPlan]) -> None:
        require_same_machine(plans)
        found = require_ready(pool, survey, ExperimentNeeds.from_plans(plans))
        if warnings := found.count("warning"):
            say(f"{count_of(warnings, 'warning')}: see `nagi doctor -i {inventory}`")

    return Site(
        PhysicalLabs.name,
        lambda plans: len(cells),
        lambda scheme: available_on_hosts(scheme, survey),
        require_fit,
        lambda directory, selection: PhysicalLabs(
            pool, survey, directory.records, selection.experiment.name
        ),
        lambda: radios_on_hosts(survey),
        lambda: fpgas_on_hosts(survey),
    )


def require_ready(pool: HostPool, survey: Survey, needs: ExperimentNeeds | None = None) -> Doctor:
    """What is found of hosts. Raises InputError if anything would keep runs from being done."""
    found = list_findings(to_observations(survey, pool.inventory, pool.token, needs))
    if (problems := collect_failures(found, str(pool.inventory))) is not None:
        raise problems
    return found


# What one processor carries of a run: rate times links, summed over the flows. A flow of 100 Mb/s
# over two links keeps most of one busy.
_PROCESSOR_BPS = 300e6
# Both ends of a radio, and the channel: at 2 Mb/s each way.
_PROCESSORS_OF_A_RADIO = 2
_PROCESSORS_OF_A_SIMULATED_FPGA = 1  # at 10 Mb/s


def jobs_for(plans: list[RunPlan], processors: int = os.cpu_count() or 1) -> int:
    """How many of these runs to have side by side on this machine: one a processor, or fewer if a
    run needs more than one; more than eight are started too slowly to be worth it."""
    heaviest = max((_processors_of(plan) for plan in plans), default=0.0)
    return min(max(1, int(processors / max(1, heaviest))), 8)


def _processors_of(plan: RunPlan) -> float:
    """How many processors a run keeps busy."""
    bps = sum(flow.bottleneck_bps * len(flow.path) for flow in plan.flows)
    return max(
        bps / _PROCESSOR_BPS,
        _PROCESSORS_OF_A_RADIO * len(plan.radios())
        + _PROCESSORS_OF_A_SIMULATED_FPGA * len(plan.simulated_fpgas()),
    )


def available_on_hosts(scheme: Scheme, survey: Survey) -> Availability:
    """Whether the kernels of all hosts can run `scheme`; what the first says that cannot."""
    for host, found in survey.inspections.items():
        here = schemes.availability_on(scheme, found)
        if found.node != EMULATOR and not here.available:
            return replace(here, reason=f"{host}: {here.reason}")
    return Availability(True)


def radios_on_hosts(survey: Survey) -> Availability:
    """Whether all emulators have nagi-sdr; what the first says that has not."""
    for host, found in survey.inspections.items():
        if found.node == EMULATOR and found.nagi_sdr is None:
            said = " ".join((found.nagi_sdr_error or "there is no nagi-sdr").split())
            return Availability(False, f"{host}: {said}", radio.INSTALL_THERE)
    return Availability(True)


def fpgas_on_hosts(survey: Survey) -> Availability:
    """Whether all emulators have nagi-fpga; what the first says that has not."""
    for host, found in survey.inspections.items():
        if found.node == EMULATOR and found.nagi_fpga is None:
            said = " ".join((found.nagi_fpga_error or "there is no nagi-fpga").split())
            return Availability(False, f"{host}: {said}", fpga.INSTALL_THERE)
    return Availability(True)
