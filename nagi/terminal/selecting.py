# SPDX-License-Identifier: Apache-2.0
"""Chooses the lab and the runs for `nagi run` and `nagi plan`."""

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
    find_backends,
    find_schemes,
    require_lab,
    select_runs,
)
from nagi.labs.guest import require_guest_support
from nagi.labs.names import NETNS, PHYSICAL, VIRTUAL
from nagi.scratch import make_scratch
from nagi.spec.points import Point, read_experiment
from nagi.terminal.console import complain, error_console, write_line
from nagi.terminal.option_values import (
    choose_lab_name,
    choose_switch,
    choose_variant,
    parse_axis_values,
)
from nagi.terminal.site import Site, make_netns_site, make_physical_site, make_virtual_site


@dataclass(frozen=True)
class RequestedExperiment:
    """An experiment with the variant, values and switches that options of the command choose.

    Attributes:
        points: All points of the variant.
        variant: The name of the variant, or None.
        values: Axis -> the values that --only chooses; axes without --only are missing.
        switch: The value of --switch.
    """

    points: list[Point]
    variant: str | None
    values: dict[str, list[str]]
    switch: str

    @classmethod
    def read(
        cls, spec: Path, quick: bool, variant: str | None, only: list[str] | None, switch: str
    ) -> RequestedExperiment:
        """Read the experiment file, and parse the options.

        Raises:
            InputError: The file or an option is wrong.
        """
        variant = choose_variant(quick, variant)
        return cls(read_experiment(spec, variant), variant, parse_axis_values(only), switch)

    @property
    def name(self) -> str:
        """The name of experiment and variant, for people."""
        name = self.points[0].experiment.name
        return f"{name} ({self.variant})" if self.variant else name

    @property
    def default_out(self) -> Path:
        """The directory for results if no option names one."""
        name = self.points[0].experiment.name
        return Path("results") / (f"{name}-{self.variant}" if self.variant else name)

    def select(self, site: Site) -> Selection:
        """Plan the chosen runs, and find out which of them the site can execute.

        Raises:
            InputError: The experiment cannot be planned, or is not for the lab of the site.
        """
        target = choose_switch(self.switch, self.points)
        selection = select_runs(
            self.points,
            self.variant,
            self.values,
            identify_build(site.name, find_backends(self.points), target or "nagi"),
            site.check_scheme,
            target or "nagi",
            site.check_needs,
        )
        require_lab(selection.plans, site.name)
        return selection


@dataclass(frozen=True)
class LabChoice:
    """The lab to use.

    Attributes:
        name: The name of the lab.
        why_not_virtual: The reason why the netns lab is used in place of the virtual lab, which is
            the default. Empty if the default or the user's choice is used.
    """

    name: str
    why_not_virtual: str = ""


def choose_lab(
    lab: str | None,
    inventory: Path | None,
    *,
    has_root: bool,
    require_guests: Callable[[], None] = require_guest_support,
) -> LabChoice:
    """Return the lab that --lab and -i choose, or the default lab.

    Without options, this is the virtual lab. If this machine cannot run guests, it is the netns
    lab, which needs root.

    Args:
        lab: The option --lab.
        inventory: The option -i.
        has_root: Whether the netns lab may replace the virtual lab, because this process is root.
        require_guests: A function that raises InputError if this machine cannot run guests.

    Raises:
        InputError: Options contradict each other, or neither lab can be used.
    """
    name = choose_lab_name(lab, inventory)
    if lab is not None or name != VIRTUAL:
        return LabChoice(name)
    try:
        require_guests()
    except InputError as error:
        (problem,) = error.problems
        if not has_root:
            raise refuse(
                f"the virtual lab cannot be used: {problem.what}",
                f"{problem.cure}; or run the same command with sudo, for the netns lab",
            ) from None
        return LabChoice(NETNS, f"{problem.what}; {problem.cure}")
    return LabChoice(name)


def is_root() -> bool:
    return os.geteuid() == 0


def report_lab_choice(choice: LabChoice) -> None:
    """Print on standard error why the netns lab replaces the virtual lab, if this is so."""
    if choice.why_not_virtual:
        complain(
            "the netns lab is used, because the virtual lab cannot be used: "
            f"{choice.why_not_virtual} (use --lab netns to hide this message)"
        )


def require_same_lab(directory: CampaignDirectory, choice: LabChoice) -> None:
    """Require that the directory has no runs of another lab. All runs of a campaign have one lab.

    Raises:
        InputError: The directory has runs of another lab.
    """
    earlier_lab = _read_campaign_json(directory).get("lab")
    if earlier_lab in (None, choice.name) or not any(directory.runs.glob("*/verdict.json")):
        return
    option = "-i INVENTORY" if earlier_lab == PHYSICAL else f"--lab {earlier_lab}"
    raise refuse(
        f"the runs in this directory are of the {earlier_lab} lab, and the new runs would be of "
        f"the {choice.name} lab",
        f"continue with {option}, or give another directory with --out",
        file=str(directory.out),
    )


def require_same_experiment(directory: CampaignDirectory, request: RequestedExperiment) -> None:
    """Require that the directory has no runs of another experiment or variant.

    The new campaign would replace campaign.json and the results of the earlier campaign.

    Raises:
        InputError: The directory has runs of another experiment or variant.
    """
    campaign = _read_campaign_json(directory)
    experiment, variant = campaign.get("experiment"), campaign.get("variant")
    requested = (request.points[0].experiment.name, request.variant)
    if experiment is None or (experiment, variant) == requested:
        return
    if not any(directory.runs.glob("*/verdict.json")):
        return
    raise refuse(
        f"the runs in this directory are of {_describe_experiment(experiment, variant)}, and the "
        f"new runs would be of {_describe_experiment(*requested)}",
        "give another directory with --out, or remove this directory if you no longer need it",
        file=str(directory.out),
    )


def _describe_experiment(experiment: object, variant: object) -> str:
    suffix = f", variant {excerpt(str(variant))}" if variant else ""
    return f"experiment {excerpt(str(experiment))}{suffix}"


def _read_campaign_json(directory: CampaignDirectory) -> dict[str, Any]:
    """Return the contents of campaign.json, of any schema version; {} if missing or damaged."""
    try:
        campaign = json.loads(directory.campaign_file.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return campaign if isinstance(campaign, dict) else {}


def open_site(
    lab: str,
    inventory: Path | None,
    points: list[Point],
    out: Path,
    interrupted: Callable[[], bool],
    cleanup: ExitStack,
) -> Site:
    """Make the site of a lab. For the physical lab, also inspect the hosts of the inventory.

    The site of the physical lab gets a directory for temporary files, which `cleanup` removes.

    Args:
        lab: The name of the lab.
        inventory: The option -i.
        points: The points of the experiment.
        out: The directory of the campaign.
        interrupted: A function that returns whether the user has interrupted the command.
        cleanup: A stack that releases the hosts when it is closed.

    Raises:
        InputError: The inventory or its hosts cannot be used.
    """
    if lab == VIRTUAL:
        return make_virtual_site(interrupted)
    if lab == NETNS or inventory is None:
        return make_netns_site(interrupted)
    directory = cleanup.enter_context(make_scratch())
    write_line(f"checking the hosts of {inventory}", error_console)
    return make_physical_site(
        inventory, out, directory, complain, interrupted, cleanup, find_schemes(points).values()
    )


def list_problems(selection: Selection) -> list[Problem]:
    """Return a problem for each scheme, and for each backend of links, that the lab cannot execute.

    A problem names the line of the experiment file that requires the scheme or the backend.
    """
    document = selection.points[0].document
    problems = [
        document.problem(
            ("matrix", "scheme"),
            f"{name} is not available: {availability.reason}",
            availability.cure,
        )
        for name, availability in selection.unavailable.items()
    ]
    return [*problems, *(problem for _, problem in list_lacking_links(selection))]


def list_lacking_links(selection: Selection) -> list[tuple[list[str], Problem]]:
    """Return the pair (links, problem) of each backend that lacks something in the lab.

    A link is written as `link NAME`, as in `Selection.list_missing`.
    """
    problems = []
    for name, needs in selection.lacking_needs.items():
        availability, links = selection.lacking[name], needs.list_users(selection.plans)
        first_plan = next(plan for plan in selection.plans if needs.list_users([plan]))
        point = next(point for point in selection.points if point.values == first_plan.point)
        message = f"{needs.describe(links)}: {availability.reason}"
        problem = point.document.problem(
            ("links", links[0], "emulator"), message, availability.cure
        )
        problems.append(([f"link {link}" for link in links], problem))
    return problems
