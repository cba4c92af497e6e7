# SPDX-License-Identifier: Apache-2.0
"""Checks and parses the values of options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from nagi_contracts.errors import refuse
from nagi_contracts.plan import SwitchTarget

from nagi.campaign.selection import has_switches
from nagi.labs import cells
from nagi.labs.names import PHYSICAL, VIRTUAL
from nagi.spec.points import Point
from nagi.terminal.options import LABS


def choose_variant(quick: bool, variant: str | None) -> str | None:
    """Return the variant that --quick or --variant names; None without both options.

    Raises:
        InputError: The options contradict each other.
    """
    if quick and variant not in (None, "quick"):
        raise refuse("--quick and --variant contradict each other", "give one of them")
    return "quick" if quick else variant


def choose_switch(name: str, points: list[Point]) -> SwitchTarget | None:
    """Return the target of switches that --switch names, or None if no point has switches.

    Raises:
        InputError: There is no target `name`.
    """
    if name not in get_args(SwitchTarget):
        targets = ", ".join(get_args(SwitchTarget))
        raise refuse(f"--switch {name}: there is no such switch", f"one of: {targets}")
    if not has_switches(points):
        return None
    return cast(SwitchTarget, name)


def parse_axis_values(only: list[str] | None) -> dict[str, list[str]]:
    """Parse the values AXIS=VALUE of --only.

    Returns:
        Axis -> chosen values; empty without --only.

    Raises:
        InputError: A value is not AXIS=VALUE.
    """
    values: dict[str, list[str]] = {}
    for text in only or []:
        axis, separator, value = text.partition("=")
        if not separator:
            raise refuse(f"--only {text}: not AXIS=VALUE", "write --only scheme=newreno")
        values.setdefault(axis, []).append(value)
    return values


def choose_lab_name(lab: str | None, inventory: Path | None) -> str:
    """Return the lab that --lab and -i choose.

    Without --lab, this is the physical lab if there is an inventory, and the virtual lab if not.

    Raises:
        InputError: There is no such lab, or --lab and -i contradict each other.
    """
    name = lab or (PHYSICAL if inventory else VIRTUAL)
    if name not in LABS:
        raise refuse(f"--lab {name}: there is no such lab", f"one of: {', '.join(LABS)}")
    if name == PHYSICAL and inventory is None:
        raise refuse(
            "--lab physical needs an inventory", f"give one with -i, such as {cells.EXAMPLE}"
        )
    if name != PHYSICAL and inventory is not None:
        raise refuse(f"the {name} lab has no inventory", "remove -i or --lab")
    return name
