# SPDX-License-Identifier: Apache-2.0
"""The commands that use a lab without a campaign: `nagi doctor`, `up`, `shell` and `down`."""

from __future__ import annotations

from typing import Annotated

import typer
from nagi_fpga.kinds import DEFAULT, DEFAULT_ADDRESS, KINDS

from nagi.labs.names import NETNS, PHYSICAL
from nagi.terminal.console import Json
from nagi.terminal.options import WHERE, Inventory, Only, Quick, Spec, Switch, Variant

_LEASE = "12 h"


def examine(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="radio|fpga",
            help="Check GNU Radio and nagi-sdr, or an FPGA board, stage by stage, instead of the "
            "machine",
            show_default=False,
            autocompletion=lambda: ["radio", "fpga"],
        ),
    ] = None,
    inventory: Inventory = None,
    json_: Json = False,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARGUMENTS",
            help="With radio: device arguments of UHD; give it once for both ends, or twice",
            show_default=False,
        ),
    ] = None,
    frequency: Annotated[
        str | None,
        typer.Option(
            metavar="FREQUENCY",
            help="With --device: carrier frequency, such as '2450 MHz'",
            show_default=False,
        ),
    ] = None,
    sample_rate: Annotated[
        str, typer.Option(metavar="RATE", help="With --device: sample rate")
    ] = "2 MHz",
    tx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="With --device: gain of the transmitters")
    ] = "0 dB",
    rx_gain: Annotated[
        str, typer.Option(metavar="GAIN", help="With --device: gain of the receivers")
    ] = "0 dB",
    channels: Annotated[
        str, typer.Option(metavar="A,B", help="With --device: channels of the two ends")
    ] = "0,0",
    board: Annotated[
        str,
        typer.Option(
            metavar="BOARD",
            help="With fpga: the board",
            autocompletion=lambda: list(KINDS),
        ),
    ] = DEFAULT,
    address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="With fpga: the board's address")
    ] = DEFAULT_ADDRESS,
    serial: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE",
            help="With fpga: the board's serial device, instead of its address",
            show_default=False,
        ),
    ] = None,
    cable: Annotated[
        str | None,
        typer.Option(
            metavar="CABLE",
            help="With fpga: the JTAG cable, as openFPGALoader names it",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Check whether this machine, or the hosts of an inventory, are fit for runs."""
    from nagi.commands.doctor import BoardOptions, RadioOptions, examine

    examine(
        subject,
        inventory,
        RadioOptions(device or [], frequency, sample_rate, (tx_gain, rx_gain), channels),
        BoardOptions(board, address, serial, cable),
        json_,
    )


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
            help="With -i: time after which hosts undo their settings",
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
        typer.Argument(help="Command to run there, after --; a shell if not given"),
    ] = None,
) -> None:
    """Open a shell on a node of the topology that is up, or run a command there."""
    from nagi.commands import live

    live.open_shell(node, command or [])


def take_down(
    inventory: Inventory = None,
    force: Annotated[
        bool, typer.Option("--force", help="With -i: release hosts that others hold, too")
    ] = False,
) -> None:
    """Take down the topology that is up, or release the hosts of an inventory."""
    from nagi.commands import live

    live.take_down(inventory, force)
