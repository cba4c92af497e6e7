# SPDX-License-Identifier: Apache-2.0
"""Examines this machine, or the hosts of an inventory: `nagi doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

import typer
from nagi_contracts.doctor import Doctor
from nagi_contracts.errors import BadValue, refuse, suggest
from nagi_contracts.paths import fpga_images
from nagi_contracts.units import CarrierFrequency, Level, SampleRate
from nagi_fpga.kinds import KINDS
from nagi_fpga.loading import BoardLocation

from nagi.doctor import list_findings
from nagi.doctor.examination import (
    examine_fpga,
    examine_hosts,
    examine_radio,
    examine_this_machine,
)
from nagi.doctor.text import print_findings
from nagi.labs.host_pool import make_token
from nagi.scratch import make_scratch
from nagi.terminal.console import out_console, write_line
from nagi.terminal.hosts import open_host_pool
from nagi.terminal.progress import InterruptFlag


@dataclass(frozen=True)
class RadioOptions:
    """The options of `nagi doctor radio`, as the user wrote them."""

    devices: list[str]
    frequency: str | None
    sample_rate: str
    gains: tuple[str, str]  # of transmitters, of receivers
    channels: str


@dataclass(frozen=True)
class BoardOptions:
    """The options of `nagi doctor fpga`."""

    kind: str
    address: str
    serial: str | None
    cable: str | None


def examine(
    subject: str | None,
    inventory: Path | None,
    radio: RadioOptions,
    board: BoardOptions,
    json_: bool,
) -> NoReturn:
    """Check whether this machine, or the hosts of an inventory, are fit for runs.

    Args:
        subject: `radio` or `fpga`, or None for the machine.
        inventory: The inventory of the hosts, or None for this machine.
        radio: The options of radio hardware.
        board: The options of an FPGA board.
        json_: Whether to print JSON.

    Raises:
        typer.Exit: The findings are printed.
    """
    if subject is not None:
        _require_local(subject, inventory)
    if subject == "radio":
        if not json_:
            write_line("checking GNU Radio and nagi-sdr")
        _print_and_exit(examine_radio(_list_device_options(radio)), json_)
    if radio.devices:
        raise refuse("--device is of `nagi doctor radio`", "write `nagi doctor radio --device ...`")
    if subject == "fpga":
        place = _find_board(board)
        if not json_:
            write_line(f"checking the {board.kind} at {place.name}")
        _print_and_exit(examine_fpga(place, str(fpga_images())), json_)
    stop = InterruptFlag()
    with make_scratch() as directory:
        if not json_:
            target = f"the hosts of {inventory}" if inventory else "this machine"
            write_line(f"checking {target}")
        if inventory is None:
            observations = examine_this_machine(directory, stop)
        else:
            token = make_token(directory)
            with open_host_pool(inventory, directory, token, stop) as pool:
                observations = examine_hosts(pool)
    _print_and_exit(list_findings(observations), json_)


def _list_device_options(radio: RadioOptions) -> list[str]:
    """Return the options of `nagi-sdr doctor` for radio hardware.

    Raises:
        InputError: An option is missing or wrong.
    """
    if not radio.devices:
        return []
    if radio.frequency is None:
        raise refuse(
            "--device without a frequency: transmitting needs a licence, or a band that needs none",
            "add `--frequency '2450 MHz'`",
        )
    frequency = _parse_option("--frequency", CarrierFrequency.parse, radio.frequency)
    sample_rate = _parse_option("--sample-rate", SampleRate.parse, radio.sample_rate)
    levels = zip(("--tx-gain", "--rx-gain"), radio.gains, strict=True)
    return [
        *(f"--device={device}" for device in radio.devices),
        f"--frequency={frequency.value}",
        f"--rate={sample_rate.value}",
        *(f"{name}={_parse_option(name, Level.parse, text).value}" for name, text in levels),
        f"--channels={radio.channels}",
    ]


def _find_board(board: BoardOptions) -> BoardLocation:
    """Return the location of a board.

    Raises:
        InputError: There is no such board, or it has no network.
    """
    if board.kind not in KINDS:
        raise refuse(f"--board {board.kind}: there is no such board", suggest(board.kind, [*KINDS]))
    if board.serial is None and not KINDS[board.kind].has_network:
        raise refuse(
            f"--board {board.kind}: it is controlled by its UART alone",
            "give `--serial DEVICE`, such as /dev/ttyUSB0",
        )
    address = board.address if board.serial is None else None
    return BoardLocation(board.kind, address, board.serial, board.cable)


_Value = TypeVar("_Value")


def _parse_option(name: str, parse: Callable[[object], _Value], text: str) -> _Value:
    """Parse the text of an option.

    Raises:
        InputError: The text is wrong; the message names the option.
    """
    try:
        return parse(text)
    except BadValue as error:
        raise refuse(f"{name}: {error.what}", error.cure) from None


def _require_local(subject: str, inventory: Path | None) -> None:
    """Require that `nagi doctor SUBJECT` is about this machine.

    Raises:
        InputError: There is no such subject, or an inventory was given.
    """
    places = {"radio": "where `make sdr` has been run", "fpga": "which controls the board"}
    if subject not in places:
        raise refuse(
            f"doctor {subject}: there is no such subject",
            "write `nagi doctor radio` or `nagi doctor fpga`",
        )
    if inventory is not None:
        raise refuse(
            f"doctor {subject} checks this machine only",
            f"run it on the emulator's host, {places[subject]}",
        )


def _print_and_exit(findings: Doctor, json_: bool) -> NoReturn:
    """Print findings as text or JSON, and exit with their status."""
    if json_:
        typer.echo(findings.model_dump_json(indent=1))
    else:
        print_findings(out_console, findings)
    raise typer.Exit(findings.exit_status)
