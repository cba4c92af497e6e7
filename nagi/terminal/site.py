# SPDX-License-Identifier: Apache-2.0
"""Sites: the machines of a campaign, with the schemes, programs and labs that they offer."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nagi_contracts.doctor import Doctor
from nagi_contracts.plan import RunPlan, SwitchTarget
from nagi_contracts.units import format_count

from nagi.backends.availability import Availability
from nagi.backends.interface import Needs
from nagi.backends.registry import load_needs
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.selection import Selection, check_here, find_backends
from nagi.doctor import ExperimentNeeds, collect_failures, list_findings
from nagi.doctor.examination import to_observations
from nagi.labs import guest_modules, virtual
from nagi.labs.cells import read_cells
from nagi.labs.host_pool import HostPool, Survey, make_token
from nagi.labs.lab import Labs
from nagi.labs.netns import NetnsLabs
from nagi.labs.physical import PhysicalLabs
from nagi.labs.shape import EMULATOR
from nagi.labs.virtual import VirtualLabs
from nagi.plan import schemes
from nagi.plan.command_files import require_same_machine
from nagi.plan.schemes import Scheme
from nagi.spec.points import Point

if TYPE_CHECKING:
    from nagi.cluster.pool import Cluster


@dataclass(frozen=True)
class Site:
    """The machines that execute a campaign, and their lab.

    Attributes:
        name: The name of the lab.
        count_jobs: A function that returns how many of the given runs to execute side by side. A
            number given by the user replaces it.
        check_scheme: A function that returns whether a scheme is available.
        require_fit: A function that raises InputError if the site cannot execute the plans.
        open_labs: A function that returns a context manager, which opens the labs for a campaign.
        check_needs: A function that returns whether the site has what a backend needs.
    """

    name: str
    count_jobs: Callable[[list[RunPlan]], int]
    check_scheme: Callable[[Scheme], Availability]
    require_fit: Callable[[list[RunPlan]], None]
    open_labs: Callable[[CampaignDirectory, Selection], AbstractContextManager[Labs]]
    check_needs: Callable[[Needs], Availability] = check_here


def make_netns_site(interrupted: Callable[[], bool]) -> Site:
    """Make the site of the netns lab: this machine, in real time.

    `interrupted` is a function that returns whether the user has interrupted the command.
    """
    return Site(
        NetnsLabs.name,
        choose_jobs,
        schemes.check_availability,
        lambda plans: None,  # the lab makes a namespace for each node of the plans
        lambda directory, _: nullcontext(NetnsLabs(directory.lab, directory.records, interrupted)),
    )


def make_virtual_site(interrupted: Callable[[], bool]) -> Site:
    """Make the site of the virtual lab: guests on this machine, in virtual time.

    `interrupted` is a function that returns whether the user has interrupted the command.
    """
    return Site(
        VirtualLabs.name,
        virtual.count_jobs,
        guest_modules.check_availability,
        virtual.require_memory_for,
        lambda directory, _: nullcontext(
            VirtualLabs(directory.lab, directory.records, interrupted)
        ),
    )


def make_cluster_site(cluster: Cluster, points: list[Point], switch: SwitchTarget | None) -> Site:
    """Make the site of the virtual lab on a cluster.

    Workers fetch the files of guests, such as the kernel, from this machine.

    Args:
        cluster: The cluster.
        points: The points of the experiment.
        switch: The target of switches, or None without switches.
    """
    from nagi.cluster.installation import Requirements
    from nagi.cluster.lab import ClusterLabs, collect_guest_files

    def require_fit(plans: list[RunPlan]) -> None:
        require_same_machine(plans)
        requirements = Requirements(
            runs_guests=True,
            backends=tuple(find_backends(points)),
            switch=switch or "nagi",
        )
        cluster.require_workers(requirements, collect_guest_files(plans))

    return Site(
        VirtualLabs.name,
        lambda plans: cluster.threads,
        guest_modules.check_availability,
        require_fit,
        lambda directory, selection: nullcontext(
            ClusterLabs(cluster, directory.records, selection.build, selection.experiment.keep)
        ),
    )


def make_physical_site(
    inventory: Path,
    out: Path,
    scratch: Path,
    say: Callable[[str], None],
    interrupted: Callable[[], bool],
    cleanup: ExitStack,
    user_schemes: Iterable[Scheme] = (),
) -> Site:
    """Make the site of the physical lab, and inspect the hosts of its inventory.

    Args:
        inventory: The file of the inventory.
        out: The directory of the campaign.
        scratch: A directory for temporary files, which must exist while the site is used.
        say: A function that prints a warning.
        interrupted: A function that returns whether the user has interrupted the command.
        cleanup: A stack that releases the hosts when it is closed.
        user_schemes: Schemes of the user that agents need, in addition to nagi's.

    Raises:
        InputError: The inventory or its hosts cannot be used.
    """
    cells = read_cells(inventory)
    pool = cleanup.enter_context(
        HostPool(inventory, cells, scratch, make_token(out), interrupted, say, user_schemes)
    )
    survey = pool.survey()

    def require_fit(plans: list[RunPlan]) -> None:
        require_same_machine(plans)
        findings = require_ready(pool, survey, ExperimentNeeds.from_plans(plans))
        if warnings := findings.count("warning"):
            say(f"{format_count(warnings, 'warning')}: see `nagi doctor -i {inventory}`")

    return Site(
        PhysicalLabs.name,
        lambda plans: len(cells),
        lambda scheme: get_scheme_availability(scheme, survey),
        require_fit,
        lambda directory, selection: PhysicalLabs(
            pool, survey, directory.records, selection.experiment.name
        ),
        lambda needs: check_on_hosts(needs, survey),
    )


def require_ready(pool: HostPool, survey: Survey, needs: ExperimentNeeds | None = None) -> Doctor:
    """Derive the doctor's findings from the inspections of hosts. Require that none is a failure.

    Args:
        pool: The hosts.
        survey: The inspections of the hosts.
        needs: The needs of an experiment, or None for general findings.

    Returns:
        The findings, which may include warnings.

    Raises:
        InputError: A finding is a failure.
    """
    findings = list_findings(to_observations(survey, pool.inventory, pool.token, needs))
    if (problems := collect_failures(findings, str(pool.inventory))) is not None:
        raise problems
    return findings


# The rate that one processor can forward. A flow counts once per link of its path, so a flow of
# 100 Mb/s over two links keeps most of one processor busy.
_PROCESSOR_BPS = 300e6


def choose_jobs(plans: list[RunPlan], processors: int = os.cpu_count() or 1) -> int:
    """Return how many of these runs to execute side by side on this machine.

    This is one run per processor, or fewer if a run needs several processors. The maximum is eight,
    because starting more runs takes longer than it saves.

    Args:
        plans: The runs.
        processors: The number of processors of this machine.
    """
    backends = load_needs().values()
    per_run = max((_estimate_processors(plan, backends) for plan in plans), default=0.0)
    return min(max(1, int(processors / max(1, per_run))), 8)


def _estimate_processors(plan: RunPlan, backends: Collection[Needs]) -> float:
    """Return how many processors a run keeps busy."""
    bps = sum(flow.bottleneck_bps * len(flow.path) for flow in plan.flows)
    return max(bps / _PROCESSOR_BPS, sum(needs.count_processors(plan) for needs in backends))


def get_scheme_availability(scheme: Scheme, survey: Survey) -> Availability:
    """Return whether the kernels of all hosts can run a scheme; the emulator's kernel need not.

    If not, the result has the reason and the cure of the first host that cannot run the scheme.
    """
    for host, inspection in survey.inspections.items():
        availability = schemes.check_availability_on_host(scheme, inspection)
        if inspection.node != EMULATOR and not availability.available:
            return replace(availability, reason=f"{host}: {availability.reason}")
    return Availability(True)


def check_on_hosts(needs: Needs, survey: Survey) -> Availability:
    """Return whether all hosts have what a backend needs.

    If not, the result has the reason and the cure of the first host that lacks something.
    """
    for host, inspection in survey.inspections.items():
        availability = needs.check_availability_on(inspection)
        if not availability.available:
            return replace(availability, reason=f"{host}: {availability.reason}")
    return Availability(True)
