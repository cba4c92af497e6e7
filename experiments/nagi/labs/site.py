# SPDX-License-Identifier: Apache-2.0
"""Where a campaign is to take place: what can run there, and the labs that can be made there."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from nagi import schemes
from nagi.campaign import CampaignDirectory
from nagi.errors import InputError, Problem
from nagi.labs.cells import read_cells
from nagi.labs.lab import Labs
from nagi.labs.netns import NetnsLabs, require_root
from nagi.labs.physical import Bench, PhysicalLabs, Survey, token_for
from nagi.labs.shape import EMULATOR
from nagi.schemes import Availability, Scheme


@dataclass(frozen=True)
class Site:
    """A place for runs. `jobs`: how many side by side if nobody says."""

    name: str
    jobs: int
    available: Callable[[Scheme], Availability]
    labs: Callable[[CampaignDirectory, str], AbstractContextManager[Labs]]


def netns_site(interrupted: Callable[[], bool]) -> Site:
    """This machine. Raises InputError if this process may not make network namespaces."""
    require_root()
    return Site(
        NetnsLabs.name,
        jobs_for(os.cpu_count() or 1),
        schemes.availability,
        lambda directory, _: nullcontext(NetnsLabs(directory.lab, directory.records, interrupted)),
    )


def physical_site(
    inventory: Path,
    out: Path,
    scratch: Path,
    say: Callable[[str], None],
    interrupted: Callable[[], bool],
) -> Site:
    """The hosts of an inventory. Raises InputError if they are not fit. `out` is the campaign's
    directory, `scratch` one that is there as long as the site is used. `say` is told what becomes
    of hosts that could not be let go."""
    cells = read_cells(inventory)
    bench = Bench(inventory, cells, scratch, token_for(out), interrupted)
    survey = survey_hosts(bench)
    return Site(
        PhysicalLabs.name,
        len(cells),
        lambda scheme: _available(scheme, survey),
        lambda directory, campaign: PhysicalLabs(bench, survey, directory.records, campaign, say),
    )


def survey_hosts(bench: Bench) -> Survey:
    """Looks at all hosts. Raises InputError if anything would keep runs from being done on them."""
    survey = bench.survey()
    if survey.failures:
        raise InputError(
            *(
                Problem(str(failure), "see `nagi doctor -i INVENTORY`")
                for failure in survey.failures
            )
        )
    return survey


def jobs_for(processors: int) -> int:
    """How many runs to have side by side on one machine: one a processor, as a run at 100 Mb/s
    keeps about one busy; more than eight are started too slowly to be worth it."""
    return min(max(1, processors), 8)


def _available(scheme: Scheme, survey: Survey) -> Availability:
    """Whether the kernels of all hosts can run `scheme`."""
    if scheme.kernel is None:
        return schemes.availability(scheme)
    without = sorted(
        host
        for host, found in survey.inspections.items()
        if found.node != EMULATOR and scheme.kernel not in found.congestion_controls
    )
    if not without:
        return Availability(True)
    return Availability(
        False, f"{', '.join(without)}: no tcp_{scheme.kernel}", schemes.cure_for(scheme.kernel)
    )
