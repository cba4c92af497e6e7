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
    """Return the variant that options name, or None.

    Raises:
        InputError: Options contradict each other.
    """
    if quick and variant not in (None, "quick"):
        raise refuse("--quick and --variant contradict each other", "give one of them")
    return "quick" if quick else variant


def choose_switch(name: str, points: list[Point]) -> SwitchTarget | None:
    """Return the target of switches, or None if no point has switches.

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
    """Parse --only: return the chosen values of each axis.

    Raises:
        InputError: A text is not AXIS=VALUE.
    """
    values: dict[str, list[str]] = {}
    for text in only or []:
        axis, separator, value = text.partition("=")
        if not separator:
            raise refuse(f"--only {text}: not AXIS=VALUE", "write --only scheme=newreno")
        values.setdefault(axis, []).append(value)
    return values


def choose_lab_name(lab: str | None, inventory: Path | None) -> str:
    """Return the lab that options name: by default physical with an inventory, else virtual.

    Raises:
        InputError: There is no such lab, or it does not go with the inventory.
    """
    name = lab or (PHYSICAL if inventory else VIRTUAL)
    if name not in LABS:
        raise refuse(f"--lab {name}: there is no such lab", f"one of: {', '.join(LABS)}")
    if name == PHYSICAL and inventory is None:
        raise refuse(
            "--lab physical needs an inventory", f"give it with -i, as {cells.EXAMPLE} has it"
        )
    if name != PHYSICAL and inventory is not None:
        raise refuse(f"the {name} lab has no inventory", "leave -i out, or --lab")
    return name
