# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and what they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from nagi.campaign import has_switches
from nagi.contracts.plan import SwitchTarget
from nagi.errors import refuse
from nagi.spec import Point

Spec = Annotated[Path, typer.Argument(help="experiment file", show_default=False)]
Inventory = Annotated[
    Path | None,
    typer.Option("-i", "--inventory", help="Ansible inventory of the physical lab"),
]
Lab = Annotated[
    str | None,
    typer.Option(
        help="where: netns (this machine, as root), virtual (guests in virtual time) or physical "
        "(-i INVENTORY)"
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="the experiment's form `quick`")]
Form = Annotated[str | None, typer.Option("--form", help="another form of the experiment")]
Switch = Annotated[
    str,
    typer.Option(
        "--switch", help="what switches run: nagi (nagi-switch) or bmv2 (its simple_switch)"
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="AXIS=VALUE", help="only runs with this value")
]


def chosen_form(quick: bool, form: str | None) -> str | None:
    """The form that is meant. Raises InputError."""
    if quick and form not in (None, "quick"):
        raise refuse("--quick and --form contradict each other", "give one of them")
    return "quick" if quick else form


def chosen_switch(name: str, points: list[Point]) -> SwitchTarget | None:
    """What switches are to run; None: there are none. Raises InputError."""
    if name not in get_args(SwitchTarget):
        known = ", ".join(get_args(SwitchTarget))
        raise refuse(f"--switch {name}: there is no such switch", f"one of: {known}")
    if not has_switches(points):
        return None
    return cast(SwitchTarget, name)


def chosen_values(only: list[str] | None) -> dict[str, str]:
    """Axis -> value. Raises InputError."""
    chosen = {}
    for text in only or []:
        axis, sign, value = text.partition("=")
        if not sign:
            raise refuse(f"--only {text}: not AXIS=VALUE", "write --only scheme=newreno")
        chosen[axis] = value
    return chosen


def chosen_lab(lab: str | None, inventory: Path | None) -> str:
    """The lab that is meant: without root not netns, unless it is asked for. Raises InputError."""
    known = ("netns", "virtual", "physical")
    here = "netns" if os.geteuid() == 0 else "virtual"
    name = lab or ("physical" if inventory else here)
    if name not in known:
        raise refuse(f"--lab {name}: there is no such lab", f"one of: {', '.join(known)}")
    if name == "physical" and inventory is None:
        raise refuse(
            "--lab physical needs an inventory", "give it with -i; see ansible/inventories"
        )
    if name != "physical" and inventory is not None:
        raise refuse(f"the {name} lab has no inventory", "leave -i out, or --lab")
    return name
