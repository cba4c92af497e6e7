# SPDX-License-Identifier: Apache-2.0
"""The commands that keep a topology up: `nagi up`, `shell` and `down`."""

from __future__ import annotations

from typing import Annotated

import typer

from nagi.labs.names import NETNS, PHYSICAL
from nagi.terminal.options import WHERE, Inventory, Only, Quick, Spec, Switch, Variant

_LEASE = "12 h"


def bring_up(
    spec: Spec,
    lab: Annotated[
        str | None,
        typer.Option(
            metavar="LAB",
            help="netns (default): this machine, as root; physical: the hosts of -i INVENTORY. "
            "The virtual lab has no real time, which interactive work needs.",
            show_default=False,
            autocompletion=lambda: [NETNS, PHYSICAL],
            rich_help_panel=WHERE,
        ),
    ] = None,
    inventory: Inventory = None,
    quick: Quick = False,
    variant: Variant = None,
    only: Only = None,
    switch: Switch = "nagi",
    lease: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="TIME",
            help="With -i: time after which the hosts take the topology down themselves",
            rich_help_panel=WHERE,
        ),
    ] = _LEASE,
) -> None:
    """Set up an experiment's topology and keep it up, for your own programs."""
    from nagi.commands import live

    live.bring_up(
        spec,
        lab,
        inventory,
        quick=quick,
        variant=variant,
        only=only,
        switch=switch,
        lease=lease,
    )


def open_shell(
    node: Annotated[
        str,
        typer.Argument(help="Node of the topology", show_default=False),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(help="Command to run on the node, after --; default: a shell"),
    ] = None,
) -> None:
    """Open a shell on a node of the topology that is up, or run a command there."""
    from nagi.commands import live

    live.open_shell(node, command or [])


def take_down(
    inventory: Inventory = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="With -i: also release hosts that others have reserved"),
    ] = False,
) -> None:
    """Take down the topology that is up, or release the hosts of an inventory."""
    from nagi.commands import live

    live.take_down(inventory, force)
