# SPDX-License-Identifier: Apache-2.0
"""What `nagi run` and `nagi plan` have in common: the lab, the runs in it, and what it lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nagi_contracts.errors import InputError, Problem, excerpt, refuse

from nagi.campaign.build import identify_build
from nagi.campaign.directory import CampaignDirectory
from nagi.campaign.selection import (
    Selection,
    find_schemes,
    has_radios,
    has_simulated_fpgas,
    select_runs,
)
from nagi.labs import netns, physical, virtual
from nagi.labs.guest import require_guest_support
from nagi.plan import fpga, radio
from nagi.scratch import scratch
from nagi.spec.points import Point, read_experiment
from nagi.terminal.console import complain, error_console, write_line
from nagi.terminal.options import chosen_lab, chosen_switch, chosen_values, chosen_variant
from nagi.terminal.site import Site, netns_site, physical_site, virtual_site


@dataclass(frozen=True)
class Wanted:
    """An experiment as options of the command choose it."""

    points: list[Point]
    variant: str | None
    values: dict[str, list[str]]  # axis -> the only values
    switch: str

    @classmethod
    def read(
        cls, spec: Path, quick: bool, variant: str | None, only: list[str] | None, switch: str
    ) -> Wanted:
        """Raises InputError."""
        variant = chosen_variant(quick, variant)
        return cls(read_experiment(spec, variant), variant, chosen_values(only), switch)

    @property
    def name(self) -> str:
        """Of experiment and variant, for people."""
        name = self.points[0].experiment.name
        return f"{name} ({self.variant})" if self.variant else name

    @property
    def default_out(self) -> Path:
        """Where results go if nobody says."""
        name = self.points[0].experiment.name
        return Path("results") / (f"{name}-{self.variant}" if self.variant else name)

    def select(self, site: Site) -> Selection:
        """The runs, as they would be at `site`. Raises InputError."""
        target = chosen_switch(self.switch, self.points)
        selection = select_runs(
            self.points,
            self.variant,
            self.values,
            identify_build(
                site.name,
                target,
                radios=has_radios(self.points),
                fpgas=has_simulated_fpgas(self.points),
            ),
            site.available,
            target or "nagi",
            site.radios,
            site.fpgas,
        )
        fpga.require_real_hosts(selection.plans, site.name)
        return selection


@dataclass(frozen=True)
class LabChoice:
    """A lab. `why_not_virtual`: why it is not the one that is used by default; empty otherwise."""

    name: str
    why_not_virtual: str = ""


def choose_lab(
    lab: str | None,
    inventory: Path | None,
    *,
    has_root: bool,
    require_able: Callable[[], None] = require_guest_support,
) -> LabChoice:
    """The lab that is meant. If none is given and the virtual lab cannot be used here, it is netns
    for who has root (`has_root`). `require_able` raises InputError if it cannot. Raises
    InputError."""
    name = chosen_lab(lab, inventory)
    if lab is not None or name != virtual.NAME:
        return LabChoice(name)
    try:
        require_able()
    except InputError as error:
        (problem,) = error.problems
        if not has_root:
            raise refuse(
                f"the virtual lab cannot be used: {problem.what}",
                f"{problem.cure}; or run the same command with sudo, for the netns lab",
            ) from None
        return LabChoice(netns.NAME, f"{problem.what}; {problem.cure}")
    return LabChoice(name)


def is_root() -> bool:
    return os.geteuid() == 0


def say_lab_choice(choice: LabChoice) -> None:
    """Says so if the lab is not the one that is used by default."""
    if choice.why_not_virtual:
        complain(
            f"the netns lab is used, as the virtual lab cannot be: {choice.why_not_virtual} "
            "(--lab netns does not ask for it)"
        )


def require_same_lab(directory: CampaignDirectory, choice: LabChoice) -> None:
    """Raises InputError if there are runs of another lab: one campaign is of one lab."""
    before = _campaign_json(directory).get("lab")
    if before in (None, choice.name) or not any(directory.runs.glob("*/verdict.json")):
        return
    again = "-i INVENTORY" if before == physical.NAME else f"--lab {before}"
    raise refuse(
        f"the runs in this directory are of the {before} lab, and this would be the {choice.name} "
        "lab",
        f"continue with {again}, or give another directory with --out",
        file=str(directory.out),
    )


def require_same_experiment(directory: CampaignDirectory, wanted: Wanted) -> None:
    """Raise InputError if the directory has the campaign of another experiment, or of another
    variant, with runs: its campaign.json and its results would be replaced."""
    before = _campaign_json(directory)
    # Until 0.1 a variant was a form.
    experiment, variant = before.get("experiment"), before.get("variant", before.get("form"))
    wants = (wanted.points[0].experiment.name, wanted.variant)
    if experiment is None or (experiment, variant) == wants:
        return
    if not any(directory.runs.glob("*/verdict.json")):
        return
    raise refuse(
        f"the runs in this directory are of {_describe(experiment, variant)}, and this would be "
        f"{_describe(*wants)}",
        "give another directory with --out, or remove this one if you need it no more",
        file=str(directory.out),
    )


def _describe(experiment: object, variant: object) -> str:
    of_variant = f", variant {excerpt(str(variant))}" if variant else ""
    return f"experiment {excerpt(str(experiment))}{of_variant}"


def _campaign_json(directory: CampaignDirectory) -> dict[str, Any]:
    """Return what campaign.json says, which may be another version's; nothing if it is damaged."""
    try:
        found = json.loads(directory.campaign_file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def site_of(
    lab: str,
    inventory: Path | None,
    points: list[Point],
    out: Path,
    interrupted: Callable[[], bool],
    cleanup: ExitStack,
) -> Site:
    """Where runs of a lab take place; looks at the hosts of an inventory. Raises InputError."""
    if lab == virtual.NAME:
        return virtual_site(interrupted)
    if lab == netns.NAME or inventory is None:
        return netns_site(interrupted)
    directory = cleanup.enter_context(scratch())
    write_line(f"looking at the hosts of {inventory}", error_console)
    return physical_site(
        inventory, out, directory, complain, interrupted, cleanup, find_schemes(points).values()
    )


def problems_with(selection: Selection) -> list[Problem]:
    """What schemes, radios and FPGAs of the selection's runs lack where these are to take place, at
    the line of the experiment that asks for it."""
    document = selection.points[0].document
    found = [
        document.problem(("matrix", "scheme"), f"{name} is not available: {why.reason}", why.cure)
        for name, why in selection.unavailable.items()
    ]
    return [*found, *(problem for _, problem in links_lacking(selection))]


def links_lacking(selection: Selection) -> list[tuple[list[str], Problem]]:
    """What radios and FPGAs of the selection's runs lack where these are to take place, and which
    links these are."""
    problems = []
    for links, found, words in (
        (selection.list_missing_radios(), selection.no_radios, radio.describe_links),
        (selection.list_missing_fpgas(), selection.no_fpgas, fpga.describe_links),
    ):
        if not links or found is None:
            continue
        place = ("links", links[0], "emulator")
        with_it = next(p for p in selection.points if links[0] in p.experiment.links)
        what = f"{words(links)}: {found.reason}"
        problems.append((links, with_it.document.problem(place, what, found.cure)))
    return problems
