# SPDX-License-Identifier: Apache-2.0
"""Options that several commands share, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nagi.errors import refuse

Spec = Annotated[Path, typer.Argument(help="experiment file", show_default=False)]
Inventory = Annotated[
    Path | None,
    typer.Option("-i", "--inventory", help="Ansible inventory of the physical lab"),
]
Quick = Annotated[bool, typer.Option("--quick", help="the experiment's form `quick`")]
Form = Annotated[str | None, typer.Option("--form", help="another form of the experiment")]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="AXIS=VALUE", help="only runs with this value")
]


def chosen_form(quick: bool, form: str | None) -> str | None:
    """The form that is meant. Raises InputError."""
    if quick and form not in (None, "quick"):
        raise refuse("--quick and --form contradict each other", "give one of them")
    return "quick" if quick else form


def chosen_values(only: list[str] | None) -> dict[str, str]:
    """Axis -> value. Raises InputError."""
    chosen = {}
    for text in only or []:
        axis, sign, value = text.partition("=")
        if not sign:
            raise refuse(f"--only {text}: not AXIS=VALUE", "write --only scheme=newreno")
        chosen[axis] = value
    return chosen
