# SPDX-License-Identifier: Apache-2.0
"""The command `nagi plan`: summarises the runs that `nagi run` would execute."""

from __future__ import annotations

from typing import Annotated

import typer

from nagi.terminal.console import Json
from nagi.terminal.options import Inventory, Lab, Only, Out, Quick, Spec, Switch, Variant


def plan(
    spec: Spec,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    lab: Lab = None,
    inventory: Inventory = None,
    switch: Switch = "nagi",
    out: Out = None,
    all_: Annotated[bool, typer.Option("--all", help="List every point")] = False,
    json_: Json = False,
) -> None:
    """Show the planned runs, their time and disk space, and what the lab lacks; run nothing."""
    from nagi.commands.plan import show_plan
    from nagi.terminal.selecting import RequestedExperiment

    requested = RequestedExperiment.read(spec, quick, variant, only, switch)
    show_plan(requested, lab, inventory, out, all_=all_, json_=json_)
